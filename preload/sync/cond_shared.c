/* SPDX-License-Identifier: MIT */
/*
 * preload/sync/cond_shared.c - process-shared condition variables are libc's, announced.
 *
 * libc's code cannot wait with a mutex of ours: it would wake only those in the
 * kernel, and sleep where nobody but the kernel wakes.  So it gets one of its own, a
 * gate: held from before ours is unlocked until libc has counted the waiter, and
 * by signallers, so that who locks ours after that finds the waiter counted.  Other
 * processes cannot hold a private mutex, so they need not come by.
 */
#include "preload/gate.h"
#include "preload/sync/cond.h"
#include "preload/time.h"
#include "runtime/sched/announce.h"
#include "runtime/sched/cancel.h"
#include "runtime/sched/sched.h"
#include "runtime/sync/cond.h"

enum { GATES = 16 };

static pthread_mutex_t gates[GATES];	/* all zero: initialised */
static _Atomic bool gates_used;

static pthread_mutex_t *gate_of(const pthread_cond_t *c)
{
	return &gates[(uintptr_t)c / sizeof(*c) % GATES];
}

void fz_cond_gates_after_fork(void)
{
	/* Whoever held them is not here. */
	memset(gates, 0, sizeof(gates));
}

/* Held for a few instructions: not worth an announcement. */
int fz_cond_wake_shared(pthread_cond_t *c, int (*wake)(pthread_cond_t *))
{
	pthread_mutex_t *gate = gate_of(c);
	int err;

	/* seq_cst: before the unlock of the waiter's mutex, which signallers lock. */
	if (!atomic_load_explicit(&gates_used, memory_order_seq_cst))
		return wake(c);
	fz_real.pthread_mutex_lock(gate);
	err = wake(c);
	fz_real.pthread_mutex_unlock(gate);
	return err;
}

struct gated {
	struct fz_mutex *mutex;
	pthread_mutex_t *gate;
	uint32_t count;
};

/* Also if libc's wait is cancelled, which unwinds. */
static void come_back(struct gated *g)
{
	fz_real.pthread_mutex_unlock(g->gate);
	fz_mutex_lock_again(g->mutex, g->count);
}

static int wait_of_libc(enum fz_cond_wait_kind kind, pthread_cond_t *c, pthread_mutex_t *m,
			clockid_t clock, const struct timespec *when)
{
	switch (kind) {
	case FZ_COND_WAIT:
		return fz_real.pthread_cond_wait(c, m);
	case FZ_COND_TIMEDWAIT:
		return fz_real.pthread_cond_timedwait(c, m, when);
	default:
		return fz_real.pthread_cond_clockwait(c, m, clock, when);
	}
}

static int wait_behind_gate(enum fz_cond_wait_kind kind, pthread_cond_t *c, struct fz_mutex *m,
			    clockid_t clock, const struct timespec *when)
{
	struct fz_fiber *self = fz_self();
	struct gated g = { m, gate_of(c), 0 };
	int err;

	atomic_store_explicit(&gates_used, true, memory_order_seq_cst);
	/* Asynchronous cancellation too has to find both mutexes as it left them. */
	fz_cancel_defer(self);
	/* After an announced call it may have to wait for a processor: not with the gate. */
	fz_enter_runtime(self);
	fz_leave_runtime(self);
	fz_real.pthread_mutex_lock(g.gate);
	err = fz_mutex_unlock_whole(m, &g.count);
	if (err) {
		fz_real.pthread_mutex_unlock(g.gate);
		fz_cancel_undefer(self);
		return fz_leave_pthread(err);
	}
	__attribute__((cleanup(come_back))) struct gated back = g;

	fz_cancel_undefer(self);
	/* What unlocking has taken back. */
	if (self->kind == FZ_KIND_FIBER)
		fz_announce(self);
	return wait_of_libc(kind, c, back.gate, clock, when);
}

int fz_cond_wait_shared(enum fz_cond_wait_kind kind, struct fz_fiber *self, pthread_cond_t *c,
			pthread_mutex_t *m, clockid_t clock, const struct timespec *when)
{
	struct fz_mutex *mutex = (struct fz_mutex *)(void *)m;

	if (FZ_UNLIKELY(fz_mutex_is_ours(mutex) && !fz_locks_are_libcs)) {
		if (when && !fz_timespec_valid(when))
			return EINVAL;
		return wait_behind_gate(kind, c, mutex, clock, when);
	}
	if (self)
		fz_announce(self);
	return wait_of_libc(kind, c, m, clock, when);
}
