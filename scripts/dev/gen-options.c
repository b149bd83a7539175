/* SPDX-License-Identifier: MIT */
/*
 * scripts/dev/gen-options.c - prints the man page's list of options, made from
 * runtime/base/options.def. Reports mistakes in options.def that the compiler accepts, each with
 * its line. gen-options.sh builds and runs it.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/options.h"

static const int lines[] = {
#define FZ_OPTION(name, variable, type, default_, min, max, help) __LINE__,
#include "runtime/base/options.def"
};

static const struct launcher_flag {
	int line;
	const char *name, *help;
} launcher_flags[] = {
#define FZ_LAUNCHER_FLAG(name, help) { __LINE__, #name, help },
#include "runtime/base/options.def"
};

/* ---- mistakes in options.def -------------------------------------------- */

static void must_at(int line, const char *name, bool holds, const char *rule)
{
	if (holds)
		return;
	fprintf(stderr, "runtime/base/options.def:%d: %s: %s\n", line, name, rule);
	exit(1);
}

static void must(const struct fz_option *o, bool holds, const char *rule)
{
	must_at(lines[o - fz_options], o->name, holds, rule);
}

/* What holds for options and for flags of the launcher. before: the name in the line above, or NULL. */
static void judge_texts(int line, const char *name, const char *before, const char *help)
{
	must_at(line, name, name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_")] == '\0',
		"the name may have small letters, digits and underscores");
	must_at(line, name, !before || strcmp(before, name) < 0, "is not in its sorted place: move the line");
	must_at(line, name, *help && !strpbrk(help, "\"\\|\n"),
		"help must be text without quotes, backslashes and vertical bars");
}

static void judge_launcher_flags(void)
{
	const char *before = NULL;

	for (size_t i = 0; i < sizeof(launcher_flags) / sizeof(*launcher_flags); i++) {
		const struct launcher_flag *f = &launcher_flags[i];

		judge_texts(f->line, f->name, before, f->help);
		before = f->name;
	}
}

static bool is_variable_of(const char *variable, const char *name)
{
	static const char prefix[] = "FIBERIZE_";

	if (strncmp(variable, prefix, strlen(prefix)) != 0)
		return false;
	for (variable += strlen(prefix); *variable && *variable == toupper(*name); variable++)
		name++;
	return *variable == *name;
}

static void judge(const struct fz_option *o)
{
	bool of_words = o->type == FZ_OPTION_choice || o->type == FZ_OPTION_set;
	size_t words = 1;

	judge_texts(lines[o - fz_options], o->name, o == fz_options ? NULL : o[-1].name, o->help);
	must(o, is_variable_of(o->variable, o->name),
	     "its variable must be FIBERIZE_ and the name in capitals");
	must(o, of_words == !!o->words, "FZ_WORDS_OPTION is for choice and set, and for no other");
	must(o, o->min <= o->max && o->max <= (uint64_t)1 << 40, "min must be at most max, max at most 2^40");
	must(o, o->initial <= o->max, "the default must be at most max");
	must(o, o->type != FZ_OPTION_bool || (o->min == 0 && o->max == 1), "a bool is from 0 to 1");
	must(o, o->type != FZ_OPTION_file || (!o->initial && !o->min && o->max > 1),
	     "a file is 0 by default, and its name has some characters");
	must(o, (o->type != FZ_OPTION_path && o->type != FZ_OPTION_list) || !o->initial,
	     "the default of a text must be 0");
	must(o, o->type != FZ_OPTION_path || !o->max, "min and max of a path must be 0");
	if (!o->words)
		return;
	must(o, !o->words[strspn(o->words, "abcdefghijklmnopqrstuvwxyz0123456789-,")] &&
		*o->words && *o->words != ',' && !strstr(o->words, ",,") &&
		o->words[strlen(o->words) - 1] != ',',
	     "words may have small letters, digits and hyphens, with one comma between two");
	for (const char *c = o->words; *c; c++)
		words += *c == ',';
	must(o, words <= 64, "there may be 64 words");
}

/* ---- the list of options ------------------------------------------------ */

static void roff(const char *text)
{
	for (; *text; text++)
		printf(*text == '-' ? "\\-" : "%c", *text);
}

static void flag(const char *prefix, const struct fz_option *o)
{
	fputs(prefix, stdout);
	for (const char *c = o->name; *c; c++)
		printf(*c == '_' ? "\\-" : "%c", *c);
}

int main(void)
{
	judge_launcher_flags();
	for (const struct fz_option *o = fz_options; o < fz_options + FZ_OPTION_COUNT; o++) {
		bool on = o->type == FZ_OPTION_bool && o->initial;
		char allowed[FZ_OPTION_TEXT], initial[FZ_OPTION_TEXT];

		judge(o);
		fz_option_allowed(o, allowed, sizeof(allowed));
		fz_option_default(o, initial, sizeof(initial));
		printf(".TP\n.BR %s \" (", o->variable);
		roff(allowed);
		printf("; default: %s)\"\n%s\n", initial, on ? "Flags" : "Flag");
		flag(".BR \\-\\-", o);
		if (on)
			flag(" \" and \" \\-\\-no\\-", o);
		fputs(" :\n", stdout);
		roff(o->help);
		fputs(".\n", stdout);
	}
	return 0;
}
