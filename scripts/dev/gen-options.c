/* SPDX-License-Identifier: MIT */
/*
 * scripts/dev/gen-options.c - the tables of options in README.md (markdown) and in the man page
 * (man), from runtime/base/options.def: gen-options markdown|man.  Refuses what the compiler
 * lets through, by the line; gen-options.sh builds and runs it.
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

/* ---- what is refused ---------------------------------------------------- */

static void must(const struct fz_option *o, bool holds, const char *rule)
{
	if (holds)
		return;
	fprintf(stderr, "runtime/base/options.def:%d: %s: %s\n", lines[o - fz_options], o->name, rule);
	exit(1);
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

	must(o, o->name[strspn(o->name, "abcdefghijklmnopqrstuvwxyz0123456789_")] == '\0',
	     "the name may have small letters, digits and underscores");
	must(o, is_variable_of(o->variable, o->name),
	     "its variable must be FIBERIZE_ and the name in capitals");
	must(o, o == fz_options || strcmp(o[-1].name, o->name) < 0,
	     "is not in its sorted place: move the line");
	must(o, *o->help && !strpbrk(o->help, "\"\\|\n"),
	     "help must be text without quotes, backslashes and vertical bars");
	must(o, of_words == !!o->words, "FZ_WORDS_OPTION is for choice and set, and for no other");
	must(o, o->min <= o->max && o->max <= (uint64_t)1 << 40, "min must be at most max, max at most 2^40");
	must(o, o->initial <= o->max, "the default must be at most max");
	must(o, o->type != FZ_OPTION_bool || (o->min == 0 && o->max == 1), "a bool is from 0 to 1");
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

/* ---- what is printed ---------------------------------------------------- */

static const char *flag_of(const struct fz_option *o)
{
	static char flag[64];
	size_t i;

	for (i = 0; o->name[i] && i < sizeof(flag) - 1; i++)
		flag[i] = o->name[i] == '_' ? '-' : o->name[i];
	flag[i] = '\0';
	return flag;
}

static void markdown(const struct fz_option *o, const char *allowed, const char *initial)
{
	const char *argument = fz_option_argument(o);
	/* What people would want to say. */
	bool off = o->type == FZ_OPTION_bool && o->initial;

	printf("| `%s` | `--%s%s%s%s` | %s | %s | %s |\n", o->variable, off ? "no-" : "", flag_of(o),
	       *argument ? " " : "", argument, allowed, initial, o->help);
}

static void roff(const char *text)
{
	for (; *text; text++)
		printf(*text == '-' ? "\\-" : "%c", *text);
}

static void man(const struct fz_option *o, const char *allowed, const char *initial)
{
	printf(".TP\n.BR %s \" (", o->variable);
	roff(allowed);
	printf("; default: %s)\"\nThe same as\n.BR \\-\\-", initial);
	roff(flag_of(o));
	if (o->type == FZ_OPTION_bool && o->initial) {
		fputs(" \" and \" \\-\\-no\\-", stdout);
		roff(flag_of(o));
	}
	fputs(" :\n", stdout);
	roff(o->help);
	fputs(".\n", stdout);
}

int main(int argc, char **argv)
{
	bool for_man = argc == 2 && strcmp(argv[1], "man") == 0;

	if (argc != 2 || (!for_man && strcmp(argv[1], "markdown") != 0)) {
		fputs("usage: gen-options markdown|man\n", stderr);
		return 2;
	}
	if (!for_man)
		fputs("| variable | flag | value | default | meaning |\n"
		      "| --- | --- | --- | --- | --- |\n", stdout);
	for (const struct fz_option *o = fz_options; o < fz_options + FZ_OPTION_COUNT; o++) {
		char allowed[FZ_OPTION_TEXT], initial[FZ_OPTION_TEXT];

		judge(o);
		fz_option_allowed(o, allowed, sizeof(allowed));
		fz_option_default(o, initial, sizeof(initial));
		(for_man ? man : markdown)(o, allowed, initial);
	}
	return 0;
}
