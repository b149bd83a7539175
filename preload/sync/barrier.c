/* SPDX-License-Identifier: MIT */
/*
 * preload/sync/barrier.c - private barriers are ours, also in native threads; process-shared
 * barriers are libc's, and a fiber announces its wait. libc's init and attribute functions
 * serve for all barriers.
 */
#include "preload/gate.h"
#include "runtime/sched/announce.h"
#include "runtime/sched/sched.h"
#include "runtime/sync/barrier.h"

_Static_assert(sizeof(struct fz_barrier) <= sizeof(pthread_barrier_t), "lives inside it");

static struct fz_barrier *ours(pthread_barrier_t *barrier)
{
	struct fz_barrier *b = (struct fz_barrier *)(void *)barrier;

	return b->shared || fz_locks_are_libcs ? NULL : b;
}

FZ_EXPORT int pthread_barrier_wait(pthread_barrier_t *barrier)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_pthread_barrier_wait);
	struct fz_barrier *b = ours(barrier);

	if (b)
		return fz_barrier_wait(b) ? PTHREAD_BARRIER_SERIAL_THREAD : 0;
	if (self)
		fz_announce(self);
	return fz_leave_shared(self, fz_real.pthread_barrier_wait(barrier));
}

FZ_EXPORT int pthread_barrier_destroy(pthread_barrier_t *barrier)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_pthread_barrier_destroy);
	struct fz_barrier *b = ours(barrier);

	if (b) {
		fz_barrier_destroy(b);
		return 0;
	}
	if (self)
		fz_announce(self);
	return fz_real.pthread_barrier_destroy(barrier);
}
