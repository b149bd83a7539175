/* SPDX-License-Identifier: MIT */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "installed.h"
#include "run.h"
#include "say.h"
#include "usage.h"

const char *const bench_arguments[BENCH_COUNT] = {
#define FZ_OPTION(name, argument, type, default_, min, max, help) #argument,
#include "bench.def"
};

const struct fz_option bench_options[BENCH_COUNT] = {
#define FZ_OPTION(name, argument, type, default_, min, max, help) \
	{ #name, NULL, FZ_OPTION_##type, default_, min, max, NULL, help },
#include "bench.def"
};

struct bench {
	const char *mode;			/* http, echo or load */
	const char *value[BENCH_COUNT];		/* NULL: not given */
};

/*
 * Take one of the options in bench.def. Returns how many words it takes, 0 if words[0] is no
 * such option.
 */
static int bench_option(struct bench *b, char **words)
{
	size_t length = strcspn(words[0], "=");
	int count;

	for (size_t i = 0; i < BENCH_COUNT; i++) {
		const struct fz_option *o = &bench_options[i];

		if (strncmp(words[0], "--", 2) != 0 || !fz_option_is_flag(o->name, words[0] + 2, length - 2))
			continue;
		b->value[i] = flag_value(o, words, &count);
		if (i == BENCH_load)
			b->mode = o->name;
		return count;
	}
	return 0;
}

static int one_option(struct settings *s, struct bench *b, char **words)
{
	const char *word = words[0];
	int count = 1;

	usage_if_wanted(word, usage_bench);
	if (strcmp(word, "--http") == 0 || strcmp(word, "--echo") == 0) {
		b->mode = word + 2;
	} else {
		count = bench_option(b, words);
		if (!count)
			count = settings_from_flag(s, words);
		if (!count)
			die(EXIT_USAGE, "%s: no such option; see fiberize bench --help", word);
	}
	return count;
}

/* Read all options. Returns the program and its arguments. */
static char **all_options(struct settings *s, struct bench *b, char **words)
{
	while (*words && **words == '-') {
		if (strcmp(*words, "--") == 0) {
			words++;
			break;
		}
		words += one_option(s, b, words);
	}
	settings_refuse(s, "bench", true);
	if (!*words)
		die(EXIT_USAGE, "bench: no program; fiberize bench [options] -- PROGRAM [ARGS]");
	return words;
}

/* ---- what to refuse before the first round ------------------------------- */

static void look_at(const struct settings *s, const char *name)
{
	struct object *library = installed_library(s->value[FZ_OPTION_ID_library]);
	struct program p;
	char *others;

	run_find(name, library, s->force, &p);
	if (p.native)
		die(EXIT_BENCH, "%s", p.native);
	if (p.dormant)
		fprintf(stderr, "fiberize bench: %s\n", p.dormant);
	/* The native side must not load the library, even if LD_PRELOAD names it for all programs. */
	others = run_preloaded_by_others(library->path);
	if (*others)
		setenv("LD_PRELOAD", others, 1);
	else
		unsetenv("LD_PRELOAD");
	free(others);
	program_free(&p);
	object_close(library);
}

/* ---- the script --------------------------------------------------------- */

struct list {
	char **word;
	size_t count;
};

static void append(struct list *l, char *word)
{
	l->word = reallocarray(l->word, l->count + 1, sizeof(*l->word));
	if (!l->word)
		die(EXIT_OTHER, "no memory");
	l->word[l->count++] = word;
}

static void assign(struct list *l, const char *name, const char *value)
{
	char *word;

	if (asprintf(&word, "%s=%s", name, value) < 0)
		die(EXIT_OTHER, "no memory");
	append(l, word);
}

/* Pass on the command line and the FIBERIZE_ variables, so that a report can say how to repeat the run. */
static void assign_command(struct list *l, char **command)
{
	bool first = true;

	for (char **e = environ; *e; e++) {
		if (strncmp(*e, "FIBERIZE_", 9) != 0)
			continue;
		if (first)
			assign(l, "word", "env");
		first = false;
		assign(l, "word", *e);
	}
	for (; *command; command++)
		assign(l, "word", *command);
}

_Noreturn void bench(struct settings *s, char **words, char **command)
{
	struct bench b = { .mode = "http" };
	struct list l = { NULL, 0 }, written = { NULL, 0 };
	char script[4096], number[24];

	snprintf(script, sizeof(script), "%s/bench.sh", installed_libexec());
	words = all_options(s, &b, words);
	assign_command(&written, command);
	settings_from_environment(s);
	if (access(script, R_OK) != 0)
		die(EXIT_OTHER, "bench is not installed");
	look_at(s, *words);
	settings_export(s);

	append(&l, (char *)"/bin/sh");
	append(&l, script);
	assign(&l, "self", installed_self());
	assign(&l, "libexec", installed_libexec());
	assign(&l, "version", FZ_VERSION);
	assign(&l, "mode", b.mode);
	assign(&l, "force", s->force ? "1" : "");
	assign(&l, "no_profiles", s->no_profiles ? "1" : "");
	for (size_t i = 0; i < BENCH_COUNT; i++) {
		const struct fz_option *o = &bench_options[i];

		snprintf(number, sizeof(number), "%lu", (unsigned long)o->initial);
		if (b.value[i])
			assign(&l, o->name, b.value[i]);
		else if (o->initial)
			assign(&l, o->name, number);
	}
	for (size_t i = 0; i < written.count; i++)
		append(&l, written.word[i]);
	append(&l, (char *)"--");
	for (; *words; words++)
		append(&l, *words);
	append(&l, NULL);
	execv(l.word[0], l.word);
	die(EXIT_OTHER, "/bin/sh cannot be started");
}
