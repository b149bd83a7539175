/* SPDX-License-Identifier: MIT */
#include "preload/stub/rules.h"

#include <asm/errno.h>
#include <asm/fcntl.h>
#include <asm/stat.h>
#include <asm/unistd.h>
#include <linux/fcntl.h>
#include <stdint.h>

#include "arch/arch.h"
#include "runtime/base/pattern.h"

#define FOLDER "/etc/fiberize/"

enum {
	NAMES = 16384,		/* bytes of the folder's entries */
	TEXT = 65536,		/* bytes of a file, with a zero */
	PATH = 512,
};

/* The kernel's record of an entry. */
struct entry {
	uint64_t inode;
	int64_t next;
	uint16_t size;
	uint8_t type;
	char name[];
};

/* Not on the stack, which may be tiny; pages that are not used are not there. */
static char names[NAMES] __attribute__((aligned(8)));
static char text[TEXT];
static char file[1024];

static bool failed(long ret)
{
	return ret < 0 && ret > -4096;
}

static long open_for_reading(const char *path, int flags)
{
	return fz_syscall4(__NR_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | flags, 0);
}

bool fz_rules_all_off(void)
{
	/* By the call that the loader has just made: a filter may end a process that makes others. */
	long fd = open_for_reading(FOLDER "disable", O_PATH);

	if (!failed(fd))
		fz_syscall1(__NR_close, fd);
	/* Also if it may not be looked at: it is there. */
	return fd != -ENOENT && fd != -ENOTDIR;
}

/* ---- one section ---------------------------------------------------------- */

struct reading {
	struct fz_rules *rules;
	bool applies;		/* inside a section for the program */
	bool has_name;		/* whose pattern is not of wildcards alone */
};

static const char *end_of(const char *of)
{
	return of + fz_text_length(of);
}

/* The launcher knows brackets, this does not: such a pattern matches nothing. */
static bool matches(const char *pattern, const char *name)
{
	return !fz_text_contains(pattern, "[") && !fz_text_contains(pattern, "\\") &&
	       fz_pattern_matches(pattern, end_of(pattern), name, fz_pattern_takes);
}

/* The file that runs: it differs from the name that was executed by links, directories and #!. */
static const char *file_of(struct fz_rules *r)
{
	if (!r->file) {
		fz_syscall4(__NR_readlinkat, AT_FDCWD, (long)"/proc/self/exe", (long)file, sizeof(file) - 1);
		r->file = file;
	}
	return r->file;
}

/* A pattern with a slash is one of whole paths, any other of last parts. */
static void read_section(struct reading *r, const char *pattern)
{
	bool of_paths = false;

	r->has_name = false;
	for (const char *c = pattern; *c; c++) {
		of_paths |= *c == '/';
		r->has_name |= *c != '*' && *c != '?' && *c != '/';
	}
	r->applies = of_paths ? matches(pattern, r->rules->path) || matches(pattern, file_of(r->rules)) :
				matches(pattern, fz_text_base(r->rules->path));
}

static void keep_option(struct fz_rules *r, const char *name, const char *value)
{
	static const char prefix[] = "FIBERIZE_";
	char *variable = fz_text_next(&r->text), *at;

	fz_text_put(&r->text, prefix);
	fz_text_put(&r->text, name);
	for (at = variable + sizeof(prefix) - 1; *at; at++) {
		if (*at >= 'a' && *at <= 'z')
			*at = (char)(*at - 'a' + 'A');
		else if (*at == '-')
			*at = '_';
		else
			break;
	}
	fz_text_put(&r->text, "=");
	if (*at != '=' || r->text.full || r->count == FZ_RULES_OPTIONS)
		goto forget;
	for (size_t i = 0; i < r->count; i++)
		if (fz_text_after(r->variables[i], variable))
			goto forget;
	fz_text_put(&r->text, value);
	if (r->text.full)
		goto forget;
	r->variables[r->count++] = variable;
	return;
forget:
	r->text.at = variable;
}

