/* SPDX-License-Identifier: MIT */
#include "preload/process/parent.h"

#include <sys/syscall.h>

#include "preload/real_call.h"
#include "runtime/sched/sched.h"

enum { PLACES = 1 << 12, MOST = 64 };

/*
 * pid << 32 | tid of the thread that has made it, at the place pid % PLACES: a later child takes the
 * place of an earlier one. relaxed: a thread that knows a pid has been told by its parent.
 */
static _Atomic uint64_t made[PLACES];

void fz_child_made(pid_t pid)
{
	if (pid > 0)
		atomic_store_explicit(&made[pid % PLACES],
				      (uint64_t)pid << 32 | (uint32_t)fz_self_tid(),
				      memory_order_relaxed);
}

static pid_t pid_at(int place)
{
	return (pid_t)(atomic_load_explicit(&made[place], memory_order_relaxed) >> 32);
}

/* Fibers have tids that the kernel does not know. */
static bool lives(int tid)
{
	return fz_fiber_by_tid(tid) || fz_syscall3(SYS_tgkill, fz_sys_getpid(), tid, 0) == 0;
}

static bool is_own(struct fz_fiber *self, pid_t pid)
{
	uint64_t entry = atomic_load_explicit(&made[pid % PLACES], memory_order_relaxed);
	int tid = (int)(uint32_t)entry;

	if (pid == (pid_t)(entry >> 32) && (tid == fz_self_tid() || lives(tid)))
		return tid == fz_self_tid();
	return self->thread.is_main;
}

/* The process of a pidfd; 0 if it cannot be told. */
static pid_t pid_of(int pidfd)
{
	char path[32], text[512] = "", *at;
	long fd, n = -1;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
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

/* Collect the caller's children. Returns their number, or 1 with a child that is ready. */
static int collect(struct fz_fiber *self, int type, id_t id, int options, pid_t pids[MOST],
		   bool *ret_ready)
{
	int n = 0;

	for (int i = 0; i < PLACES; i++) {
		pid_t pid = pid_at(i);
		siginfo_t info = { .si_pid = 0 };

		if (!pid || !is_own(self, pid) || !is_wanted(pid, type, id))
			continue;
		if (fz_real.waitid(P_PID, (id_t)pid, &info,
				   (options & ~__WNOTHREAD) | WNOHANG | WNOWAIT))
			continue;
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
 * Several children: wait until one ends. Other changes of their state, and children beyond MOST, are
 * looked for every 10 ms.
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
		return is_own(self, (pid_t)id) ? (pid_t)id : -ECHILD;
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
