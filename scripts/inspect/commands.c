/* SPDX-License-Identifier: MIT */
#include "commands.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scripts/process/say.h"

static const struct command {
	const char *name, *operands, *text;
	int (*run)(char **words);
} commands[] = {
#define FZ_COMMAND(name, operands, text) { #name, operands, text, command_##name },
#define FZ_OPTION(command, name, argument, help)
#include "commands.def"
};

static const struct row {
	const char *command, *name, *argument, *help;
} options[OPTION_COUNT] = {
#define FZ_COMMAND(name, operands, text)
#define FZ_OPTION(command, name, argument, help) { #command, #name, argument, help },
#include "commands.def"
};

enum { COMMAND_COUNT = sizeof(commands) / sizeof(*commands) };

static bool is(const char *word, const char *other)
{
	return strcmp(word, other) == 0;
}

static const struct command *find(const char *name)
{
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		if (is(commands[i].name, name))
			return &commands[i];
	return NULL;
}

static void put_usage(const struct command *c, FILE *out)
{
	fprintf(out, "fiberize %s", c->name);
	for (const struct row *o = options; o < options + OPTION_COUNT; o++)
		if (is(o->command, c->name))
			fprintf(out, " [--%s%s%s]", o->name, *o->argument ? " " : "", o->argument);
	fprintf(out, " %s\n", c->operands);
}

static _Noreturn void end_of_output(void)
{
	if (fflush(stdout) != 0)
		die(EXIT_OTHER, "standard output: cannot be written");
	exit(0);
}

static _Noreturn void version(void)
{
	puts("fiberize " FZ_VERSION);
	end_of_output();
}

static _Noreturn void help(const struct command *c)
{
	fputs("usage: ", stdout);
	put_usage(c, stdout);
	printf("\n%s\n\n", c->text);
	for (const struct row *o = options; o < options + OPTION_COUNT; o++)
		if (is(o->command, c->name))
			printf("  --%s%s%s\n        %s\n", o->name, *o->argument ? " " : "", o->argument,
			       o->help);
	end_of_output();
}

_Noreturn void wrong_usage(const char *command, const char *format, ...)
{
	va_list args;

	fflush(stdout);
	fprintf(stderr, "fiberize: %s: ", command);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputs("; ", stderr);
	put_usage(find(command), stderr);
	exit(EXIT_USAGE);
}

/* The options are over: skip the word that says so, unless it says more, and complain of options that come later. */
static void end_options(const char *command, char ***words)
{
	if (**words && is(**words, "--")) {
		*words += !is(command, "trace");
		return;
	}
	for (char **word = *words; *word; word++)
		if (strncmp(*word, "--", 2) == 0)
			wrong_usage(command, "%s: options come first, before %s", *word, **words);
}

enum command_option option_next(const char *command, char ***words, char **ret_value)
{
	char *word = **words;
	size_t length;

	*ret_value = NULL;
	if (!word || *word != '-' || is(word, "--")) {
		end_options(command, words);
		return OPTION_NONE;
	}
	if (is(word, "--help") || is(word, "-h"))
		help(find(command));
	if (is(word, "--version") || is(word, "-V"))
		version();
	++*words;
	length = strcspn(word, "=");
	for (int i = 0; i < OPTION_COUNT; i++) {
		const struct row *o = &options[i];

		if (!is(o->command, command) || strlen(o->name) + 2 != length ||
		    strncmp(word, "--", 2) != 0 || strncmp(word + 2, o->name, length - 2) != 0)
			continue;
		if (!*o->argument && word[length])
			wrong_usage(command, "%s: --%s takes no value", word, o->name);
		if (*o->argument)
			*ret_value = word[length] ? word + length + 1 : *(*words)++;
		if (*o->argument && !*ret_value)
			wrong_usage(command, "%s: needs a value", word);
		return (enum command_option)i;
	}
	wrong_usage(command, "%s: no such option", word);
}

int command_run(char **words)
{
	const struct command *c = find(words[0] ? words[0] : "");

	if (c)
		return c->run(words + 1);
	if (words[0] && is(words[0], "--version"))
		version();
	fprintf(stderr, "fiberize: %s: no such command; there are", words[0] ? words[0] : "");
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		fprintf(stderr, " %s", commands[i].name);
	fputc('\n', stderr);
	return EXIT_USAGE;
}
