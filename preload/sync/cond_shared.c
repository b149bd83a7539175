/* SPDX-License-Identifier: MIT */
/*
 * preload/sync/cond_shared.c - process-shared condition variables are libc's; a fiber announces
 * its wait.
 *
 * libc's code cannot wait with a mutex of ours: libc would wake only waiters in the kernel, and
 * would sleep where only the kernel wakes. So libc's wait gets a mutex of libc's, the gate,
 * instead of ours. The waiter holds the gate from before it unlocks our mutex until libc has
 * counted the waiter. Signallers take the gate, too, so a thread that locks our mutex after the
 * waiter and signals finds the waiter counted. Other processes cannot hold a private mutex, so
 * they need not take the gate.
 */
#include "preload/gate.h"
#include "preload/sync/cond.h"
#include "preload/time.h"
#include "runtime/sched/announce.h"
#include "runtime/sched/cancel.h"
#include "runtime/sched/sched.h"
#include "runtime/signal/signal.h"
#include "runtime/sync/cond.h"

enum { GATES = 16 };

static pthread_mutex_t gates[GATES];	/* all zero is initialised */
static _Atomic bool gates_used;

static pthread_mutex_t *gate_of(const pthread_cond_t *c)
{
	return &gates[(uintptr_t)c / sizeof(*c) % GATES];
}

void fz_cond_gates_after_fork(void)
{
	/* The threads that held the gates do not exist in the child. */
	memset(gates, 0, sizeof(gates));
}

/* Nobody sleeps with the gate held, so it is soon free, and taking it is not announced. */
int fz_cond_wake_shared(pthread_cond_t *c, int (*wake)(pthread_cond_t *))
{
	pthread_mutex_t *gate = gate_of(c);
	int err;

	/*
	 * seq_cst: pairs with the store in wait_behind_gate(). The waiter stores before it unlocks its
	 * mutex, and the signaller has locked that mutex afterwards.
	 */
	if (!atomic_load_explicit(&gates_used, memory_order_seq_cst))
		return wake(c);
	fz_signal_bar(fz_self());
	fz_real.pthread_mutex_lock(gate);
	err = wake(c);
	fz_real.pthread_mutex_unlock(gate);
	fz_signal_allow(fz_self());
	return err;
}

struct gated {
	struct fz_mutex *mutex;
	pthread_mutex_t *gate;
	uint32_t count;
};

/* Runs also when libc's wait is cancelled, which unwinds the stack. */
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
	/* An asynchronous cancellation, too, must find both mutexes as the caller left them. */
	fz_cancel_defer(self);
	/*
	 * After an announced call the fiber may have to wait for a processor; wait for it
	 * before the gate is held.
	 */
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
	/* Announced only now, because fz_mutex_unlock_whole() may end an announcement. */
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
			return fz_leave_pthread(-EINVAL);
		return fz_leave_shared(self, wait_behind_gate(kind, c, mutex, clock, when));
	}
	if (self)
		fz_announce(self);
	return fz_leave_shared(self, wait_of_libc(kind, c, m, clock, when));
}
