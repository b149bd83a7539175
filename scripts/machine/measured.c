/* SPDX-License-Identifier: MIT */
#include "measured.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "processes.h"
#include "scripts/elf/file.h"

enum { KEY_MOST = 32 << 10 };

bool measured_place(struct measured_place *ret)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");

	ret->is_home = !state || *state != '/';
	if (ret->is_home)
		state = home;
	if (!state || *state != '/')
		return false;
	ret->base = strlen(state);
	while (ret->base && state[ret->base - 1] == '/')
		ret->base--;
	if (asprintf(&ret->directory, "%s%s/fiberize", state, ret->is_home ? "/.local/state" : "") < 0)
		abort();
	return true;
}

char *measured_key(int pid, int beside)
{
	char *directory = process_directory(pid), *other = beside ? process_directory(beside) : NULL;
	char *program = process_program(pid), *command = process_command(pid), *key = NULL;
	const char *known = directory && (!beside || (other && strcmp(directory, other) == 0)) ? directory : "-";

	if (program && command && strlen(known) + strlen(program) + strlen(command) < KEY_MOST &&
	    asprintf(&key, "%s\n%s\n%s", known, program, command) < 0)
		abort();
	for (char *c = key; c && *c; c++)
		if (iscntrl((unsigned char)*c))
			*c = '?';
	if (key) {
		key[strlen(known)] = '\t';
		key[strlen(known) + 1 + strlen(program)] = '\t';
	}
	free(directory);
	free(other);
	free(program);
	free(command);
	return key;
}

/* The file, or -1 if there is none. */
static int open_file(void)
{
	struct measured_place place;
	char *path;
	int fd;

	if (!measured_place(&place))
		return -1;
	if (asprintf(&path, "%s/measured", place.directory) < 0)
		abort();
	fd = file_open(path);
	free(path);
	free(place.directory);
	return fd;
}

char *measured_read(void)
{
	const int fd = open_file();
	char *text, *line;
	size_t size = 0;
	ssize_t got;
	off_t end;

	if (fd < 0)
		return NULL;
	text = malloc(MEASURED_FILE_MOST + 1);
	if (!text)
		abort();
	end = lseek(fd, 0, SEEK_END);
	if (end > (off_t)MEASURED_FILE_MOST)
		lseek(fd, end - (off_t)MEASURED_FILE_MOST, SEEK_SET);
	else
		lseek(fd, 0, SEEK_SET);
	while (size < MEASURED_FILE_MOST && (got = read(fd, text + size, MEASURED_FILE_MOST - size)) > 0)
		size += (size_t)got;
	close(fd);
	/* A NUL would end the text; no line that has one is ours. */
	for (size_t i = 0; i < size; i++)
		text[i] = text[i] ?: '\001';
	text[size] = '\0';
	if (end > (off_t)MEASURED_FILE_MOST) {
		line = strchr(text, '\n');
		memmove(text, line ? line + 1 : text + size, line ? strlen(line) : 1);
	}
	return text;
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

/* Is a word, or a part of one, a number or the absolute name of a file? */
static bool is_absolute(const char *word, size_t length)
{
	size_t digits = 0;

	if (!length || *word == '/')
		return true;
	while (digits < length && (isdigit((unsigned char)word[digits]) || (digits && word[digits] == '.')))
		digits++;
	return digits == length;
}

/* May one of the arguments be the relative name of a file? What is quoted may be anything. */
static bool have_relative(const char *arguments)
{
	for (const char *word = arguments; *word; ) {
		const char *end = word + strcspn(word, " ");
		const bool is_option = *word == '-';

		for (bool first = true; word < end; first = false) {
			const size_t length = strcspn(word, " =:,");
			/* The name of an option, with nothing of a file's behind it. */
			const bool is_name = is_option && first && strcspn(word, "/.\\'") >= length;

			if (!is_name && !is_absolute(word, length))
				return true;
			word += length + (word + length < end);
		}
		word = end + (*end == ' ');
	}
	return false;
}

/* Take the next field, which has no other characters than these and at most `most` of them, from a line. */
static bool take_field(const char **line, const char *allowed, size_t most, char *ret_text)
{
	const size_t length = strcspn(*line, "\t\n");

	if (!length || length > most || (*line)[length] != '\t' || strspn(*line, allowed) < length)
		return false;
	memcpy(ret_text, *line, length);
	ret_text[length] = '\0';
	*line += length + 1;
	return true;
}

static bool take_whole(const char **line, long *ret)
{
	char text[13];

	if (!take_field(line, "0123456789", sizeof(text) - 1, text))
		return false;
	*ret = atol(text);
	return true;
}

static bool take_ratio(const char **line, double *ret)
{
	char text[13], *end;

	if (!take_field(line, "0123456789.", sizeof(text) - 1, text))
		return false;
	*ret = strtod(text, &end);
	return !*end;
}

/* Read a line up to its key, or return NULL: anything may be in the file. */
static const char *read_case(const char *line, struct measured_case *ret)
{
	static const char words[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .,+~:_-";

	if (take_whole(&line, &ret->when) && take_field(&line, words, sizeof(ret->version) - 1, ret->version) &&
	    take_whole(&line, &ret->connections) && take_whole(&line, &ret->rate) && take_ratio(&line, &ret->median) &&
	    take_ratio(&line, &ret->low) && take_ratio(&line, &ret->high) &&
	    take_field(&line, words, sizeof(ret->verdict) - 1, ret->verdict))
		return line;
	return NULL;
}

/* Is this the key of a bench that holds for a process with the other key? */
static bool fits(const char *recorded, const char *key)
{
	const char *program = strchr(recorded, '\t'), *wanted = strchr(key, '\t');
	const char *command = program ? strchr(program + 1, '\t') : NULL, *ours = strchr(wanted + 1, '\t');

	if (!command || command - program != ours - wanted ||
	    strncmp(program, wanted, (size_t)(ours - wanted)) != 0)
		return false;
	command = arguments_of(command + 1);
	ours = arguments_of(ours + 1);
	if (!same_but_numbers(command, ours))
		return false;
	return !have_relative(ours) || (*key == '/' && program - recorded == wanted - key &&
					strncmp(recorded, key, (size_t)(wanted - key)) == 0);
}

size_t measured_find(const char *text, const char *key, struct measured_case *ret, size_t room)
{
	size_t count = 0;
	long last = 0;

	for (const char *next; *text; text = next) {
		const char *end = strchrnul(text, '\n'), *recorded;
		struct measured_case c;
		char *line;

		next = end + (*end == '\n');
		recorded = read_case(text, &c);
		if (!recorded)
			continue;
		line = strndup(recorded, (size_t)(end - recorded));
		if (!line)
			abort();
		if (fits(line, key)) {
			if (c.when != last)
				count = 0;
			last = c.when;
			if (count < room)
				ret[count] = c;
			count++;
		}
		free(line);
	}
	return count;
}
