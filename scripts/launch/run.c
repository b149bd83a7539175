/* SPDX-License-Identifier: MIT */
#include "run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "installed.h"
#include "say.h"

void run_find(const char *name, const struct object *library, bool force, struct program *ret)
{
	const char *message;

	program_find(name, library, ret);
	message = ret->message ? ret->message : ret->kind;
	if (ret->code == CODE_OK)
		return;
	/* --force cannot start a program that does not exist. */
	if (!force || ret->code > CODE_NOEXEC || !ret->path)
		die(ret->code, "%s", message);
	say("%s; started nevertheless (--force)", message);
}

/* ---- LD_PRELOAD --------------------------------------------------------- */

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Is it this library, another copy of it, or libfiberize-preload.so, which would load it, too? */
static bool is_ours(const char *word, const char *library)
{
	static const char *const names[] = { "libfiberize.so", "libfiberize-preload.so" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strcmp(base_of(word), names[i]) == 0)
			return true;
	return strcmp(word, library) == 0 || strcmp(word, installed_preload_name(library)) == 0;
}

/* The value of LD_PRELOAD that the loader uses: the last one, if it is set several times.  NULL: not set. */
static const char *last_preload(void)
{
	static const char name[] = "LD_PRELOAD=";
	const char *last = NULL;

	for (char **e = environ; *e; e++)
		if (strncmp(*e, name, sizeof(name) - 1) == 0)
			last = *e + sizeof(name) - 1;
	return last;
}

char *run_preloaded_by_others(const char *library)
{
	const char *list = last_preload();
	char *copy = strdup(list ? list : ""), *rest = copy, *word;
	char *others = calloc(1, strlen(list ? list : "") + 1);

	if (!copy || !others)
		die(EXIT_OTHER, "no memory");
	while ((word = strsep(&rest, ": "))) {
		if (!*word || is_ours(word, library))
			continue;
		if (*others)
			strcat(others, ":");
		strcat(others, word);
	}
	free(copy);
	return others;
}

/* The new value of LD_PRELOAD, which the caller frees; NULL: do not change LD_PRELOAD. */
static char *preload(const struct program *p, const char *library)
{
	char *others, *list;

	if (p->native)
		return NULL;
	others = run_preloaded_by_others(library);
	if (asprintf(&list, "%s%s%s", installed_preload_name(library), *others ? ":" : "", others) < 0)
		die(EXIT_OTHER, "no memory");
	free(others);
	return list;
}

/* ---- a dry run ---------------------------------------------------------- */

/* Print word so that a shell reads it as one word. */
static void put_quoted(const char *word)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				    "0123456789_./:=,@%+-";

	if (*word && !word[strspn(word, plain)]) {
		fputs(word, stdout);
		return;
	}
	putchar('\'');
	for (; *word; word++)
		if (*word == '\'')
			fputs("'\\''", stdout);
		else
			putchar(*word);
	putchar('\'');
}

static void put_assignment(const char *name, const char *value)
{
	char *text;

	if (asprintf(&text, "%s=%s", name, value) < 0)
		die(EXIT_OTHER, "no memory");
	putchar(' ');
	put_quoted(text);
	free(text);
}

void run_show(const struct settings *s, const struct program *p, const char *library, char **words)
{
	const char *why = p->native ? p->native : p->dormant;
	char *list = preload(p, library);
	const char *all = list ? list : getenv("LD_PRELOAD");

	if (why)
		printf("# %s\n", why);
	fputs("env", stdout);
	for (size_t i = 0; i < FZ_OPTION_COUNT; i++)
		if (s->value[i])
			put_assignment(fz_options[i].variable, s->value[i]);
	if (all && *all)
		put_assignment("LD_PRELOAD", all);
	for (; *words; words++) {
		putchar(' ');
		put_quoted(*words);
	}
	putchar('\n');
	free(list);
}

/* ---- the exec ----------------------------------------------------------- */

static void set_variable(const char *name, const char *value)
{
	/* If a variable is set several times, the loader uses the last, but setenv() changes the first. */
	if (unsetenv(name) != 0 || setenv(name, value, 1) != 0)
		die(EXIT_OTHER, "no memory for the environment");
}

/* Start a file whose format the kernel does not know: run it by /bin/sh, as a shell does. */
static void exec_by_shell(const char *path, char **words)
{
	size_t count = 0;
	char **argv;

	while (words[count])
		count++;
	argv = calloc(count + 2, sizeof(*argv));
	if (!argv)
		die(EXIT_OTHER, "no memory");
	argv[0] = (char *)"/bin/sh";
	argv[1] = (char *)path;
	for (size_t i = 1; i < count; i++)
		argv[i + 1] = words[i];
	execv(argv[0], argv);
	free(argv);
}

_Noreturn void run_exec(const struct settings *s, const struct program *p, const char *library,
			char **words)
{
	char *list = preload(p, library), launched[128];
	struct stat error;

	if (p->native)
		say("%s", p->native);
	else if (p->dormant && s->value[FZ_OPTION_ID_verbose] &&
		 strcmp(s->value[FZ_OPTION_ID_verbose], "1") == 0)
		say("%s", p->dormant);
	settings_export(s);
	if (list) {
		/*
		 * This variable tells the library three things: the id of the process that the
		 * launcher starts, which exec keeps (only there the library reports why it
		 * stays dormant); what file standard error is; whether to stay dormant there.
		 */
		if (fstat(STDERR_FILENO, &error) != 0)
			error = (struct stat){ .st_ino = UINT64_MAX };
		snprintf(launched, sizeof(launched), "%d %lu:%u:%u%s", (int)getpid(),
			 (unsigned long)error.st_ino, major(error.st_dev), minor(error.st_dev),
			 p->dormant ? " dormant" : "");
		set_variable("FIBERIZE_LAUNCHED", launched);
		set_variable("LD_PRELOAD", list);
	}
	execv(p->path, words);
	/* The kernel refuses a damaged ELF file by ENOEXEC, too, but that is no script. */
	if (errno == ENOEXEC && p->code != CODE_NOEXEC)
		exec_by_shell(p->path, words);
	die(errno == ENOENT ? CODE_NOTFOUND : CODE_NOEXEC, "%s: %s", p->path, strerror(errno));
}