static void read_setting(struct reading *r, const char *name, const char *value)
{
	struct fz_rules *rules = r->rules;

	if (!r->applies)
		return;
	if (fz_text_equal(name, "arguments")) {
		r->applies = matches(value, rules->arguments);
	} else if (fz_text_equal(name, "everywhere")) {
		if (rules->verdict != FZ_VERDICT_NONE)
			return;
		if (fz_text_equal(value, "0"))
			rules->verdict = FZ_VERDICT_OFF;
		else if (fz_text_equal(value, "1") && r->has_name)
			rules->verdict = FZ_VERDICT_ON;
	} else if (!fz_text_equal(name, "library")) {
		keep_option(rules, name, value);
	}
}

/* ---- one file ------------------------------------------------------------- */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* Cut blanks at both ends of the text that ends before end. */
static char *trim(char *line, char *end)
{
	while (end > line && is_blank(end[-1]))
		end--;
	*end = '\0';
	while (is_blank(*line))
		line++;
	return line;
}

static void read_line(struct reading *r, char *line, char *end)
{
	char *equals;

	if (end > line && end[-1] == '\r')
		end--;
	line = trim(line, end);
	end = line + fz_text_length(line);
	if (line == end || *line == '#' || *line == ';')
		return;
	if (*line == '[' && end[-1] == ']' && end - line > 2) {
		read_section(r, trim(line + 1, end - 1));
		return;
	}
	for (equals = line; *equals && *equals != '=';)
		equals++;
	if (*equals) {
		char *name = trim(line, equals);

		read_setting(r, name, trim(equals + 1, end));
	}
}

/* Read a file that root alone may write. Returns its length; 0 if it is not to be used. */
static size_t read_text(const char *path)
{
	long fd = open_for_reading(path, 0), got = -1;
	size_t length = 0;
	struct stat status;

	if (failed(fd))
		return 0;
	if (!failed(fz_syscall2(__NR_fstat, fd, (long)&status)) && (status.st_mode & 0170000) == 0100000 &&
	    status.st_uid == 0 && !(status.st_mode & 022))
		do {
			got = fz_syscall3(__NR_read, fd, (long)(text + length), (long)(TEXT - 1 - length));
			length += got > 0 ? (size_t)got : 0;
		} while (got > 0 && length < TEXT - 1);
	fz_syscall1(__NR_close, fd);
	/* A file that is longer counts for nothing, rather than up to here. */
	return got == 0 ? length : 0;
}

void fz_rules_read_text(struct fz_rules *rules, char *profile, size_t length)
{
	struct reading r = { .rules = rules };
	char *line = profile, *end = profile + length;

	if (length >= 3 && fz_text_after(profile, "\357\273\277"))
		line += 3;
	for (char *at = line; length && at <= end; at++)
		if (at == end || *at == '\n') {
			/* The end is a place of its own. */
			read_line(&r, line, at);
			line = at + 1;
		}
}

/* ---- the folder ----------------------------------------------------------- */

static bool before(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return (unsigned char)*a < (unsigned char)*b;
}

static bool is_profile(const char *name)
{
	size_t length = fz_text_length(name);

	return *name != '.' && length > 5 && fz_text_equal(name + length - 5, ".conf");
}

/* The first name of a profile behind the last one in the order of names; NULL: there is none. */
static const char *next_profile(size_t length, const char *last)
{
	const char *next = NULL;

	for (size_t at = 0; at < length;) {
		const struct entry *e = (const struct entry *)(names + at);

		if (is_profile(e->name) && (!last || before(last, e->name)) &&
		    (!next || before(e->name, next)))
			next = e->name;
		at += e->size;
	}
	return next;
}

void fz_rules_read(struct fz_rules *r)
{
	long fd = open_for_reading(FOLDER, O_DIRECTORY), got;
	const char *name = NULL;
	size_t length = 0;

	if (failed(fd))
		return;
	do {
		got = fz_syscall3(__NR_getdents64, fd, (long)(names + length), (long)(NAMES - length));
		length += got > 0 ? (size_t)got : 0;
	} while (got > 0);
	fz_syscall1(__NR_close, fd);
	/* Without all names, what is denied could be missing. */
	if (got < 0)
		return;
	while ((name = next_profile(length, name))) {
		char path[PATH];
		struct fz_text_buffer b = { path, path + sizeof(path), false };

		fz_text_put(&b, FOLDER);
		fz_text_put(&b, name);
		if (!b.full)
			fz_rules_read_text(r, text, read_text(path));
	}
}
