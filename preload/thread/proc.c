/* SPDX-License-Identifier: MIT */
#include "preload/thread/proc.h"

#include "preload/gate.h"
#include "preload/init.h"
#include "preload/thread/kernel_state.h"

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

/* Is the file about the kernel thread that opens it, or writes to it? */
static bool is_of_caller(const char *path, int fd)
{
	const char *name = strrchr(path, '/') + 1;

	if (begins(path, "/proc/thread-self"))
		return true;
	return begins(path, "/sys/fs/cgroup/") &&
	       (strcmp(name, "cgroup.threads") == 0 || strcmp(name, "tasks") == 0) &&
	       (fz_real.fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY;
}

/*
 * Returns the tid in /proc/TID or /proc/ANYTHING/task/TID, or 0 if path has none. *ret_end points
 * behind the tid.
 */
static int tid_of(const char *path, const char **ret_end)
{
	const char *task = strstr(path, "/task/"), *number = task ? task + 6 : path + 6;
	char *end;
	long tid = strtol(number, &end, 10);

	*ret_end = end;
	return begins(path, "/proc/") && end != number && (*end == 0 || *end == '/') ? (int)tid : 0;
}

const char *fz_proc_reopen_slowly(const char *path, int fd, char room[FZ_PROC_ROOM])
{
	struct fz_fiber *self = fz_self(), *fiber;
	int saved = errno;
	const char *rest;

	if (!fz_runtime_runs() || !fz_is_fiber(self) ||
	    atomic_load_explicit(&self->in_runtime, memory_order_relaxed))
		return NULL;
	if (fd >= 0) {
		if (self->kind == FZ_KIND_WIRED || !is_of_caller(path, fd))
			return NULL;
		fz_real.close(fd);
		fz_wire_for_state();
		return path;
	}
	fiber = fz_fiber_by_tid(tid_of(path, &rest));
	if (fiber == self)
		fz_wire_for_state();
	errno = saved;
	/* The kernel has no files for a fiber that is not wired. */
	if (!fiber || fiber->kind != FZ_KIND_WIRED)
		return NULL;
	if (snprintf(room, FZ_PROC_ROOM, "/proc/self/task/%d%s", fz_fiber_kernel_tid(fiber), rest) >=
	    FZ_PROC_ROOM)
		return NULL;
	return room;
}
