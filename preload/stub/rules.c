/* SPDX-License-Identifier: MIT */
#include "preload/stub/rules.h"

#include <asm/errno.h>
#include <asm/fcntl.h>
#include <asm/stat.h>
#include <asm/unistd.h>
#include <linux/fcntl.h>
#include <stdint.h>
#include <string.h>

#include "arch/arch.h"
#include "runtime/base/profile.h"

#define FOLDER "/etc/fiberize/"

enum {
	NAMES = 16384,		/* bytes of the folder's entries */
	PATH = 512,
};

/* A directory entry, as getdents64 returns it. */
struct entry {
	uint64_t inode;
	int64_t next;
	uint16_t size;
	uint8_t type;
	char name[];
};

/* Static, because the stack may be tiny. Pages that are never touched use no memory. */
static char names[NAMES] __attribute__((aligned(8)));
static char text[FZ_PROFILE_MAX + 1];
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
	/* openat, because the loader has just used it: a filter may end a process that makes other calls. */
	long fd = open_for_reading(FOLDER "disable", O_PATH);

	if (!failed(fd))
		fz_syscall1(__NR_close, fd);
	/* After any other error, such as EACCES, the file is taken to exist. */
	return fd != -ENOENT && fd != -ENOTDIR;
}

/* ---- one file ------------------------------------------------------------- */

/*
 * Returns the path of the file that runs. The name that was executed may differ: it may be relative, a
 * symbolic link, or a script that begins with #!.
 */
static const char *find_file(void)
{
	if (!*file)
		fz_syscall4(__NR_readlinkat, AT_FDCWD, (long)"/proc/self/exe", (long)file, sizeof(file) - 1);
	return file;
}

static void keep_option(struct fz_rules *r, const struct fz_option *o, const char *value)
{
	const size_t id = (size_t)(o - fz_options);
	char *variable;

	/* The option that names the library has no effect: fz_proper_find() finds the one beside the stub. */
	if (r->variables[id] || id == FZ_OPTION_ID_library)
		return;
	variable = fz_text_next(&r->text);
	fz_text_put(&r->text, o->variable);
	fz_text_put(&r->text, "=");
	fz_text_put(&r->text, value);
	if (!r->text.full)
		r->variables[id] = variable;
}

/*
 * Read a file into `text`, if nobody but root may write to the file. Returns its length, or 0 if the
 * file must not be used.
 */
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
			got = fz_syscall3(__NR_read, fd, (long)(text + length), (long)(sizeof(text) - length));
			length += got > 0 ? (size_t)got : 0;
		} while (got > 0 && length < sizeof(text));
	fz_syscall1(__NR_close, fd);
	return got == 0 ? length : 0;
}

static void read_profile(struct fz_rules *r, const char *path)
{
	const struct fz_profile_program program = {
		.name = r->path, .path = r->path, .find_file = find_file, .arguments = r->arguments,
	};
	struct fz_profile p = fz_profile_begin(text, read_text(path), &program);
	enum fz_profile_found found;

	while ((found = fz_profile_next(&p)) != FZ_PROFILE_END)
		if (found == FZ_PROFILE_OPTION && p.applies)
			keep_option(r, p.option, p.value);
		else if (found == FZ_PROFILE_EVERYWHERE && p.applies && r->verdict == FZ_VERDICT_NONE)
			r->verdict = *p.value == '1' ? FZ_VERDICT_ON : FZ_VERDICT_OFF;
}

/* ---- the folder ----------------------------------------------------------- */

static bool is_profile(const char *name)
{
	size_t length = strlen(name);

	return *name != '.' && length > 5 && strcmp(name + length - 5, ".conf") == 0;
}

/* Returns the name of the profile that follows `last` in alphabetical order, or NULL. */
static const char *next_profile(size_t length, const char *last)
{
	const char *next = NULL;

	for (size_t at = 0; at < length;) {
		const struct entry *e = (const struct entry *)(names + at);

		if (is_profile(e->name) && (!last || strcmp(last, e->name) < 0) &&
		    (!next || strcmp(e->name, next) < 0))
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
	/* If names are missing, a profile that switches fibers off may be among them: use no profile. */
	if (got < 0)
		return;
	while ((name = next_profile(length, name))) {
		char path[PATH];
		struct fz_text_buffer b = { path, path + sizeof(path), false };

		fz_text_put(&b, FOLDER);
		fz_text_put(&b, name);
		if (!b.full)
			read_profile(r, path);
	}
}
