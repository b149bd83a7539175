/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SIGNAL_SIGNAL_INTERNAL_H
#define FZ_RUNTIME_SIGNAL_SIGNAL_INTERNAL_H

/*
 * runtime/signal/signal_internal.h - what the files behind runtime/signal/signal.h share.
 */

#include "runtime/signal/signal.h"

/* Kernel numbers; equal on every supported architecture. */
enum {
	SIG_INT = 2, SIG_QUIT = 3, SIG_ILL = 4, SIG_TRAP = 5, SIG_BUS = 7, SIG_FPE = 8, SIG_KILL = 9, SIG_SEGV = 11,
	SIG_PIPE = 13, SIG_CHLD = 17, SIG_CONT = 18, SIG_STOP = 19, SIG_TSTP = 20,
	SIG_TTIN = 21, SIG_TTOU = 22, SIG_URG = 23, SIG_XFSZ = 25, SIG_VTALRM = 26, SIG_PROF = 27,
	SIG_WINCH = 28, SIG_SYS = 31, SIG_CANCEL = FZ_SIGNAL_CANCEL, SIG_SETXID = 33,
	HOW_BLOCK = 0, HOW_UNBLOCK = 1, HOW_SETMASK = 2,
	CODE_USER = 0, CODE_QUEUE = -1, CODE_TIMER = -2, CODE_TKILL = -6,
	/*
	 * The kernel lets a thread other than the main one send to its process only siginfos
	 * with certain negative codes. A code that is not allowed travels as CODE_HANDED_BACK -
	 * code.
	 */
	CODE_HANDED_BACK = -0x465a00, CODE_MAX = 0x100,
};
#define FLAG_NOCLDSTOP 1u
#define FLAG_NOCLDWAIT 2u
#define FLAG_SIGINFO 4u
#define FLAG_RESTART 0x10000000u
#define FLAG_NODEFER 0x40000000u
#define FLAG_RESETHAND 0x80000000u

struct kernel_sigaction {
	void (*handler)(int, void *, void *);
	unsigned long flags;
	void (*restorer)(void);
	uint64_t mask;
};

static inline long kernel_action(int sig, const struct kernel_sigaction *action,
				 struct kernel_sigaction *ret_old)
{
	return fz_syscall4(__NR_rt_sigaction, sig, (long)action, (long)ret_old,
			   sizeof(uint64_t));
}

/*
 * process.c: signals that no thread has. The lock is taken in the runtime, before all other
 * locks.
 */
void fz_signal_process_lock(void);
void fz_signal_process_unlock(void);

/* Add a signal to the inbox. Any context. */
void fz_signal_inbox_add(struct fz_signode *node);

/* Take all signals from the inbox, in the order of arrival. Locked. */
struct fz_signode *fz_signal_inbox_take(void);

/*
 * Move the kernel's pending signals of this set, which all threads block, to the process's queue, because the
 * kernel drops them when they become ignored there.  In the runtime.
 */
void fz_signal_pending_keep(uint64_t set);

/* Make a signal that no thread accepts pending for the process. Locked. */
void fz_signal_pending_add(struct fz_signode *node);

/*
 * Take the pending signals in `accept`, in the order of arrival. A caller that may make a taken
 * signal pending again counts it in fz_signal_arriving meanwhile, so that no thread misses it.
 * Locked.
 */
struct fz_signode *fz_signal_pending_take(uint64_t accept);

/* Leave a signal that has arrived to the monitor. Any context. */
void fz_signal_leave_to_monitor(int sig, const void *info);

/*
 * Count self as a thread that blocks `counted`, and change nothing else. For the end of a handler
 * that has changed its own mask: its return restores the mask itself.
 */
void fz_signal_recount(struct fz_fiber *self, uint64_t counted);

/*
 * Change, by change(arg) under the registry's lock, which signals the threads accept. In the runtime, no lock held.
 * Returns whether fz_signal_left_to_kernel() has changed by it: then call fz_monitor_follow_mask().
 */
bool fz_signal_change_accepted(void (*change)(void *), void *arg);

/*
 * mask.c: set the calling fiber's mask and its kernel thread's for a short time, without
 * counting the change. In user code.
 */
void fz_signal_apply_mask(struct fz_fiber *self, uint64_t mask);

/*
 * signal.c: is the main thread wired? The kernel gives a signal to the main thread first; if
 * that is wired, only the kernel knows which signals it accepts.
 */
bool fz_signal_main_is_wired(void);

