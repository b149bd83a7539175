/* SPDX-License-Identifier: MIT */
#include "profiles.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "scripts/elf/file.h"

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
 * Returns why somebody other than root and the user could write this profile, or NULL if nobody
 * could. A profile names the library to be loaded, so its writer could run any code as the user.
 */
static char *not_trusted(const char *name, const struct stat *status)
{
	char *why = NULL;
	int length = 0;

	if (status->st_uid != 0 && status->st_uid != geteuid())
		length = asprintf(&why, "%s: ignored: it belongs to user %u, not to root or to user %u",
				  name, (unsigned)status->st_uid, (unsigned)geteuid());
	else if (S_ISREG(status->st_mode) && status->st_mode & (S_IWGRP | S_IWOTH))
		length = asprintf(&why, "%s: ignored: others may write it (mode %o); chmod go-w it",
				  name, (unsigned)status->st_mode & 07777);
	if (length < 0)
		abort();
	return why;
}

/* Read a whole regular file; NULL on failure. If the file must not be read, *ret_why says why. */
static char *read_file(const char *name, size_t *ret_length, char **ret_why)
{
	int fd;
	FILE *file;
	char *text = NULL;
	struct stat status;

	*ret_why = NULL;
	/* Check the link itself, too: its owner can make it lead to another file. */
	if (lstat(name, &status) == 0 && (*ret_why = not_trusted(name, &status)))
		return NULL;
	fd = file_open(name);
	file = fd < 0 ? NULL : fdopen(fd, "r");
	if (!file) {
		if (stat(name, &status) == 0)
			*ret_why = not_trusted(name, &status);
		return NULL;
	}
	if (fstat(fd, &status) == 0 && !(*ret_why = not_trusted(name, &status))) {
		text = grow(NULL, FZ_PROFILE_MAX, 1);
		*ret_length = fread(text, 1, FZ_PROFILE_MAX + 1, file);
		if (*ret_length > FZ_PROFILE_MAX &&
		    asprintf(ret_why, "%s: ignored: it has more than %d bytes", name, FZ_PROFILE_MAX) < 0)
			abort();
		if (*ret_why || ferror(file)) {
			free(text);
			text = NULL;
		}
	}
	fclose(file);
	return text;
}

/* The message on a wrong line, with file and line number; the caller frees it. */
static char *mistake(const struct fz_profile *p, enum fz_profile_found found, const char *file)
{
	static const char *const texts[] = {
		[FZ_PROFILE_ZERO_BYTE] = "a zero byte: a profile is plain text",
		[FZ_PROFILE_NEITHER] = "neither [PROGRAM] nor OPTION = VALUE",
		[FZ_PROFILE_NO_PROGRAM] = "[] names no program",
		[FZ_PROFILE_NO_SECTION] = "a setting before the first [PROGRAM]",
		[FZ_PROFILE_LATE] = "arguments: must be the first line of a section",
		[FZ_PROFILE_NOT_0_OR_1] = "everywhere: must be 0 or 1",
		[FZ_PROFILE_FOR_ALL] =
			"everywhere = 1: the section is for every program; name those that are meant",
	};
	char allowed[FZ_OPTION_TEXT], *text;
	int length;

	if (found == FZ_PROFILE_BAD_VALUE) {
		fz_option_allowed(p->option, allowed, sizeof(allowed));
		length = asprintf(&text, "%s:%zu: %s = %s: must be %s", file, p->line, p->name, p->value, allowed);
	} else if (found == FZ_PROFILE_NO_OPTION) {
		length = asprintf(&text, "%s:%zu: %s: no such option", file, p->line, p->name);
	} else {
		length = asprintf(&text, "%s:%zu: %s", file, p->line, texts[found]);
	}
	if (length < 0)
		abort();
	return text;
}

static void add_setting(struct profile *to, const struct fz_profile *p, const char **value)
{
	to->settings = grow(to->settings, to->count, sizeof(*to->settings));
	to->settings[to->count++] = (struct setting){ p->name, p->value, !*value };
	if (!*value)
		*value = p->value;
}

char *profiles_read(struct profiles *p, const char **values, const char *file,
		    const struct fz_profile_program *program, bool *ret_ignored)
{
	size_t length = 0;
	char *why, *text = read_file(file, &length, &why);
	enum fz_profile_found found;
	struct fz_profile reader;
	bool applied = false;

	*ret_ignored = why != NULL;
	if (!text) {
		if (!why && asprintf(&why, "%s: not a readable file", file) < 0)
			abort();
		return why;
	}
	file = keep(p, strdup(file));
	reader = fz_profile_begin(keep(p, text), length, program);
	while ((found = fz_profile_next(&reader)) != FZ_PROFILE_END) {
		if (found >= FZ_PROFILE_ZERO_BYTE)
			return mistake(&reader, found, file);
		if (found == FZ_PROFILE_SECTION && reader.applies) {
			p->all = grow(p->all, p->count, sizeof(*p->all));
			p->all[p->count++] = (struct profile){ .file = file, .pattern = reader.value };
		} else if (found == FZ_PROFILE_ARGUMENTS && applied && !reader.applies) {
			p->count--;
		} else if (found == FZ_PROFILE_OPTION && reader.applies) {
			add_setting(&p->all[p->count - 1], &reader, &values[reader.option - fz_options]);
		}
		applied = reader.applies;
	}
	return NULL;
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
