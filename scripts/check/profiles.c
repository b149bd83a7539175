/* SPDX-License-Identifier: MIT */
#include "profiles.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/options.h"
#include "runtime/base/pattern.h"

static void *grow(void *array, size_t count, size_t size)
{
	array = reallocarray(array, count + 1, size);
	if (!array)
		abort();
	return array;
}

static char *keep(struct profiles *p, char *text)
{
	if (!text)
		abort();
	p->texts = grow(p->texts, p->text_count, sizeof(*p->texts));
	p->texts[p->text_count++] = text;
	return text;
}

/*
 * The writer of a profile chooses the library that is loaded, so only root or the user may be able to
 * write it. Returns why somebody else could write it, or NULL.
 */
static char *not_trusted(const char *name, const struct stat *status)
{
	char *why = NULL;
	int length = 0;

	if (status->st_uid != 0 && status->st_uid != geteuid())
		length = asprintf(&why, "%s: ignored: it belongs to user %u, not to root or to user %u",
				  name, (unsigned)status->st_uid, (unsigned)geteuid());
	else if (status->st_mode & (S_IWGRP | S_IWOTH))
		length = asprintf(&why, "%s: ignored: others may write it (mode %o); chmod go-w it",
				  name, (unsigned)status->st_mode & 07777);
	if (length < 0)
		abort();
	return why;
}

/*
 * Read a whole regular file and drop its zero bytes; NULL on failure. *ret_why tells why a file is
 * not to be read.
 */
static char *read_file(const char *name, char **ret_why)
{
	int fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
	size_t length = 0, room = 0;
	char *text = NULL;
	struct stat status;
	int c = EOF;

	*ret_why = NULL;
	if (!file) {
		if (stat(name, &status) == 0)
			*ret_why = not_trusted(name, &status);
		return NULL;
	}
	if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
	    !(*ret_why = not_trusted(name, &status)))
		do {
			c = getc(file);
			if (c == '\0')
				continue;
			if (length == room)
				text = grow(text, room += 4096, 1);
			text[length++] = c == EOF ? '\0' : (char)c;
		} while (c != EOF);
	fclose(file);
	return text;
}

/* Cut blanks at both ends. */
static char *trim(char *text)
{
	static const char blanks[] = " \t";
	size_t length = strlen(text);

	while (length && strchr(blanks, text[length - 1]))
		length--;
	text[length] = '\0';
	return text + strspn(text, blanks);
}

/* ---- patterns ----------------------------------------------------------- */

/* The length of the bracket expression that p begins with; 1 if it has no end. */
static size_t bracket_length(const char *p)
{
	size_t i = 1 + (p[1] == '!' || p[1] == '^');

	/* A bracket at the beginning is one of the characters. */
	for (i += p[i] == ']'; p[i] && p[i] != ']'; i++) {
		const char class[] = { p[i + 1], ']', '\0' };
		const char *end = NULL;

		if (p[i] == '[' && p[i + 1] && strchr(":.=", p[i + 1]))
			end = strstr(p + i + 2, class);
		if (end)
			i = (size_t)(end + 1 - p);
		else if (p[i] == '\\' && p[i + 1])
			i++;
	}
	return p[i] ? i + 1 : 1;
}

/* As fnmatch(3) reads patterns. libc's own function needs exponential time for stars. */
static size_t takes(const char *pattern, const char *end, char c)
{
	const char text[] = { c, '\0' };
	size_t length = *pattern == '[' ? bracket_length(pattern) : *pattern == '\\' ? 2 : 1;
	char *part = strndup(pattern, length);

	(void)end;
	if (!part)
		abort();
	/* strndup() cuts the length at the end of the pattern. */
	length = *part && fnmatch(part, text, 0) == 0 ? strlen(part) : 0;
	free(part);
	return length;
}

/* ---- one file ----------------------------------------------------------- */

struct reading {
	struct profiles *profiles;
	const char **values;
	const char *file;
	const struct subject *program;
	size_t line;
	bool section, applies;		/* inside a section; inside a section for the program */
	bool has_settings, has_name;	/* of the section; its pattern is not of wildcards alone */
};

static char *wrong(const struct reading *r, const char *what, const char *why)
{
	char *text;

	if (asprintf(&text, "%s:%zu: %s%s", r->file, r->line, what, why) < 0)
		abort();
	return text;
}

static bool matches(const char *pattern, const char *name)
{
	return name && fz_pattern_matches(pattern, strchr(pattern, '\0'), name, takes);
}

