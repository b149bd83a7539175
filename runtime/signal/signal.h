/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SIGNAL_SIGNAL_H
#define FZ_RUNTIME_SIGNAL_SIGNAL_H

/*
 * runtime/signal/signal.h - who handles a signal, and when.
 *
 * The kernel delivers to whatever kernel thread it likes.  Every handler of the
 * program is therefore behind fz_signal_arrived(), which
 *
 *	in user code of the right fiber		calls the handler at once
 *	elsewhere				leaves it to the monitor, which
 *						picks a fiber and wakes it
 *
 * The right fiber is, as in the kernel, the main thread unless it blocks the
 * signal, then one that waits for it by sigwait, then anyone who does not block it.
 * A fiber that was woken for a signal sends it to itself when it has left the
 * runtime, so that the kernel builds the frame: mask, alternate stack, ucontext and
 * SA_RESETHAND are its business.
 *
 * While a fiber is in sigwait for signals that the program does not handle, we
 * stand in front of them as well: the kernel would act on them as soon as any
 * kernel thread has them unblocked.  What they do by default we do then.
 */

#include "runtime/fiber/fiber.h"
#include "runtime/signal/queue.h"

enum { FZ_SIGNALS = 64 };

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
#define FZ_SIGNAL_CANCEL 32
#define FZ_SIGNALS_ALL (~FZ_SIGNALS_OF_LIBC)

/* The handler in the kernel for every signal that the program handles. */
void fz_signal_arrived(int sig, void *info, void *ucontext);

/* Call the program's handler: on its own thread, in user code. */
void fz_signal_call_handler(struct fz_fiber *self, int sig, void *info, void *ucontext);

/*
 * The last thing in a handler that the kernel called: the mask and the alternate
 * stack that returning from it restores become the fiber's.  before: the mask that it
 * would have restored when it began.
 */
void fz_signal_handler_ends(struct fz_fiber *self, uint64_t before, uint64_t mask,
			    struct fz_alt_stack *alt_stack);

/* ---- actions (runtime/signal/action.c) ---------------------------------- */

/* The table of what the program asked for.  Any thread; handlers too. */
struct fz_action fz_signal_action_get(int sig);
void fz_signal_action_set(int sig, const struct fz_action *action);

/*
 * Around a change of the kernel's table and ours: one at a time, and no handler
 * finds them disagreeing.
 */
void fz_signal_actions_lock(uint64_t *ret_mask);
void fz_signal_actions_unlock(const uint64_t *mask);

/* Do we stand in front of a signal that the program does not handle?  Any thread. */
bool fz_signal_substituted(int sig);

/* Stand in front of these from now on; and no longer, where that could be seen. */
void fz_signal_substitute(uint64_t set);
void fz_signal_restore(uint64_t set);

/*
 * Around what makes a process that inherits what this one ignores, by calls that we
 * do not see: what we stand in front of is ignored again meanwhile.
 */
bool fz_signal_before_spawn(void);
void fz_signal_after_spawn(bool began);

/*
 * Around exec, too, which keeps what is pending for the process and the caller: the
 * kernel has all of that on return.  after: it has failed.  By any thread, outside the
 * runtime.
 */
void fz_signal_before_exec(struct fz_fiber *self);
void fz_signal_after_exec(void);

/* What the kernel does by default, to this process, now.  Outside the runtime, or
 * by the monitor.  Returns if that was nothing, or a stop that is over. */
void fz_signal_default(int sig);

/* Is that nothing? */
bool fz_signal_ignored_by_default(int sig);

/* ---- handlers and calls ------------------------------------------------- */

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

/*
 * For a real call that a handler shall end, also one that runs before the call sleeps: what
 * self->sig.handlers_run is if none has run so far, and the call's time limit.
 */
static inline uint32_t fz_signal_none_run(const struct fz_fiber *self)
{
	/* With a mask of its own: since that is in force. */
	return self->sig.suspended ? 0 : self->sig.handlers_run;
}
struct __kernel_timespec *fz_signal_limit(struct fz_fiber *self, fz_nsec deadline,
					  uint32_t none_run);

/* Run handlers for what is pending and unblocked.  Outside the runtime. */
void fz_signal_run_pending(struct fz_fiber *self);

/* ---- masks -------------------------------------------------------------- */

/*
 * Change the calling fiber's mask; how as in sigprocmask.  Outside the runtime.
 * Runs handlers that it unblocks.  Returns 0 or -EINVAL.
 */
int fz_signal_set_mask(struct fz_fiber *self, int how, const uint64_t *set,
		       uint64_t *ret_old);

/*
 * The calling fiber's mask is, or will be, what the kernel is not told here: a handler has changed
 * what returning from it restores, or libc changes it by itself.  Outside the runtime,
 * which it enters: it may end on another kernel thread.
 */
void fz_signal_adopt_mask(struct fz_fiber *self, uint64_t mask);

/*
 * The mask for the time of a call, such as sigsuspend or ppoll: a handler that runs
 * from here on ends the call, and if it is before the call sleeps.  Returns true if
 * one has run already.  unswap returns what was in force, with *ret of swap; so does the
 * end of a handler, as natively, so that this mask lets in no more than would come on top
 * of the first one.
 */