/* mask.c: are there threads that are no fibers, or are wired? In the runtime. */
bool fz_signal_others_exist(void);

/*
 * mask.c: the signals that all fibers block, even if a fiber is in sigwait for them. Any
 * context.
 */
uint64_t fz_signal_blocked_by_all(void);

/* action.c: the process is about to end by the default action of sig, unless that only stops it. */
void fz_signal_tell_end(int sig);

/*
 * sigwait.c: a handler begins on a fiber that is in fz_signal_wait(). That wait is over, even
 * if the handler leaves by siglongjmp: signals that come from now on do not go to it. Call this
 * when the handler's mask is set.
 */
void fz_signal_wait_interrupted(struct fz_fiber *self);

/*
 * route.c: is a signal in `accept` pending for the process, or may one be on its way? For a
 * fiber that accepts those signals from now on.
 */
bool fz_signal_has_come(uint64_t accept);

/*
 * Move signals in `accept` that are pending for the process to the calling fiber; a standard
 * signal only if none of its number is pending for the fiber. In the runtime, no lock held.
 */
void fz_signal_take_from_process(struct fz_fiber *self, uint64_t accept);

/* arrival.c: a signal for the process has arrived, or was dropped: its sender need not wait any more. Any context. */
void fz_signal_note_arrival(int sig);

/*
 * signal.c: the tid of the thread that has made the child whose change of state the signal tells of; or 0 for
 * any other signal, and if the maker is not known. Any context.
 */
int fz_signal_maker(int sig, const struct fz_siginfo_head *info);

/* signal.c: like fz_signal_is_mine(), but among fibers only: wired threads do not count. */
bool fz_signal_is_mine_of_fibers(const struct fz_fiber *self, int sig);

/* Is the signal ignored, by SIG_IGN or by its default action? */
bool fz_signal_takes_no_notice(int sig);

/* Is a signal on its way from self to itself through the kernel, unless it is ignored by now? */
static inline bool fz_signal_is_owed(const struct fz_fiber *self)
{
	return self->sig.owed && !fz_signal_takes_no_notice(self->sig.owed);
}

/* Make a node pending for f, and wake or interrupt f so that it notices. In the runtime. */
void fz_signal_deliver(struct fz_fiber *f, struct fz_signode *node);

/*
 * exec.c: give a signal for the process, which no fiber accepts, back to the kernel, since
 * threads that are no fibers may accept it. False if the kernel has no room for it.
 */
bool fz_signal_hand_back(struct fz_signode *node);

/*
 * Give a signal that is pending for the calling thread, which is wired, to the kernel: for that
 * kernel thread if the signal was sent to it, otherwise for the process. False if the kernel
 * has no room for it.
 */
bool fz_signal_to_kernel(struct fz_signode *node);

/* nudge.c: the pending signals of f that f could handle or take now. Any thread. */
uint64_t fz_signal_due(const struct fz_fiber *f);

/*
 * If f runs user code, interrupt its kernel thread, for the signals in `due` or for a
 * cancellation. The signals stay pending for f, so none is lost if f has left that kernel
 * thread.
 */
void fz_signal_interrupt(struct fz_fiber *f, uint64_t due);

/*
 * By the monitor, for fz_fiber_each(): wake or interrupt f if f must look for signals or a
 * cancellation; then set *again.
 */
bool fz_signal_nudge_if_due(struct fz_fiber *f, void *again);

/*
 * nudge.c: let no more nudges come to the caller's kernel thread, and wait for one that is on its
 * way. Do not block libc's signals meanwhile. Returns false if nudges were barred already, by a
 * call that the running handler has interrupted.
 */
bool fz_signal_bar_nudges(struct fz_carrier *c);
void fz_signal_allow_nudges(struct fz_carrier *c);

/* Is a thread between fz_signal_before_exec() and the end of the process? */
bool fz_signal_executing(void);

/*
 * handler.c: in a handler that is about to return to `mask`, with all signals blocked. Sends
 * the next pending signal to this kernel thread, so that the kernel delivers it on return, with
 * the ucontext of the code that the handler returns to. Returns false if a pending signal will
 * not be delivered so.
 */
bool fz_signal_owe(struct fz_fiber *self, uint64_t mask);

void fz_signal_masks_after_fork(void);
void fz_signal_process_after_fork(void);
void fz_signal_exec_after_fork(void);
void fz_signal_actions_after_fork(void);
void fz_sigwait_after_fork(void);
void fz_sigqueue_after_fork(void);

#endif
