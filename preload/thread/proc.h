/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_THREAD_PROC_H
#define FZ_PRELOAD_THREAD_PROC_H

/*
 * preload/thread/proc.h - files in which the kernel shows or takes state of one kernel thread:
 * below /proc/thread-self, below /proc/self/task/TID, and the files of a cgroup to which a thread
 * writes 0 to move itself.
 *
 * A fiber that opens such a file of its own is wired, so that the file is about the fiber.
 */

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "runtime/base/base.h"

enum { FZ_PROC_ROOM = 128 };

/* For fz_proc_reopen() only. */
const char *fz_proc_reopen_slowly(const char *path, int fd, char room[FZ_PROC_ROOM]);

/*
 * Called after an open of path has returned fd. Returns NULL if fd is the result. Otherwise the caller
 * opens the returned path by the real call: fd, if it was open, is closed, and the path may lie in
 * room. A fiber that has opened a file about itself is wired.
 */
static inline const char *fz_proc_reopen(const char *path, int fd, char room[FZ_PROC_ROOM])
{
	/* After any other error than ENOENT the memory of path may be unreadable. */
	if (FZ_UNLIKELY(fd < 0 && errno != ENOENT))
		return NULL;
	if (FZ_LIKELY(strncmp(path, "/proc/", 6) != 0 && strncmp(path, "/sys/f", 6) != 0))
		return NULL;
	return fz_proc_reopen_slowly(path, fd, room);
}

#endif
