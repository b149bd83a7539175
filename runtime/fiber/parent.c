/* SPDX-License-Identifier: MIT */
#include "runtime/fiber/parent.h"

#include <asm/errno.h>
#include <linux/wait.h>

#include "runtime/base/sys.h"

enum { PLACES = 1 << 13, NEAR = 64 };

/*
 * pid << 32 | tid of the thread that has made the child, at one of the NEAR places from pid %
 * PLACES on. An entry stays until the child has been waited for and another child needs the place.
 * relaxed: a thread that knows a pid has learnt it, directly or not, from the thread that made the
 * child.
 */
static _Atomic uint64_t made[PLACES];

static uint64_t entry_at(int place)
{
	return atomic_load_explicit(&made[place], memory_order_relaxed);
}

static bool replace(int place, uint64_t before, uint64_t entry)
{
	return atomic_compare_exchange_strong_explicit(&made[place], &before, entry,
						       memory_order_relaxed,
						       memory_order_relaxed);
}

static int pid_of(uint64_t entry)
{
	return (int)(entry >> 32);
}

static int tid_of(uint64_t entry)
{
	return (int)(uint32_t)entry;
}

/* The place of a child; or -1. */
static int find(int pid)
{
	for (int i = 0; i < NEAR; i++)
		if (pid_of(entry_at((pid + i) % PLACES)) == pid)
			return (pid + i) % PLACES;
	return -1;
}

/* Is the entry empty, or its child waited for already? */
static bool is_free(uint64_t entry)
{
	return !entry || fz_syscall5(__NR_waitid, P_PID, pid_of(entry), 0,
				     WEXITED | WNOHANG | WNOWAIT | __WALL, 0) == -ECHILD;
}

/* Note the child. If all NEAR places have living children, it is not noted, and counts as the main thread's. */
static void take_place(int pid, uint64_t entry)
{
	for (int i = 0; i < NEAR; i++) {
		const int place = (pid + i) % PLACES;
		const uint64_t before = entry_at(place);

		if (is_free(before) && replace(place, before, entry))
			return;
	}
}

void fz_child_made(int pid)
{
	const uint64_t entry = (uint64_t)pid << 32 | (uint32_t)fz_self_tid();
	int place;

	if (pid <= 0)
		return;
	fz_self()->thread.has_children = true;
	place = find(pid);
	/* An earlier child had the same pid. */
	if (place >= 0)
		atomic_store_explicit(&made[place], entry, memory_order_relaxed);
	else
		take_place(pid, entry);
}

void fz_child_may_be_new(int pid)
{
	if (find(pid) < 0)
		fz_child_made(pid);
}

int fz_child_maker(int pid)
{
	const int place = find(pid);

	return place < 0 ? 0 : tid_of(entry_at(place));
}

/* Fibers have tids that the kernel does not know. */
static bool lives(int tid)
{
	return tid && (fz_fiber_by_tid(tid) || fz_syscall3(__NR_tgkill, fz_sys_getpid(), tid, 0) != -ESRCH);
}

static bool is_parent(struct fz_fiber *self, int tid)
{
	return tid == fz_self_tid() || (self->thread.is_main && !lives(tid));
}

bool fz_child_is_own(struct fz_fiber *self, int pid)
{
	return is_parent(self, fz_child_maker(pid));
}

int fz_child_next(struct fz_fiber *self, int *place)
{
	while (*place < PLACES) {
		const uint64_t entry = entry_at((*place)++);

		if (entry && is_parent(self, tid_of(entry)))
			return pid_of(entry);
	}
	return 0;
}

void fz_child_gone(int pid)
{
	const int place = find(pid);
	const uint64_t entry = place < 0 ? 0 : entry_at(place);

	if (entry && is_free(entry))
		replace(place, entry, 0);
}

void fz_parent_ends(struct fz_fiber *self)
{
	if (!self->thread.has_children)
		return;
	for (int place = 0; place < PLACES; place++) {
		const uint64_t entry = entry_at(place);

		if (entry && tid_of(entry) == fz_self_tid())
			replace(place, entry, (uint64_t)pid_of(entry) << 32);
	}
}
