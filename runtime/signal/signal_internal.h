/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SIGNAL_SIGNAL_INTERNAL_H
#define FZ_RUNTIME_SIGNAL_SIGNAL_INTERNAL_H

/*
 * runtime/signal/signal_internal.h - what the files behind runtime/signal/signal.h share.
 */

#include "runtime/signal/signal.h"

/* Kernel numbers, the same on every architecture that we know. */
enum {
	SIG_ILL = 4, SIG_TRAP = 5, SIG_BUS = 7, SIG_FPE = 8, SIG_KILL = 9, SIG_SEGV = 11,
	SIG_PIPE = 13, SIG_CHLD = 17, SIG_CONT = 18, SIG_STOP = 19, SIG_TSTP = 20,
	SIG_TTIN = 21, SIG_TTOU = 22, SIG_URG = 23, SIG_XFSZ = 25, SIG_VTALRM = 26, SIG_PROF = 27,
	SIG_WINCH = 28, SIG_SYS = 31, SIG_CANCEL = FZ_SIGNAL_CANCEL, SIG_SETXID = 33,
	HOW_BLOCK = 0, HOW_UNBLOCK = 1, HOW_SETMASK = 2,
	CODE_USER = 0, CODE_QUEUE = -1, CODE_TIMER = -2, CODE_TKILL = -6,
	/*
	 * The monitor may only send what has a negative code: CODE_HANDED_BACK - code
	 * stands for another.
	 */
	CODE_HANDED_BACK = -0x465a00, CODE_MAX = 0x100,
};
#define FLAG_NOCLDSTOP 1u
#define FLAG_NOCLDWAIT 2u
#define FLAG_SIGINFO 4u
#define FLAG_ONSTACK 0x08000000u
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
 * process.c: signals that no thread has.  The lock is taken in the runtime, before all others.
 */
void fz_signal_process_lock(void);
void fz_signal_process_unlock(void);

/* Into the inbox.  Any context. */
void fz_signal_inbox_add(struct fz_signode *node);

/* All that is there, in the order of arrival.  Locked. */
struct fz_signode *fz_signal_inbox_take(void);

/* Pending for the process, nobody accepts it.  Locked. */
void fz_signal_pending_add(struct fz_signode *node);

/*
 * Of these, in order, those which somebody accepts now; nobody must miss what has been taken
 * and is pending again.  Locked.
 */
struct fz_signode *fz_signal_pending_take(uint64_t accept);

/* Leave it to the monitor.  Any context. */
void fz_signal_leave_to_monitor(int sig, const void *info);

/*
 * fz_signal_adopt_mask() for what a handler did to its own mask, which returning from it undoes:
 * only others count that as blocked.
 */
void fz_signal_recount(struct fz_fiber *self, uint64_t counted);

/*
 * mask.c: the calling fiber's mask and its kernel thread's, for a while, so that it is
 * not counted.  In user code.
 */
void fz_signal_apply_mask(struct fz_fiber *self, uint64_t mask);

/* signal.c: the kernel prefers the main thread; does it alone know what that one accepts? */
bool fz_signal_main_is_wired(void);

/* mask.c: are there threads that are no fibers, or wired?  In the runtime. */
bool fz_signal_others_exist(void);

/* mask.c: all fibers block these, even if one is in sigwait for them.  Any context. */
uint64_t fz_signal_blocked_by_all(void);

/* sigwait.c: signals for which some fiber is in sigwait.  Any context. */
uint64_t fz_signal_waited_for(void);

/*
 * sigwait.c: a handler begins on a fiber that is in fz_signal_wait().  It ends that, maybe by
 * siglongjmp, and what comes meanwhile is not for who waits.  With the handler's mask.
 */
void fz_signal_wait_interrupted(struct fz_fiber *self);

/*
 * route.c: is there, or may there be, something for the process that the calling
 * fiber accepts from now on?
 */
bool fz_signal_has_come(uint64_t accept);

/*
 * From the process's to the fiber, what it accepts; of a standard signal only if none is
 * pending for the fiber.  In the runtime, no lock held.
 */
void fz_signal_take_from_process(struct fz_fiber *self, uint64_t accept);

/* Is the signal ignored, or by default? */
bool fz_signal_takes_no_notice(int sig);

/* Make a node pending for f and see that it learns of it.  In the runtime. */
void fz_signal_deliver(struct fz_fiber *f, struct fz_signode *node);

/*
 * exec.c: the kernel has it from now on, for the process, as no fiber accepts it, but other
 * threads may.  False if it has no room for it.
 */
bool fz_signal_hand_back(struct fz_signode *node);

/* The same, for the calling thread, which is wired, if it was sent to that. */
bool fz_signal_to_kernel(struct fz_signode *node);

/* nudge.c: what is pending for f and could be handled or taken now.  Any thread. */
uint64_t fz_signal_due(const struct fz_fiber *f);

/*
 * If f runs user code: interrupt its kernel thread, for the signals in `due` or to be
 * cancelled.  What is pending stays with f, so that nothing is lost if it is not there.
 */
void fz_signal_interrupt(struct fz_fiber *f, uint64_t due);

/* By the monitor, for fz_fiber_each(): wake or interrupt f if it must look; then *again. */
bool fz_signal_nudge_if_due(struct fz_fiber *f, void *again);

/* Is some thread between fz_signal_before_exec() and the end of the process? */
bool fz_signal_executing(void);

/*
 * handler.c: in a handler that is about to return to `mask`, with all signals blocked: what is
 * pending comes when it does, from the kernel, and is told of the place that it returns to.
 * Returns false if something will not.
 */
bool fz_signal_owe(struct fz_fiber *self, uint64_t mask);

/* It has been given a signal in a handler; somebody must look whether it noticed. */
void fz_signal_undelivered(void);

void fz_signal_masks_after_fork(void);
void fz_signal_process_after_fork(void);
void fz_signal_exec_after_fork(void);
void fz_signal_actions_after_fork(void);
void fz_sigwait_after_fork(void);
void fz_sigqueue_after_fork(void);

#endif