struct fz_mask_swap {
	uint64_t mask, during;
	bool suspended;
};
bool fz_signal_swap_mask(struct fz_fiber *self, uint64_t mask, struct fz_mask_swap *ret_old);
void fz_signal_unswap_mask(struct fz_fiber *self, const struct fz_mask_swap *old);

/* By the scheduler, when a fiber's mask differs from what the kernel has. */
void fz_signal_load_mask(struct fz_carrier *carrier, uint64_t mask);

/*
 * Is the mask of the calling fiber's kernel thread the one that we gave it?  Not
 * while libc has changed it by itself: then the fiber has to stay there.
 */
bool fz_signal_mask_is_known(const struct fz_fiber *self);

/* By the registry, under its lock; for fibers that are not wired. */
void fz_signal_thread_started(struct fz_fiber *f);
void fz_signal_thread_ended(struct fz_fiber *f);

/*
 * The calling fiber becomes wired: it has the mask that its kernel thread has, and
 * the kernel gives it the signals.  In the runtime.
 */
void fz_signal_wire(struct fz_fiber *self);

/* The signals that must stay pending in the kernel: no fiber accepts them. */
uint64_t fz_signal_left_to_kernel(void);

/* ---- sending and waiting (runtime/signal/route.c, sigwait.c) ------------- */

/*
 * Make sig pending for one fiber.  info: as the kernel would fill it.  Any thread
 * outside the runtime; to the caller itself, its handler has run on return.
 * limited: count it against RLIMIT_SIGPENDING.  Returns 0 or -EAGAIN.
 */
int fz_signal_send(struct fz_fiber *fiber, int sig, const struct fz_siginfo *info,
		   bool limited);

/* To the calling fiber, which has it unblocked: handled on return.  0 or -errno. */
int fz_signal_send_here(struct fz_fiber *self, int sig, const struct fz_siginfo *info);

/*
 * Would the kernel, if each fiber were a thread, choose the caller for a signal to
 * the process that it sends itself?
 */
bool fz_signal_is_mine(struct fz_fiber *self, int sig);

/*
 * To the fiber of this process that the kernel would choose: it is pending for that one
 * on return.  False if the kernel has to do it.  From a fiber, outside the runtime.
 */
bool fz_signal_send_to_process(int sig, const struct fz_siginfo *info);

/*
 * In si_errno of what is queued for one kernel thread: the kernel does not tell its
 * receiver whether it was for the process.  Nobody else gets to see it.
 */
enum { FZ_SIGNAL_DIRECTED = 0x465a };

/* Make what the kernel had to give out for us look as it was sent.  Any context. */
void fz_signal_unmark(void *siginfo);

/* A siginfo as of kill (code 0), tgkill (-6), sigqueue (-1) by this process. */
struct fz_siginfo fz_signal_info(int sig, int code, uint64_t value);

/*
 * The action of sig has changed: if it is ignored now, none is pending any more.  Outside
 * the runtime, by any thread.
 */
void fz_signal_discard(int sig);

/* A fiber that runs was cancelled: have the monitor interrupt it if it must be. */
void fz_signal_nudge(void);

/*
 * Whatever fiber computes on that kernel thread, where it does not look, is to let others
 * run.  By the monitor.
 */
void fz_signal_preempt(struct fz_carrier *carrier);

/*
 * From here on, and up to here, the calling thread can handle signals: its variables are
 * its own, and it can be left by pthread_exit.
 */
void fz_signal_life_begins(struct fz_fiber *self);
void fz_signal_life_ends(struct fz_fiber *self);

/* The fiber ends: what was routed to it goes to others.  In the runtime. */
void fz_signal_give_back(struct fz_fiber *self);

/*
 * Wait until one of the set is pending and take it: its number, -EINTR after a
 * handler, -EAGAIN when the deadline has passed (0: does not wait).  A cancellation
 * point.  From a fiber, outside the runtime.
 */
int fz_signal_wait(struct fz_fiber *self, uint64_t set, struct fz_siginfo *ret_info,
		   fz_nsec deadline);

/* What is pending for the process and no longer in the kernel.  Any thread. */
uint64_t fz_signal_process_pending(void);

/* A signalfd reads these: they must not be pending with us. */
void fz_signal_note_signalfd(uint64_t set);

/*
 * A call has failed with err: if the kernel has made the signal that goes with -EPIPE or
 * -EFBIG pending for the kernel thread, because the fiber blocks it, it becomes the
 * fiber's.  Outside the runtime.
 */
void fz_signal_collect(struct fz_fiber *self, int err);

/* How many signals have arrived for the process and have not been given to a fiber. */
extern _Atomic uint32_t fz_signal_arriving FZ_HIDDEN;

/* Find fibers for them.  In the runtime, with no lock held. */
void fz_signal_route_arrived(void);

/* By the monitor: the same, and see that those fibers take notice.  Returns true if
 * it must come back soon. */
bool fz_signal_route(void);

/*
 * Put ourselves before libc's handlers of its own two signals, whenever it may
 * have installed them anew: after its first thread, after pthread_cancel.
 */
void fz_signal_guard_libc(void);

/*
 * By the monitor, once libc has cancelled it: was it signalled for that?  Then libc
 * cancels who waits in a call of its own by where the signal finds it (glibc 2.41).
 */
void fz_signal_learn_cancel(void);

/* Name the thread before the program dies of stack overflow. */
void fz_signal_report_overflow(void);

void fz_signal_after_fork(void);

#endif
