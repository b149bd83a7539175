/* SPDX-License-Identifier: MIT */
#ifndef ELF_FILE_H
#define ELF_FILE_H

/*
 * scripts/elf/file.h - opens files whose names come from others: from a program, a system below --root.
 *
 * Only regular files are opened.  Opening a device may do something (rewind a tape, start a watchdog), and opening a FIFO
 * may wait, or end the wait of its writer, so it does not suffice to look at the descriptor.
 */

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* What a file of this mode is, in words; NULL if it is a regular file. */
static inline const char *file_kind(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG: return NULL;
	case S_IFDIR: return "a directory";
	case S_IFIFO: return "a FIFO";
	case S_IFSOCK: return "a socket";
	default: return "a device";
	}
}

/* Open the file for reading.  Returns a descriptor, or -1 with errno: EINVAL or EISDIR for what is no regular file. */
static inline int file_open(const char *path)
{
	struct stat status;
	int fd = -1;

	if (stat(path, &status) != 0)
		return -1;
	if (S_ISREG(status.st_mode)) {
		/* The name may lead elsewhere meanwhile: the flags, and the second look, are for that case. */
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
		if (fd < 0 || (fstat(fd, &status) == 0 && S_ISREG(status.st_mode)))
			return fd;
		close(fd);
	}
	errno = S_ISDIR(status.st_mode) ? EISDIR : EINVAL;
	return -1;
}

#endif
