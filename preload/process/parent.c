/* SPDX-License-Identifier: MIT */
#include "preload/process/parent.h"

#include <sys/syscall.h>

#include "preload/real_call.h"
#include "runtime/sched/sched.h"

enum { PLACES = 1 << 14, NEAR = 64, MOST = 64 };

/*
 * pid << 32 | tid of the thread that has made it, at one of the NEAR places from pid % PLACES on. A
 * child stays there until it has been waited for and another one needs the place. relaxed: a
 * thread that knows a pid has been told by its parent.
 */
static _Atomic uint64_t made[PLACES];

static uint64_t entry_at(int place)
{
	return atomic_load_explicit(&made[place % PLACES], memory_order_relaxed);
}

static pid_t pid_of_entry(uint64_t entry)
{
	return (pid_t)(entry >> 32);
}

/* The place of a child; or -1. */
static int find(pid_t pid)
{
	for (int i = 0; i < NEAR; i++)
		if (pid_of_entry(entry_at(pid % PLACES + i)) == pid)
			return (pid % PLACES + i) % PLACES;
	return -1;
}

/* No child, or one that has been waited for. */
static bool is_free(uint64_t entry)
{
	return !entry || fz_syscall5(SYS_waitid, P_PID, pid_of_entry(entry), 0,
				     WEXITED | WNOHANG | WNOWAIT | __WALL, 0) == -ECHILD;
}

/* All places near have children that live: it counts as the main thread's. */
static void take_place(pid_t pid, uint64_t entry)
{
	for (int i = 0; i < NEAR; i++) {
		uint64_t before = entry_at(pid % PLACES + i);

		if (is_free(before) &&
		    atomic_compare_exchange_strong_explicit(&made[(pid % PLACES + i) % PLACES],
							    &before, entry, memory_order_relaxed,
							    memory_order_relaxed))
			return;
	}
}

void fz_child_made(pid_t pid)
{
	const uint64_t entry = (uint64_t)pid << 32 | (uint32_t)fz_self_tid();
	int place;

	if (pid <= 0)
		return;
	place = find(pid);
	/* An earlier child had the same pid. */
	if (place >= 0)
		atomic_store_explicit(&made[place], entry, memory_order_relaxed);
	else
		take_place(pid, entry);
}

/* Fibers have tids that the kernel does not know. */
static bool lives(int tid)
{
	return fz_fiber_by_tid(tid) || fz_syscall3(SYS_tgkill, fz_sys_getpid(), tid, 0) == 0;
}

static bool is_own(struct fz_fiber *self, pid_t pid)
{
	const int place = find(pid);
	int tid;

	if (place < 0)
		return self->thread.is_main;
	tid = (int)(uint32_t)entry_at(place);
	if (tid == fz_self_tid() || lives(tid))
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
		uint64_t entry = entry_at(i);
		pid_t pid = pid_of_entry(entry);
		siginfo_t info = { .si_pid = 0 };

		if (!pid || !is_own(self, pid) || !is_wanted(pid, type, id))
			continue;
		if (fz_real.waitid(P_PID, (id_t)pid, &info,
				   (options & ~__WNOTHREAD) | WNOHANG | WNOWAIT)) {
			/* Unless the pid is another child's meanwhile. */
			if (is_free(entry))
				atomic_compare_exchange_strong_explicit(&made[i], &entry, 0,
									memory_order_relaxed,
									memory_order_relaxed);
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
