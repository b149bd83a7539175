/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SIGNAL_SIGNAL_H
#define FZ_RUNTIME_SIGNAL_SIGNAL_H

/*
 * runtime/signal/signal.h - which thread handles a signal, and when.
 *
 * The kernel delivers a signal to any kernel thread that does not block it. The kernel's
 * handler of every signal that the program handles is therefore fz_signal_arrived(), which
 *
 *	in user code of the right fiber		calls the program's handler at once
 *	elsewhere				leaves the signal to the monitor, which
 *						picks a fiber and wakes it
 *
 * The right fiber is, as in the kernel, the main thread unless it blocks the signal (before it, for SIGCHLD,
 * the thread that made the child), then a thread that is in sigwait for the signal, then any thread that does
 * not block it. A fiber that was woken for a signal sends the signal to itself once it has left the runtime,
 * so that the kernel builds the signal frame: mask, alternate stack, ucontext and SA_RESETHAND are the kernel's
 * business.
 *
 * While a fiber is in sigwait for a signal that the program does not handle,
 * fz_signal_arrived() is in front of that signal, too (the signal is "substituted"): otherwise
 * the kernel would take the default action as soon as any kernel thread has the signal
 * unblocked. The library takes the default action where the kernel would.
 */

#include "runtime/fiber/fiber.h"
#include "runtime/signal/queue.h"

enum { FZ_SIGNALS = 64 };

/* What the program passed to sigaction; the kernel has fz_signal_arrived instead. */
struct fz_action {
	void (*handler)(int, void *, void *);	/* or SIG_DFL 0, SIG_IGN 1 */
	uint64_t mask;
	uint64_t flags;				/* SA_* */
};

static inline uint64_t fz_signal_bit(int sig)
{
	return (uint64_t)1 << (sig - 1);
}

/* libc's own signals, SIGCANCEL and SIGSETXID, which no thread may block. */
#define FZ_SIGNALS_OF_LIBC ((uint64_t)3 << 31)
#define FZ_SIGNAL_CANCEL 32
#define FZ_SIGNALS_ALL (~FZ_SIGNALS_OF_LIBC)

/*
 * Called by the handler that we give to the kernel (fz_host.signal_handler), for signals that the program
 * handles and for substituted signals.
 */
void fz_signal_arrived(int sig, void *info, void *ucontext);

/* Call the program's handler of sig. On the thread that the signal is for, in user code. */
void fz_signal_call_handler(struct fz_fiber *self, int sig, void *info, void *ucontext);

/*
 * The last step of a handler that the kernel called: the mask and the alternate stack that the
 * return restores become the fiber's, too. before: the mask that the return would have restored
 * when the handler began; mask: the one that it restores now.
 */
void fz_signal_handler_ends(struct fz_fiber *self, uint64_t before, uint64_t mask,
			    struct fz_alt_stack *alt_stack);

/* ---- actions (runtime/signal/action.c) ---------------------------------- */

/* The table of what the program passed to sigaction. Any thread; signal handlers, too. */
struct fz_action fz_signal_action_get(int sig);
/*
 * Set the action of sig in the table. substituted: the kernel has our handler, although the program's action is
 * no handler. Call between fz_signal_actions_lock() and fz_signal_actions_unlock().
 */
void fz_signal_action_set(int sig, const struct fz_action *action, bool substituted);

/* The signals for which the program has a handler.  Any thread. */
uint64_t fz_signal_with_handler(void);

/*
 * Bracket around a change of the kernel's action for a signal and of our table. Such changes come
 * one after the other, and no handler on this thread finds the two in disagreement.
 */
void fz_signal_actions_lock(uint64_t *ret_mask);
void fz_signal_actions_unlock(const uint64_t *mask);

/*
 * Is the signal substituted: does the program not handle it, while the kernel has our handler for
 * it? Any thread.
 */
bool fz_signal_substituted(int sig);

/* sigwait.c: signals for which some fiber is in sigwait.  Any context. */
uint64_t fz_signal_waited_for(void);

/*
 * Returns the action for a signal that has arrived.  If that has SA_RESETHAND, the signal's action becomes the
 * default action, also in the kernel.  The kernel must not do that by itself, because it may deliver a signal
 * twice, first to a kernel thread that cannot run the handler.
 */
struct fz_action fz_signal_action_once(int sig);

/*
 * substitute: put our handler in front of the signals in set that the program does not handle. restore: give
 * the program's own action back to the kernel, for signals in set for which no fiber waits and where the
 * program could notice our handler.  In the runtime.  The monitor calls restore again, because a thread may
 * have begun to accept such a signal.
 */
void fz_signal_substitute(uint64_t set);
void fz_signal_restore(uint64_t set);

