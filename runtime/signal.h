/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SIGNAL_H
#define FZ_RUNTIME_SIGNAL_H

/*
 * runtime/signal.h - who handles a signal, and when.
 *
 * The kernel delivers to whatever kernel thread it likes.  Every handler of the
 * program is therefore behind fz_signal_arrived(), which
 *
 *	in user code of the right fiber		calls the handler at once
 *	elsewhere				leaves it to the monitor, which
 *						picks a fiber and wakes it
 *
 * The right fiber is, as in the kernel, the main thread unless it blocks the
 * signal, then anyone who does not.  A fiber that was woken for a signal sends
 * it to itself when it has left the runtime, so that the kernel builds the
 * frame: mask, alternate stack, ucontext and SA_RESETHAND are its business.
 */

#include "runtime/fiber.h"

enum { FZ_SIGNALS = 64 };

/* siginfo_t and the like, without libc's headers. */
struct fz_siginfo {
	_Alignas(8) char bytes[128];
};

/* What the program asked of sigaction; the kernel has fz_signal_arrived. */
struct fz_action {
	void (*handler)(int, void *, void *);	/* or SIG_DFL 0, SIG_IGN 1 */
	uint64_t mask;
	uint64_t flags;				/* SA_* */
};

static inline uint64_t fz_signal_bit(int sig)
{
	return (uint64_t)1 << (sig - 1);
}

/* libc's own, which nobody may block: SIGCANCEL and SIGSETXID. */
#define FZ_SIGNALS_OF_LIBC ((uint64_t)3 << 31)
#define FZ_SIGNALS_ALL (~FZ_SIGNALS_OF_LIBC)

/* The handler in the kernel for every signal that the program handles. */
void fz_signal_arrived(int sig, void *info, void *ucontext);

/* The table of what the program asked for.  Any thread; handlers too. */
struct fz_action fz_signal_action_get(int sig);
void fz_signal_action_set(int sig, const struct fz_action *action);

/*
 * After a wait ended with -EINTR: have all handlers that ran since
 * fz_signal_mark() SA_RESTART, so that the call goes on?
 */
static inline void fz_signal_mark(struct fz_fiber *self)
{
	self->must_return_eintr = false;
}

static inline bool fz_signal_restarts(const struct fz_fiber *self)
{
	return !self->must_return_eintr;
}

/* Run handlers for what is pending and unblocked.  Outside the runtime. */
void fz_signal_run_pending(struct fz_fiber *self);

/*
 * Change the calling fiber's mask; how as in sigprocmask.  Outside the runtime.
 * Runs handlers that it unblocks.  Returns 0 or -EINVAL.
 */
int fz_signal_set_mask(struct fz_fiber *self, int how, const uint64_t *set,
		       uint64_t *ret_old);

/* Make sig pending for one fiber.  Any thread outside the runtime. */
void fz_signal_send(struct fz_fiber *fiber, int sig);

/* A fiber that runs was cancelled: have the monitor interrupt it if it must be. */
void fz_signal_nudge(void);

/* The fiber ends: what was routed to it goes to others.  In the runtime. */
void fz_signal_give_back(struct fz_fiber *self);

/* By the scheduler, when a fiber's mask differs from what the kernel has. */
void fz_signal_load_mask(struct fz_carrier *carrier, uint64_t mask);

/*
 * Is the mask of the calling fiber's kernel thread the one that we gave it?  Not
 * while libc has changed it by itself: then the fiber has to stay there.
 */
bool fz_signal_mask_is_known(const struct fz_fiber *self);

/* By the registry, under its lock. */
void fz_signal_thread_started(uint64_t mask);
void fz_signal_thread_ended(uint64_t mask);

/*
 * The signals that must stay pending in the kernel: every fiber blocks them, or
 * one is in sigwait for them.
 */
uint64_t fz_signal_left_to_kernel(void);

/* The calling fiber enters sigwait for these, or (0) leaves it. */
void fz_signal_note_sigwait(struct fz_fiber *self, uint64_t set);

/* By the monitor: find fibers for what has arrived.  Returns true if it must
 * come back soon. */
bool fz_signal_route(void);

/*
 * Put ourselves before libc's handlers of its own two signals, whenever it may
 * have installed them anew: after its first thread, after pthread_cancel.
 */
void fz_signal_guard_libc(void);

void fz_signal_after_fork(void);

#endif
