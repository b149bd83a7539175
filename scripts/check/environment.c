/* SPDX-License-Identifier: MIT */
#include "environment.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report.h"

#define CARRIED "FIBERIZE_ENV_"

struct list {
	char **entry;
	size_t count;
};

static bool starts(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool append(struct list *l, char *entry)
{
	char **more = realloc(l->entry, (l->count + 1) * sizeof(*more));

	if (!more)
		return false;
	l->entry = more;
	more[l->count++] = entry;
	return true;
}

static void read_original(FILE *file, struct list *ret)
{
	char *entry = NULL;
	size_t room = 0;

	while (getdelim(&entry, &room, '\0', file) > 0 && append(ret, entry)) {
		entry = NULL;
		room = 0;
	}
	free(entry);
}

static size_t name_length(const char *entry)
{
	return strcspn(entry, "=");
}

static const char *find(char **entries, size_t count, const char *name, size_t length)
{
	for (size_t i = 0; i < count; i++)
		if (strncmp(entries[i], name, length) == 0 && entries[i][length] == '=')
			return entries[i];
	return NULL;
}

/* What the launcher itself sees to. */
static bool not_ours(const char *entry)
{
	return !starts(entry, "FIBERIZE_") && !starts(entry, "LD_PRELOAD=") &&
	       !starts(entry, "PATH=");
}

/* A word for eval.  A newline is the launcher's $newline, so that it is one line. */
static void put_assignment(size_t number, const char *text, size_t length, FILE *out)
{
	fprintf(out, " " CARRIED "%zu='", number);
	for (size_t i = 0; i < length; i++) {
		if (text[i] == '\'')
			fputs("'\\''", out);
		else if (text[i] == '\n')
			fputs("'\"$newline\"'", out);
		else
			fputc(text[i], out);
	}
	fputc('\'', out);
}

void environment_compare(FILE *in, FILE *out)
{
	struct list original = { NULL, 0 };
	size_t own_count = 0, number = 0;

	read_original(in, &original);
	while (environ[own_count])
		own_count++;
	for (size_t i = 0; i < original.count; i++) {
		const char *entry = original.entry[i], *kept;
		size_t length = name_length(entry);

		/* Of two with one name, getenv() takes the first. */
		if (!entry[length] || !not_ours(entry) ||
		    find(original.entry, i, entry, length))
			continue;
		kept = find(environ, own_count, entry, length);
		/* The launcher's variables are lower case, and it is not done yet. */
		if (kept && strcmp(kept, entry) == 0 && !(*entry >= 'a' && *entry <= 'z'))
			continue;
		put_assignment(number++, entry, strlen(entry), out);
	}
	/* Without /proc nothing is known. */
	for (size_t i = 0; i < own_count && original.count; i++) {
		size_t length = name_length(environ[i]);

		if (not_ours(environ[i]) &&
		    !find(original.entry, original.count, environ[i], length))
			put_assignment(number++, environ[i], length, out);
	}
	for (size_t i = 0; i < original.count; i++)
		free(original.entry[i]);
	free(original.entry);
}

static bool restore(void)
{
	struct list carried = { NULL, 0 };
	size_t i = 0;

	while (environ[i]) {
		size_t length = name_length(environ[i]);
		char *name, *text;

		if (!starts(environ[i], CARRIED) || !environ[i][length]) {
			i++;
			continue;
		}
		name = strndup(environ[i], length);
		text = strdup(environ[i] + length + 1);
		if (!name || !text || !append(&carried, text) || unsetenv(name) != 0)
			return false;
		free(name);
	}
	for (i = 0; i < carried.count; i++) {
		if (!strchr(carried.entry[i], '='))
			unsetenv(carried.entry[i]);
		else if (putenv(carried.entry[i]) != 0)
			return false;
	}
	free(carried.entry);
	return true;
}

int environment_exec(const char *file, char **argv, bool scripts)
{
	size_t count = 0;
	char **words;
	int err;

	if (!restore()) {
		fputs("fiberize: no memory for the environment\n", stderr);
		return 1;
	}
	execv(file, argv);
	err = errno;
	while (argv[count])
		count++;
	/* What the kernel does not know is a script of the shell's. */
	words = err == ENOEXEC && scripts ? calloc(count + 2, sizeof(*words)) : NULL;
	if (words) {
		words[0] = (char *)"/bin/sh";
		words[1] = (char *)file;
		for (size_t i = 1; i < count; i++)
			words[i + 1] = argv[i];
		execv(words[0], words);
		err = errno;
	}
	fputs("fiberize: ", stderr);
	put_line(file, stderr);
	fprintf(stderr, ": %s\n", strerror(err));
	return err == ENOENT ? CODE_NOTFOUND : CODE_NOEXEC;
}