/*
 * Bracket around libc's system(), which ignores SIGINT and SIGQUIT in the kernel while its command runs.  If a
 * fiber is in sigwait for one of the two, the monitor leaves that signal pending until system() ends.  Outside
 * the runtime; the runtime has started.
 */
void fz_signal_system_begins(void);
void fz_signal_system_ends(void);

/*
 * Bracket around a call that makes a process inside libc, where the library does not see the exec.  The child
 * inherits which signals are ignored, so substituted signals that the program ignores are ignored in the kernel
 * meanwhile.
 *
 * A signal of these that was pending before moves to the process's queue, because the kernel drops it.  One
 * that comes meanwhile stays pending for the threads that wait for it, unless a fiber in its code accepts it,
 * as natively.
 *
 * before_spawn waits for the monitor, if there are such signals.  Any thread, outside the runtime.
 */
bool fz_signal_before_spawn(void);
void fz_signal_after_spawn(bool began);

/*
 * The signals ignored in the kernel between fz_signal_before_spawn() and fz_signal_after_spawn(), or in
 * system().  The monitor leaves them pending.
 */
uint64_t fz_signals_hidden(void);

/* Returns which of SIGCHLD, SIGCONT, SIGURG and SIGWINCH have no handler, neither the program's nor ours.  Any thread. */
uint64_t fz_signals_without_effect(void);

/*
 * Bracket around exec, besides fz_signal_before_spawn(). exec keeps what is pending for the process
 * and for the caller.  When before_exec returns, all of that is pending in the kernel, and the
 * caller's kernel thread gets no more nudges.  Call after_exec if exec has failed; it takes what
 * before_exec returned. Any thread, outside the runtime.
 */
struct fz_carrier *fz_signal_before_exec(struct fz_fiber *self);
void fz_signal_after_exec(struct fz_carrier *c);

/*
 * Take the default action of sig on this process, now. Outside the runtime, or by the monitor.
 * Returns if the default action is to ignore the signal, or after a stop has been continued.
 */
void fz_signal_default(int sig);

/* Is the default action of sig to ignore it? To end the process? */
bool fz_signal_ignored_by_default(int sig);
bool fz_signal_ends_process(int sig);

/* ---- handlers and calls (runtime/signal/handler.c, run.c) ---------------- */

/* A call begins: count only handlers that run from now on, while the call waits or between two of its attempts. */
static inline void fz_signal_mark(struct fz_fiber *self)
{
	self->handled = 0;
}

/* Has a handler run since fz_signal_mark()? Then the call must not begin to wait. */
static inline bool fz_signal_handled(const struct fz_fiber *self)
{
	return self->handled;
}

/*
 * Is a handler about to run on the calling thread, when it leaves the runtime?  relaxed: a signal that
 * comes later is followed by a nudge.
 */
static inline bool fz_signal_is_due(const struct fz_fiber *self)
{
	return atomic_load_explicit(&self->pending, memory_order_relaxed) & ~self->mask;
}

/*
 * Do all handlers that have run since fz_signal_mark() have SA_RESTART? Then the call goes on, and
 * calls fz_signal_mark() again.
 */
static inline bool fz_signal_restarts(const struct fz_fiber *self)
{
	return !(self->handled & FZ_HANDLED_EINTR);
}

/*
 * The time limit for a real call that a handler must end, even a handler that runs just before
 * the call sleeps: a handler sets the limit to 0.
 */
struct __kernel_timespec *fz_signal_limit(struct fz_fiber *self, fz_nsec deadline);

/* Run the handlers of signals that are pending and unblocked. Outside the runtime. */
void fz_signal_run_pending(struct fz_fiber *self);

/* ---- masks (runtime/signal/mask.c) --------------------------------------- */

/*
 * Change the calling fiber's mask; how as in sigprocmask. Outside the runtime. Runs the
 * handlers of pending signals that the change unblocks. Returns 0 or -EINVAL.
 */
int fz_signal_set_mask(struct fz_fiber *self, int how, const uint64_t *set,
		       uint64_t *ret_old);

/*
 * The calling fiber's mask becomes `mask`, and the kernel learns of it by other means: a
 * handler has changed the mask that its return restores, or libc changes the mask by itself.
 * Outside the runtime; enters the runtime, so the fiber may end up on another kernel thread.
 */
void fz_signal_adopt_mask(struct fz_fiber *self, uint64_t mask);

/*
 * A mask for the time of one call, such as sigsuspend or ppoll. From here on a handler that runs ends the call,
 * even if it runs before the call sleeps. Returns true if a handler has run already.
 *
 * The previous mask comes back at the end of the first handler, as in the kernel, or by
 * fz_signal_unswap_mask(), which takes the *ret_old of fz_signal_swap_mask(). Therefore, when several signals
 * are pending, only those that the handler's mask admits, too, are handled during the call, on top of the first
 * handler.
 */
