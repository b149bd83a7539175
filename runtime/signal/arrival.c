/* SPDX-License-Identifier: MIT */
/*
 * runtime/signal/arrival.c - a thread waits for signals that it must have handled before it goes on.
 *
 * There are two cases: the thread has sent a signal to its own process through the kernel; or another process
 * has sent one, and then ended the thread's wait.  The kernel may have chosen another kernel thread for the
 * signal.
 *
 * If that kernel thread has not taken the signal yet, the waiting thread can: a change of its mask makes the
 * kernel look. Otherwise the signal is on its way into fz_signal_arrived(), which counts it. If that runs on
 * the monitor, the thread waits for the monitor. If it interrupts another fiber's code, only a sender waits,
 * because only a sender knows that the signal must come.
 */
#include "runtime/base/time.h"
#include "runtime/sched/sched.h"
#include "runtime/signal/monitor_mask.h"
#include "runtime/signal/signal_internal.h"

static struct {
	_Atomic uint32_t count[FZ_SIGNALS + 1];		/* futexes */
	_Atomic uint32_t awaited;			/* threads that wait for one of them */
} arrivals;

void fz_signal_note_arrival(int sig)
{
	/* seq_cst, both: pairs with await(). */
	atomic_fetch_add_explicit(&arrivals.count[sig], 1, memory_order_seq_cst);
	if (FZ_UNLIKELY(atomic_load_explicit(&arrivals.awaited, memory_order_seq_cst)))
		fz_sys_futex_wake(&arrivals.count[sig], INT32_MAX);
}

/*
 * Run the handlers of signals that another kernel thread has left in the inbox, or that the monitor has made
 * pending for this fiber.
 */
static void run_arrived(struct fz_fiber *self)
{
	/* relaxed: as in fz_leave_runtime(), which gives out the signals that have arrived. */
	if (atomic_load_explicit(&fz_signal_arriving, memory_order_relaxed)) {
		fz_enter_runtime(self);
		fz_leave_runtime(self);
	}
	fz_signal_run_pending(self);
}

void fz_signal_look(struct fz_fiber *self)
{
	uint64_t mask;

	fz_sys_sigmask(HOW_SETMASK, &(uint64_t){ FZ_SIGNALS_ALL }, &mask);
	fz_sys_sigmask(HOW_SETMASK, &mask, NULL);
	fz_monitor_settle();
	run_arrived(self);
}

/* Signals of faults, of the thread's own calls and of its CPU time: no other process sends these as a message. */
#define FROM_ITSELF                                                                                      \
	(fz_signal_bit(SIG_SEGV) | fz_signal_bit(SIG_BUS) | fz_signal_bit(SIG_FPE) | fz_signal_bit(SIG_ILL) | \
	 fz_signal_bit(SIG_TRAP) | fz_signal_bit(SIG_SYS) | fz_signal_bit(SIG_PIPE) | fz_signal_bit(SIG_XFSZ) | \
	 fz_signal_bit(SIG_PROF) | fz_signal_bit(SIG_VTALRM))

/*
 * The signals with a handler that this thread would natively take while it waits.  The kernel prefers the main thread,
 * and for SIGCHLD the one that made the child.
 */
static uint64_t would_take(const struct fz_fiber *self)
{
	const uint64_t set = fz_signal_with_handler() & ~self->mask & ~FROM_ITSELF;
	const struct fz_fiber *main_fiber;

	if (FZ_LIKELY(!set) || self->thread.is_main)
		return set;
	main_fiber = fz_fiber_main();
	if (!main_fiber)
		return set;
	return set & (main_fiber->mask | (self->thread.has_children ? fz_signal_bit(SIG_CHLD) : 0));
}

void fz_signal_catch_up(struct fz_fiber *self)
{
	/* Not in a call with a mask of its own: if its wait has succeeded, no handler may run in the call. */
	if (FZ_UNLIKELY(would_take(self) != 0) && self->kind == FZ_KIND_FIBER && !self->sig.restores_mask)
		fz_signal_look(self);
}

struct fz_sending fz_signal_sending(struct fz_fiber *self, int sig)
{
	struct fz_sending sending = {
		/* acquire: before the action is looked at; pairs with fz_signal_discard(). */
		.arrived = atomic_load_explicit(&arrivals.count[sig], memory_order_acquire),
	};

	if (fz_signal_is_mine_of_fibers(self, sig) &&
	    (uintptr_t)fz_signal_action_get(sig).handler > 1)
		sending.sig = sig;
	return sending;
}

/*
 * Wait until the signal has arrived, but only for 200 ms: a debugger may have taken it, or a thread
 * that waits for it and that the library does not see.
 */
static void await(const struct fz_sending *sending)
{
	const fz_nsec until = fz_now() + 200 * FZ_MSEC;
	const struct __kernel_timespec limit = fz_timespec(10 * FZ_MSEC);
	_Atomic uint32_t *count = &arrivals.count[sending->sig];

	/* seq_cst, both: pairs with fz_signal_note_arrival(). */
	atomic_fetch_add_explicit(&arrivals.awaited, 1, memory_order_seq_cst);
	while (atomic_load_explicit(count, memory_order_seq_cst) == sending->arrived &&
	       fz_now() < until)
		fz_sys_futex_wait(count, sending->arrived, &limit);
	atomic_fetch_sub_explicit(&arrivals.awaited, 1, memory_order_relaxed);
}

void fz_signal_sent(struct fz_fiber *self, const struct fz_sending *sending)
{
	if (!sending->sig)
		return;
	fz_signal_look(self);
	await(sending);
	run_arrived(self);
}
