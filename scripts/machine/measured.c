/* SPDX-License-Identifier: MIT */
#include "measured.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "processes.h"

char *measured_key(int pid)
{
	char *program = process_program(pid), *command = process_command(pid), *key = NULL;

	if (program && command && asprintf(&key, "%s\n%s", program, command) < 0)
		abort();
	for (char *c = key; c && *c; c++)
		if (iscntrl((unsigned char)*c))
			*c = '?';
	if (key)
		key[strlen(program)] = '\t';
	free(program);
	free(command);
	return key;
}

/* The file, or NULL if there is none. */
static FILE *open_file(void)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	const bool by_home = !state || *state != '/';
	struct stat is;
	char *path;
	FILE *in;
	int fd;

	if (by_home)
		state = home && *home == '/' ? home : "/nonexistent";
	if (asprintf(&path, "%s%s/fiberize/measured", state, by_home ? "/.local/state" : "") < 0)
		abort();
	/* O_NONBLOCK: a FIFO there must not keep us waiting. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	free(path);
	in = fd >= 0 && fstat(fd, &is) == 0 && S_ISREG(is.st_mode) ? fdopen(fd, "r") : NULL;
	if (!in && fd >= 0)
		close(fd);
	return in;
}

/* Skip the first word of a command line that process_command() has quoted. */
static const char *arguments_of(const char *command)
{
	for (bool quoted = false; *command && (quoted || *command != ' '); command++) {
		if (*command == '\'')
			quoted = !quoted;
		else if (*command == '\\' && !quoted && command[1])
			command++;
	}
	return command;
}

/* How long is the number that begins at text[at], if it is an argument, or the end of one after "=" or ":"? Or 0. */
static size_t number_at(const char *text, size_t at)
{
	const size_t length = strspn(text + at, "0123456789");

	return length && at > 0 && strchr(" =:", text[at - 1]) && strchr(" ", text[at + length]) ? length : 0;
}

/* Are these the arguments of one command, apart from numbers? */
static bool same_but_numbers(const char *a, const char *b)
{
	size_t i = 0, j = 0;

	for (;;) {
		const size_t left = number_at(a, i), right = number_at(b, j);

		if (left && right) {
			i += left;
			j += right;
		} else if (a[i] != b[j]) {
			return false;
		} else if (!a[i]) {
			return true;
		} else {
			i++;
			j++;
		}
	}
}

size_t measured_find(const char *key, struct measured_case *ret, size_t room)
{
	const char *command = strchr(key, '\t') + 1;
	size_t count = 0, size = 0;
	FILE *in = open_file();
	char *line = NULL;
	long last = 0;

	while (in && getline(&line, &size, in) > 0) {
		struct measured_case c;
		char *tab;
		int at = 0;

		line[strcspn(line, "\n")] = '\0';
		if (sscanf(line, "%ld\t%31[^\t]\t%ld\t%ld\t%lf\t%lf\t%lf\t%15[^\t]\t%n", &c.when, c.version,
			   &c.connections, &c.rate, &c.median, &c.low, &c.high, c.verdict, &at) != 8 || !at)
			continue;
		tab = strchr(line + at, '\t');
		if (!tab || (size_t)(tab + 1 - line - at) != (size_t)(command - key) ||
		    strncmp(line + at, key, (size_t)(command - key)) != 0 ||
		    !same_but_numbers(arguments_of(tab + 1), arguments_of(command)))
			continue;
		if (c.when != last)
			count = 0;
		last = c.when;
		if (count < room)
			ret[count] = c;
		count++;
	}
	free(line);
	if (in)
		fclose(in);
	return count;
}