struct fz_mask_swap {
	uint64_t mask, during;
	bool suspended;
};
bool fz_signal_swap_mask(struct fz_fiber *self, uint64_t mask, struct fz_mask_swap *ret_old);
void fz_signal_unswap_mask(struct fz_fiber *self, const struct fz_mask_swap *old);

/*
 * Set the mask of the carrier's kernel thread. By the scheduler, when a fiber's mask differs
 * from the kernel's.
 */
void fz_signal_load_mask(struct fz_carrier *carrier, uint64_t mask);

/*
 * Does the calling fiber's kernel thread have the mask that we gave it? Not while libc has
 * changed that mask by itself: then the fiber has to stay on that kernel thread.
 */
bool fz_signal_mask_is_known(const struct fz_fiber *self);

/* A fiber that is not wired begins or ends: count its mask. By the registry, under its lock. */
void fz_signal_thread_started(struct fz_fiber *f);
void fz_signal_thread_ended(struct fz_fiber *f);

/*
 * The calling fiber becomes wired: from now on its mask is its kernel thread's, and the kernel
 * delivers its signals. In the runtime. Returns whether fz_signal_left_to_kernel() has changed.
 */
bool fz_signal_wire(struct fz_fiber *self);

/* The signals that must stay pending in the kernel, because no fiber accepts them. */
uint64_t fz_signal_left_to_kernel(void);

/* ---- sending and waiting (runtime/signal/send.c, route.c, sigwait.c) ----- */

/*
 * Make sig pending for one fiber. info: as the kernel would fill it. limited: count the signal
 * against RLIMIT_SIGPENDING. Any thread, outside the runtime. If the caller sends to itself,
 * the handler has run on return. Returns 0 or -EAGAIN.
 */
int fz_signal_send(struct fz_fiber *fiber, int sig, const struct fz_siginfo *info,
		   bool limited);

/*
 * Send sig to the calling fiber, which does not block sig: the handler has run on return.
 * Returns 0 or -errno.
 */
int fz_signal_send_here(struct fz_fiber *self, int sig, const struct fz_siginfo *info);

/*
 * If each fiber were a kernel thread and the caller sent sig to its own process: would the
 * kernel choose the caller?
 */
bool fz_signal_is_mine(struct fz_fiber *self, int sig);

/*
 * Send sig to the fiber of this process that the kernel would choose: on return the signal is
 * pending for that fiber. False if the kernel has to send it. From a fiber, outside the
 * runtime.
 */
bool fz_signal_send_to_process(int sig, const struct fz_siginfo *info);

/*
 * Mark in si_errno of a signal queued for one kernel thread. The kernel does not tell the
 * receiver whether a signal was sent to the thread or to the process. The program never sees
 * this mark: fz_signal_unmark() removes it.
 */
enum { FZ_SIGNAL_DIRECTED = 0x465a };

/*
 * Undo our marks in the siginfo of a signal that passed through the kernel on our behalf, so
 * that the program sees it as it was sent. Any context.
 */
void fz_signal_unmark(void *siginfo);

/*
 * Called by a thread other than f: f is wired, and gets the policy, FZ_POLICY(), when it next runs the
 * program's code. before: f->thread.policy as the caller has read it; returns false if that has changed. Any
 * thread, outside the runtime.
 */
bool fz_signal_set_policy(struct fz_fiber *f, uint32_t before, uint32_t policy);

/*
 * The main thread becomes a fiber, and its kernel thread runs other fibers from now on. Make one signal that is
 * pending for the kernel thread, and blocked there, pending for the fiber instead. set: the signals pending for
 * the kernel thread. Returns false if there is none.
 */
bool fz_signal_adopt_pending(struct fz_fiber *self, uint64_t set);

/*
 * Bracket around a real call that sends sig to this process, and maybe to other processes: the
 * kernel may choose another kernel thread than the caller's. fz_signal_sent() returns when the
 * signal has arrived, and its handler has run if the caller is the one to handle it. Call it only
 * if the real call has sent the signal. From a fiber, outside the runtime.
 */
struct fz_sending {
	int sig;			/* 0: another thread may handle it, so no need to wait */
	uint32_t arrived;		/* how many had arrived before */
};
struct fz_sending fz_signal_sending(struct fz_fiber *self, int sig);
void fz_signal_sent(struct fz_fiber *self, const struct fz_sending *sending);

