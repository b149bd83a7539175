/* SPDX-License-Identifier: MIT */
#include "preload/process/parent.h"

#include <sys/syscall.h>

#include "preload/real_call.h"
#include "runtime/sched/sched.h"

enum { MOST = 64 };

/* Returns the id of the process to which a pidfd refers, or 0. */
static pid_t pid_of(int pidfd)
{
	char path[40], text[512] = "", *at;
	long fd, n = -1;

	snprintf(path, sizeof(path), "/proc/thread-self/fdinfo/%d", pidfd);
	fd = fz_syscall4(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0);
	if (fd >= 0) {
		n = fz_syscall3(SYS_read, fd, (long)text, sizeof(text) - 1);
		fz_syscall1(SYS_close, fd);
	}
	at = n > 0 ? strstr(text, "\nPid:") : NULL;
	return at ? (pid_t)strtol(at + 5, NULL, 10) : 0;
}

static bool is_wanted(pid_t pid, int type, id_t id)
{
	switch (type) {
	case P_ALL: return true;
	case P_PGID: return getpgid(pid) == (id ? (pid_t)id : getpgrp());
	default: return pid == (pid_t)id;
	}
}

/*
 * Put the caller's children that match type and id into pids, at most MOST, and return their number.
 * If one of them is ready to be waited for: *ret_ready is true, pids[0] is that child, and 1 is returned.
 */
static int collect(struct fz_fiber *self, int type, id_t id, int options, pid_t pids[MOST],
		   bool *ret_ready)
{
	int n = 0, place = 0;
	pid_t pid;

	while ((pid = fz_child_next(self, &place))) {
		siginfo_t info = { .si_pid = 0 };

		if (!is_wanted(pid, type, id))
			continue;
		if (fz_real.waitid(P_PID, (id_t)pid, &info,
				   (options & ~__WNOTHREAD) | WNOHANG | WNOWAIT)) {
			fz_child_gone(pid);
			continue;
		}
		if (info.si_pid) {
			pids[0] = pid;
			*ret_ready = true;
			return 1;
		}
		if (n < MOST)
			pids[n++] = pid;
	}
	return n;
}

/*
 * Wait until one of several children ends. Returns after 10 ms at the latest, so that the caller looks again,
 * if there may be more than MOST children, if one has no pidfd, or if the caller also waits for other changes
 * of their state: a pidfd reports the end only. Returns 0 or -errno.
 */
static int await_one_of(struct fz_fiber *self, const pid_t *pids, int n, int options)
{
	struct fz_blocked call = fz_block(self->kind == FZ_KIND_FIBER ? self : NULL,
					  FZ_CALL_RESTARTS);
	bool all = n < MOST && !(options & (WSTOPPED | WCONTINUED));
	struct pollfd fds[MOST];
	int ret;

	for (int i = 0; i < n; i++) {
		fds[i] = (struct pollfd){
			.fd = (int)fz_syscall2(SYS_pidfd_open, pids[i], 0), .events = POLLIN,
		};
		all &= fds[i].fd >= 0;
	}
	ret = FZ_REPEAT(&call, fz_real.poll(fds, (nfds_t)n, all ? -1 : 10));
	fz_block_end(&call, ret);
	for (int i = 0; i < n; i++)
		if (fds[i].fd >= 0)
			fz_syscall1(SYS_close, fds[i].fd);
	return ret < 0 ? -errno : 0;
}

pid_t fz_child_of_caller(struct fz_fiber *self, int type, id_t id, int options)
{
	pid_t pids[MOST];

	if (type == P_PIDFD) {
		id = (id_t)pid_of((int)id);
		type = P_PID;
	}
	if (type == P_PID)
		return fz_child_is_own(self, (pid_t)id) ? (pid_t)id : -ECHILD;
	for (;;) {
		bool ready = false;
		int n = collect(self, type, id, options, pids, &ready), err;

		if (n == 0)
			return -ECHILD;
		if (ready || options & WNOHANG)
			return ready ? pids[0] : 0;
		if (n == 1)
			return pids[0];
		err = await_one_of(self, pids, n, options);
		if (err)
			return err;
	}
}