static char *read_section(struct reading *r, char *pattern)
{
	struct profiles *p = r->profiles;

	if (!*pattern)
		return wrong(r, "[]", " names no program");
	r->section = true;
	r->has_settings = false;
	r->has_name = pattern[strspn(pattern, "*?/")];
	/* A pattern with a slash is one of paths. */
	r->applies = strchr(pattern, '/') ?
		     matches(pattern, r->program->path) || matches(pattern, r->program->file) :
		     matches(pattern, basename(r->program->name));
	if (r->applies) {
		p->all = grow(p->all, p->count, sizeof(*p->all));
		p->all[p->count++] = (struct profile){ .file = r->file, .pattern = pattern };
	}
	return NULL;
}

/* The arguments for which the section is; its first line. */
static char *read_arguments(struct reading *r, const char *pattern)
{
	if (r->has_settings)
		return wrong(r, "arguments", ": must be the first line of a section");
	if (r->applies && !matches(pattern, r->program->arguments)) {
		r->applies = false;
		r->profiles->count--;
	}
	return NULL;
}

/* Whether the program runs with the library if each program finds it: preload/stub decides that. */
static char *check_everywhere(const struct reading *r, const char *value)
{
	if (strcmp(value, "0") != 0 && strcmp(value, "1") != 0)
		return wrong(r, "everywhere", ": must be 0 or 1");
	if (*value == '1' && !r->has_name)
		return wrong(r, "everywhere = 1", ": the section is for every program; name those that are meant");
	return NULL;
}

static char *read_setting(struct reading *r, char *name, char *value)
{
	const struct fz_option *o = fz_option_of_flag(name, strlen(name));
	char allowed[FZ_OPTION_TEXT], *text, *why;
	struct profile *last;
	uint64_t number;
	bool used;

	if (!r->section)
		return wrong(r, "", "a setting before the first [PROGRAM]");
	if (strcmp(name, "arguments") == 0)
		return read_arguments(r, value);
	r->has_settings = true;
	if (strcmp(name, "everywhere") == 0)
		return check_everywhere(r, value);
	if (!o)
		return wrong(r, name, ": no such option");
	if (!fz_option_parse(o, value, &number)) {
		fz_option_allowed(o, allowed, sizeof(allowed));
		if (asprintf(&text, "%s = %s: must be %s", name, value, allowed) < 0)
			abort();
		why = wrong(r, "", text);
		free(text);
		return why;
	}
	if (!r->applies)
		return NULL;
	used = !r->values[o - fz_options];
	if (used)
		r->values[o - fz_options] = value;
	last = &r->profiles->all[r->profiles->count - 1];
	last->settings = grow(last->settings, last->count, sizeof(*last->settings));
	last->settings[last->count++] = (struct setting){ name, value, used };
	return NULL;
}

static char *read_line(struct reading *r, char *line)
{
	size_t length = strlen(line);
	char *equals;

	if (!length || *line == '#' || *line == ';')
		return NULL;
	if (*line == '[' && length > 1 && line[length - 1] == ']') {
		line[length - 1] = '\0';
		return read_section(r, trim(line + 1));
	}
	equals = strchr(line, '=');
	if (!equals)
		return wrong(r, "", "neither [PROGRAM] nor OPTION = VALUE");
	*equals = '\0';
	return read_setting(r, trim(line), trim(equals + 1));
}

char *profiles_read(struct profiles *p, const char **values, const char *file,
		    const struct subject *program, bool *ret_ignored)
{
	static const char byte_order_mark[] = "\357\273\277";
	char *why, *rest = read_file(file, &why), *line;
	struct reading r = { .profiles = p, .values = values, .file = keep(p, strdup(file)),
			     .program = program };

	*ret_ignored = why != NULL;
	if (!rest) {
		if (!why && asprintf(&why, "%s: not a readable file", file) < 0)
			abort();
		return why;
	}
	keep(p, rest);
	/* Editors on Windows put a byte order mark at the start of a file. */
	if (strncmp(rest, byte_order_mark, 3) == 0)
		rest += 3;
	while (!why && (line = strsep(&rest, "\n"))) {
		size_t length = strlen(line);

		r.line++;
		if (length && line[length - 1] == '\r')
			line[length - 1] = '\0';
		why = read_line(&r, trim(line));
	}
	return why;
}

void profiles_free(struct profiles *p)
{
	for (size_t i = 0; i < p->count; i++)
		free(p->all[i].settings);
	for (size_t i = 0; i < p->text_count; i++)
		free(p->texts[i]);
	free(p->all);
	free(p->texts);
}