/*
 * Make this kernel thread look for signals of the process that the kernel has left to another
 * kernel thread of ours, and run those that the fiber accepts. From a fiber, outside the runtime.
 */
void fz_signal_look(struct fz_fiber *self);

/*
 * To be called after a wait that another process may have ended. Natively the thread has by now handled the
 * signals that the other process sent before it ended the wait. If natively this thread is the one that takes
 * such signals, do fz_signal_look(). From a fiber, outside the runtime.
 */
void fz_signal_catch_up(struct fz_fiber *self);

/* The siginfo of kill (code 0), tgkill (code -6) or sigqueue (code -1) by this process. */
struct fz_siginfo fz_signal_info(int sig, int code, uint64_t value);

/*
 * The action of sig has changed: if sig is ignored now, drop all that are pending. Outside the
 * runtime, any thread.
 */
void fz_signal_discard(int sig);

/*
 * A fiber may have a pending signal that it has not noticed, or a cancellation: the monitor
 * interrupts that fiber if necessary. Any context.
 */
void fz_signal_undelivered(void);

/*
 * Interrupt the carrier's kernel thread, so that the fiber running user code there lets other
 * fibers run. By the monitor.
 */
void fz_signal_preempt(struct fz_carrier *carrier);

/*
 * The calling thread can handle signals between life_begins and life_ends: its thread-local
 * variables are its own, and pthread_exit can leave it.
 */
void fz_signal_life_begins(struct fz_fiber *self);
void fz_signal_life_ends(struct fz_fiber *self);

/*
 * fz_signal_bar() keeps handlers of the program from running on the calling thread until
 * fz_signal_allow(); pairs may nest. Use it while the thread holds a lock of the library that
 * runtime/base/lock.h does not provide: a handler may wait for a thread that waits for the lock, or
 * never return. Signals of faults and of seccomp filters are handled even so. Any thread, any context.
 * Outside the runtime, the last fz_signal_allow() runs the handlers of pending signals.
 */
static inline void fz_signal_bar(struct fz_fiber *self)
{
	self->sig.barred++;
	atomic_signal_fence(memory_order_seq_cst);
}

void fz_signal_allow(struct fz_fiber *self);

/*
 * The fiber ends: signals for the process that were routed to it go back, for other threads; those for the fiber itself are
 * dropped. In the runtime.
 */
void fz_signal_give_back(struct fz_fiber *self);

/*
 * Wait until a signal of the set is pending and take it. Returns its number, -EINTR after a
 * handler, or -EAGAIN when the deadline has passed (deadline 0: do not wait). A cancellation
 * point. From a fiber, outside the runtime.
 */
int fz_signal_wait(struct fz_fiber *self, uint64_t set, struct fz_siginfo *ret_info,
		   fz_nsec deadline);

/* The signals that are pending for the process in our queue, not in the kernel. Any thread. */
uint64_t fz_signal_process_pending(void);

/*
 * A signalfd reads these signals, which must therefore be pending in the kernel, not with us.
 */
void fz_signal_note_signalfd(uint64_t set);

/*
 * A call has failed with err, -EPIPE or -EFBIG. If the fiber blocks the signal that goes with
 * err, SIGPIPE or SIGXFSZ, the kernel has made the signal pending for the kernel thread: make
 * it pending for the fiber instead. Outside the runtime.
 */
void fz_signal_collect(struct fz_fiber *self, int err);

/*
 * Send SIGPIPE to the calling fiber; unless the fiber blocks it, its handler has run on return.
 * Outside the runtime.
 */
void fz_signal_raise_sigpipe(struct fz_fiber *self);

/* How many signals have arrived for the process and have not been given to a fiber yet. */
extern _Atomic uint32_t fz_signal_arriving FZ_HIDDEN;

/* Give the arrived signals to fibers. In the runtime, with no lock held. */
void fz_signal_route_arrived(void);

/*
 * By the monitor: like fz_signal_route_arrived(); also offers what is pending for the process,
 * and interrupts fibers that have not noticed a pending signal. Returns true if the monitor
 * must call again soon.
 */
bool fz_signal_route(void);

/*
 * Put our handlers before libc's for SIGCANCEL and SIGSETXID. Needed whenever libc may have
 * installed its own anew: after libc's first thread, and after pthread_cancel.
 */
void fz_signal_guard_libc(void);

/*
 * By the monitor, once libc has cancelled the monitor: did libc send it a signal for that? If
 * so, libc cancels a thread in a blocking call of libc's by the place where the signal finds
 * the thread (glibc 2.41).
 */
void fz_signal_learn_cancel(void);

/* From now on, if a fiber overflows its stack, say which one it is before the program ends. */
void fz_signal_report_overflow(void);

void fz_signal_after_fork(void);

#endif
