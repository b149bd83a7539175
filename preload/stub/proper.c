/* SPDX-License-Identifier: MIT */
#include "preload/stub/proper.h"

#include <asm/fcntl.h>
#include <asm/stat.h>
#include <asm/unistd.h>
#include <linux/fcntl.h>
#include <linux/mman.h>
#include <string.h>

#include "arch/arch.h"
#include "fit.h"
#include "preload/stub/host.h"
#include "preload/stub/image.h"
#include "preload/stub/text.h"

enum { PARENTS = 3 };

static bool failed(long ret)
{
	return ret < 0 && ret > -4096;
}

/* May code of this file be mapped? A file system mounted with noexec forbids that, or a security policy. */
static bool may_run(int fd)
{
	long code = fz_syscall6(__NR_mmap, 0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);

	if (failed(code))
		return false;
	fz_syscall2(__NR_munmap, code, 4096);
	return true;
}

static const char *why_unfit(int fd)
{
	const char *why = NULL;
	struct stat status;
	long file;

	if (failed(fz_syscall2(__NR_fstat, fd, (long)&status)) || (status.st_mode & 0170000) != 0100000)
		return "libfiberize.so is not a file";
	file = fz_syscall6(__NR_mmap, 0, (long)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (failed(file))
		return "libfiberize.so cannot be mapped";
	if (!fz_image_is_whole((const unsigned char *)file, (size_t)status.st_size, FZ_FIT_MACHINE))
		why = "libfiberize.so is truncated, or for another machine";
	else if (fz_image_sum((const unsigned char *)file) != FZ_FIT_SUM)
		why = "libfiberize.so is damaged, or of another version";
	else if (!may_run(fd))
		why = "libfiberize.so is where no code may run";
	fz_syscall2(__NR_munmap, file, (long)status.st_size);
	return why;
}

const char *fz_proper_find(const char *own_path, char *path, size_t size)
{
	static const char name[] = "libfiberize.so";
	const char *directory_end = own_path;
	const char *why;
	long fd = -1;

	if (fz_stub_libc_minor() < FZ_FIT_LIBC_MINOR)
		return "this glibc is older than the one that libfiberize.so needs";
	if (!own_path)
		return "the loader does not know this library";
	directory_end = fz_text_base(own_path);
	/* By the name libfiberize.so there is this library itself in its directory (stub.c, is_asked_for()). */
	for (int up = strcmp(directory_end, name) == 0; failed(fd) && up <= PARENTS; up++) {
		struct fz_text_buffer b = { path, path + size, false };

		for (const char *c = own_path; c < directory_end; c++) {
			const char one[] = { *c, '\0' };

			fz_text_put(&b, one);
		}
		for (int i = 0; i < up; i++)
			fz_text_put(&b, "../");
		fz_text_put(&b, name);
		if (b.full)
			return "its path is too long";
		fd = fz_syscall4(__NR_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
	}
	if (failed(fd))
		return "libfiberize.so cannot be opened";
	/* LD_PRELOAD separates names by colons and blanks. */
	for (const char *c = path; *c; c++)
		if (*c == ':' || *c == ' ') {
			fz_syscall1(__NR_close, fd);
			return "there is a colon or a blank in its path";
		}
	why = why_unfit((int)fd);
	fz_syscall1(__NR_close, fd);
	return why;
}
