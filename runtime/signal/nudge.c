/* SPDX-License-Identifier: MIT */
/*
 * runtime/signal/nudge.c - the monitor or a sender interrupts the kernel thread of a fiber in
 * user code, by one of libc's two internal signals; and our handlers of these signals, in front
 * of libc's.
 */
#include <asm/errno.h>
#include <ucontext.h>

#include "runtime/base/count.h"
#include "runtime/base/host.h"
#include "runtime/sched/cancel.h"
#include "runtime/sched/carrier.h"
#include "runtime/sched/park.h"
#include "runtime/sched/sched.h"
#include "runtime/signal/altstack.h"
#include "runtime/signal/signal_internal.h"

static struct {
	void (*setxid_handler)(int, void *, void *);
	void (*cancel_handler)(int, void *, void *);
	_Atomic bool cancels_by_place;	/* fz_signal_learn_cancel() */
} nudges;

uint64_t fz_signal_due(const struct fz_fiber *f)
{
	return atomic_load_explicit(&f->pending, memory_order_seq_cst) &
	       (~f->mask | f->sig.sigwait_set) & ~FZ_SIGNALS_OF_LIBC;
}

/*
 * Which of libc's two signals is to interrupt f. If f is in a system call, the signal decides
 * whether that is restarted: our handler of SIGSETXID has SA_RESTART, that of SIGCANCEL has not. So
 * choose as the handlers of the due signals require.
 */
static int interrupting_signal(const struct fz_fiber *f, uint64_t due)
{
	for (; due; due &= due - 1)
		if (!(fz_signal_action_get(__builtin_ctzll(due) + 1).flags & FLAG_RESTART))
			return SIG_CANCEL;
	return fz_cancel_interrupts(f) ? SIG_CANCEL : SIG_SETXID;
}

/* Must f be interrupted to take a new scheduling policy?  A parked fiber need not: it takes the policy when it continues. */
static bool must_take_policy(const struct fz_fiber *f)
{
	/* relaxed: a hint; fz_signal_set_policy() pokes the monitor. */
	return FZ_UNLIKELY(atomic_load_explicit(&f->pending, memory_order_relaxed) &
			   FZ_SIGNAL_POLICY) &&
	       !fz_wait_is_parked(f);
}

/* Note that the nudge `sent` to c is not on its way any more.  Anything else stays as it is. */
static void forget(struct fz_carrier *c, uint32_t sent)
{
	/* relaxed: the worst case is one nudge too many. */
	atomic_compare_exchange_strong_explicit(&c->nudge, &sent, FZ_NUDGE_NONE,
						memory_order_relaxed, memory_order_relaxed);
}

/* Note that no nudge is on its way to c any more.  If nudges are barred, they stay barred. */
static void forget_nudge(struct fz_carrier *c, void *unused)
{
	/* relaxed, as in forget(). */
	uint32_t nudge = atomic_load_explicit(&c->nudge, memory_order_relaxed);

	(void)unused;
	if (nudge != FZ_NUDGE_BARRED)
		forget(c, nudge);
}

bool fz_signal_bar_nudges(struct fz_carrier *c)
{
	uint32_t before = FZ_NUDGE_NONE;

	/*
	 * A nudge that is on its way ends this wait when it arrives here; so does send_nudge() if it
	 * could not send.  acquire: no store pairs with it, because a nudge publishes nothing.
	 */
	while (!atomic_compare_exchange_strong_explicit(&c->nudge, &before, FZ_NUDGE_BARRED,
							memory_order_acquire,
							memory_order_relaxed)) {
		if (before == FZ_NUDGE_BARRED)
			return false;
		fz_sys_futex_wait(&c->nudge, before, NULL);
		before = FZ_NUDGE_NONE;
	}
	return true;
}

void fz_signal_allow_nudges(struct fz_carrier *c)
{
	/* relaxed: a nudge orders nothing. */
	atomic_store_explicit(&c->nudge, FZ_NUDGE_NONE, memory_order_relaxed);
}

/*
 * A filter forbids the caller, or each thread, the call that names the carrier. tgkill says what
 * libc says, so tell is_nudge() that one more signal of this number comes.
 */
static long send_by_tgkill(struct fz_carrier *c, int tid, int sig)
{
	uint32_t sent = FZ_NUDGE_SENT;
	long err;

	/* If gettid is forbidden, too, is_nudge() cannot tell, and libc would obey SIGSETXID: send SIGCANCEL. */
	if (fz_sys_gettid() <= 0)
		sig = SIG_CANCEL;
	/* relaxed: the signal that follows orders the exchange.  It fails if the nudge has been forgotten. */
	if (!atomic_compare_exchange_strong_explicit(&c->nudge, &sent, (uint32_t)sig,
						     memory_order_relaxed, memory_order_relaxed))
		return -ESRCH;
	err = fz_syscall3(__NR_tgkill, fz_sys_getpid(), tid, sig);
	if (err)
		forget(c, (uint32_t)sig);
	return err;
}

static void send_nudge(struct fz_carrier *c, int sig)
{
	struct fz_siginfo siginfo;
	uint32_t none = FZ_NUDGE_NONE;
	const int tid = c->tid;
	long err;

	/*
	 * One nudge at a time: they would queue, and all arrive at once, each on top of the
	 * other. relaxed: a hint; a nudge that finds nothing to do makes room for the next.
	 */
	if (!atomic_compare_exchange_strong_explicit(&c->nudge, &none, FZ_NUDGE_SENT,
						     memory_order_relaxed, memory_order_relaxed))
		return;
	/* Not SI_TKILL: libc itself sends these signals with that code. */
	siginfo = fz_signal_info(sig, CODE_QUEUE, (uintptr_t)c);
	err = fz_syscall4(__NR_rt_tgsigqueueinfo, fz_sys_getpid(), tid, sig, (long)&siginfo);
	/* tid 0, an ended carrier's, is EINVAL. */
	if (FZ_UNLIKELY(err && err != -EAGAIN && err != -ESRCH && tid))
		err = send_by_tgkill(c, tid, sig);
	if (FZ_UNLIKELY(err)) {
		forget(c, FZ_NUDGE_SENT);
		fz_sys_futex_wake(&c->nudge, 1);
	}
}

void fz_signal_interrupt(struct fz_fiber *f, uint64_t due)
{
	if (f->carrier && !atomic_load_explicit(&f->in_runtime, memory_order_relaxed))
		send_nudge(f->carrier, interrupting_signal(f, due));
}

void fz_signal_preempt(struct fz_carrier *c)
{
	fz_count_total(FZ_TOTAL_interruptions, 1);
	/* relaxed: the nudge that follows orders the store. */
	atomic_store_explicit(&c->preempted, true, memory_order_relaxed);
	send_nudge(c, SIG_SETXID);
}

/*
 * May f be blocked in a call of libc's that libc cancels only when a signal interrupts it there? A
 * parked fiber is not: it was in no such call when it was cancelled, and its next call acts on the
 * request by itself.
 */
static bool may_be_cancelled_by_place(const struct fz_fiber *f)
{
	return FZ_UNLIKELY(fz_cancel_is_unseen(f)) && f->kind == FZ_KIND_FIBER &&
	       /* relaxed: only the monitor sets it. */
	       atomic_load_explicit(&nudges.cancels_by_place, memory_order_relaxed) &&
	       !fz_wait_is_parked(f);
}

bool fz_signal_nudge_if_due(struct fz_fiber *f, void *arg)
{
	bool *again = arg;
	uint64_t due = fz_signal_due(f);
	const bool cancelled = fz_cancel_interrupts(f);

	if (!due && !cancelled && !may_be_cancelled_by_place(f) && !must_take_policy(f))
		return false;
	*again = true;
	if (!(cancelled ? fz_wake_any(f, FZ_WHY_SIGNAL) : due && fz_wake_due(f)))
		fz_signal_interrupt(f, due);
	return false;
}

/* ---- libc's own signals, in front of its handlers ------------------------- */

void fz_signal_learn_cancel(void)
{
	static const struct __kernel_timespec none;
	uint64_t set = fz_signal_bit(SIG_CANCEL);

	/*
	 * relaxed: read by may_be_cancelled_by_place(), which runs after this on the monitor,
	 * and by threads that the monitor nudges after it.
	 */
	if (fz_syscall4(__NR_rt_sigtimedwait, (long)&set, 0, (long)&none, sizeof(set)) ==
	    SIG_CANCEL)
		atomic_store_explicit(&nudges.cancels_by_place, true, memory_order_relaxed);
}

/*
 * Call libc's cancel handler, which knows whether the interrupted call is one that it cancels.
 * May not return.
 */
static void cancel_by_place(struct fz_fiber *self, uint64_t mask, void *ucontext)
{
	struct fz_siginfo info = fz_signal_info(SIG_CANCEL, CODE_TKILL, 0);

	/* libc's handler may unwind out of this one: restore the mask first. */
	fz_sys_sigmask(HOW_SETMASK, &mask, NULL);
	nudges.cancel_handler(SIG_CANCEL, &info, ucontext);
	/*
	 * With another mask the nudge has interrupted a handler that begins or ends. That handler
	 * may have interrupted such a call, which libc does not see from here, so do not mark the
	 * cancellation as seen.  relaxed: the monitor may ask once more.
	 */
	if (mask == self->mask)
		atomic_store_explicit(&self->cancel.seen, true, memory_order_relaxed);
}

static uint64_t mask_of(const void *ucontext)
{
	uint64_t mask;

	__builtin_memcpy(&mask, &((const ucontext_t *)ucontext)->uc_sigmask, sizeof(mask));
	return mask;
}

/*
 * Allow the next nudge; it can come when this handler has unblocked signals. Use the carrier that
 * the sender named: in the middle of a switch the fiber cannot tell which carrier it was on.
 */
static void nudge_is_over(const struct fz_siginfo_head *info)
{
	struct fz_carrier *c = info->code == CODE_QUEUE ?
				       (struct fz_carrier *)(uintptr_t)info->value :
				       fz_carrier_by_tid((int)fz_sys_gettid());

	/* A filter forbids gettid. */
	if (FZ_UNLIKELY(!c))
		fz_carrier_each(forget_nudge, NULL);
	else if (info->pid == (int)fz_sys_getpid())
		forget(c, info->code == CODE_QUEUE ? FZ_NUDGE_SENT : (uint32_t)info->signo);
}

/*
 * Let other fibers run if fz_signal_preempt() asked for it. All signals are blocked before and
 * after.
 */
static void let_others_run(struct fz_fiber *self)
{
	const uint64_t all = ~(uint64_t)0;
	struct fz_carrier *c = self->carrier;

	if (FZ_LIKELY(!atomic_exchange_explicit(&c->preempted, false, memory_order_relaxed)) ||
	    self->kind != FZ_KIND_FIBER ||
	    /*
	     * Not in fork: fibers that wait for fork's locks would keep the kernel threads that
	     * the fork needs.
	     */
	    self->call.in_fork ||
	    /*
	     * Not while a signal that the fiber sent to itself is pending in the kernel: it is
	     * directed at this kernel thread, so the fiber that runs here next would get it.
	     */
	    fz_signal_is_owed(self))
		return;
	/*
	 * The brief call that this carrier noted ends here, because the fiber may continue, and end
	 * the call, on another carrier.  relaxed: only this thread and its handlers write the
	 * carrier's calls.
	 */
	atomic_fetch_and_explicit(&c->calls, ~(uint32_t)FZ_CARRIER_IN_CALL, memory_order_relaxed);
	/* The fiber that runs next loads its own mask. */
	c->kernel_mask = all;
	fz_enter_runtime(self);
	fz_sched_rotate(self);
	fz_sys_sigmask(HOW_SETMASK, &all, NULL);
	self->sig.handler_ends = true;
	fz_leave_runtime(self);
	self->sig.handler_ends = false;
	/* The kernel has self->mask when this handler returns. */
	self->carrier->kernel_mask = self->mask;
}

/*
 * Have the next pending signal delivered when this handler returns, as the kernel would. If its
 * handler ran on top of this one, its ucontext would show the library instead of the program, and
 * it could not redirect the program. Not during a call with a mask of its own: its first handler
 * restores another mask than the one to which this handler returns.
 */
static bool comes_on_return(struct fz_fiber *self, uint64_t mask)
{
	return self->kind == FZ_KIND_FIBER && !self->sig.suspended && !self->sig.restores_mask &&
	       fz_signal_owe(self, mask);
}

/* A nudge has arrived: see fz_signal_nudge_if_due(). */
static void nudged(struct fz_fiber *self, const struct fz_siginfo_head *info, void *ucontext)
{
	struct fz_alt_stack *alt_stack = (void *)&((ucontext_t *)ucontext)->uc_stack;
	uint64_t mask = mask_of(ucontext);
	bool unseen;

	nudge_is_over(info);
	if (!fz_is_fiber(self) || self->sig.between_lives || self->sig.barred ||
	    atomic_load_explicit(&self->in_runtime, memory_order_relaxed))
		return;
	if (FZ_UNLIKELY(fz_alt_stack_leave_report(self, alt_stack))) {
		send_nudge(self->carrier, info->signo);
		return;
	}
	/*
	 * Read before the next nudge can interrupt this handler: libc does not see the
	 * cancelled call from there.
	 */
	unseen = atomic_load_explicit(&nudges.cancels_by_place, memory_order_relaxed) &&
		 fz_cancel_is_unseen(self);
	/*
	 * In two cases run no handler. If the kernel's mask is not self->mask, a handler has just begun or
	 * is about to return: the monitor will nudge again. While the fiber sends a signal to
	 * itself (`injecting`), it looks for pending signals by itself afterwards.
	 */
	if ((mask == self->mask || self->kind == FZ_KIND_WIRED) && !self->sig.injecting) {
		let_others_run(self);
		if (must_take_policy(self) || !comes_on_return(self, mask)) {
			fz_sys_sigmask(HOW_SETMASK, &mask, NULL);
			fz_signal_run_pending(self);
		}
		if (self->kind == FZ_KIND_FIBER)
			fz_alt_stack_handler_ends(self, alt_stack);
	}
	/* This covers libc's own blocking calls, too, where libc makes them asynchronously cancellable. */
	if (fz_cancel_is_asynchronous(self)) {
		fz_sys_sigmask(HOW_SETMASK, &mask, NULL);
		fz_host.test_cancel();
	}
	if (unseen)
		cancel_by_place(self, mask, ucontext);
}

/* Did send_nudge() send the signal, and not libc? */
static bool is_nudge(const struct fz_siginfo_head *info)
{
	const struct fz_carrier *c;

	if (FZ_LIKELY(info->code == CODE_QUEUE))
		return true;
	/*
	 * By tgkill.  If libc has sent a signal of this number, too, both arrive, and it does not matter
	 * which is which.
	 */
	c = fz_carrier_by_tid((int)fz_sys_gettid());
	return c && atomic_load_explicit(&c->nudge, memory_order_relaxed) == (uint32_t)info->signo;
}

/* Not inlined: it uses thread-local variables, and setxid_arrived() changes the thread pointer. */
static __attribute__((noinline)) void nudged_for_restart(const struct fz_siginfo_head *info,
							 void *ucontext)
{
	nudged(fz_self(), info, ucontext);
}

/*
 * libc makes all its threads change their ids by SIGSETXID, and its handler clears a bit in the
 * TCB it runs on: that must be libc's record of this kernel thread, to which libc sent the signal,
 * not the TCB of the fiber that happens to run here.
 */
static void setxid_arrived(int sig, void *siginfo, void *ucontext)
{
	const struct fz_siginfo_head *info = siginfo;
	struct fz_carrier *c;
	uintptr_t tcb;

	if (is_nudge(info)) {
		nudged_for_restart(info, ucontext);
		return;
	}
	c = fz_carrier_by_tid((int)fz_sys_gettid());
	tcb = fz_tcb_get();
	if (!c) {
		nudges.setxid_handler(sig, siginfo, ucontext);
		return;
	}
	fz_tcb_set(c->libc_tcb);
	nudges.setxid_handler(sig, siginfo, ucontext);
	fz_tcb_set(tcb);
}

/*
 * The signal is a nudge, or libc sent it to cancel a native thread asynchronously.  Where a filter
 * forbids gettid, is_nudge() cannot tell: then each signal that comes to a thread that is not
 * native counts as a nudge.
 */
static void cancel_arrived(int sig, void *siginfo, void *ucontext)
{
	const struct fz_siginfo_head *info = siginfo;
	uint64_t mask = mask_of(ucontext);

	if (is_nudge(info) || (fz_sys_gettid() <= 0 && fz_self()->kind != FZ_KIND_NATIVE)) {
		nudged(fz_self(), info, ucontext);
	} else if (nudges.cancel_handler) {
		/* libc's handler may unwind out of this one: restore the mask first. */
		fz_sys_sigmask(HOW_SETMASK, &mask, NULL);
		nudges.cancel_handler(sig, siginfo, ucontext);
	}
}

/*
 * Put `ours` before libc's handler of sig, if libc has one or `always`. Returns true if `ours`
 * was not there.
 */
static bool guard(int sig, void (*ours)(int, void *, void *), bool always,
		  void (**libc)(int, void *, void *))
{
	struct kernel_sigaction action, any;

	if (kernel_action(sig, NULL, &action) || action.handler == ours)
		return false;
	if ((uintptr_t)action.handler > 1)
		*libc = action.handler;
	else if (!always)
		return false;
	/* Our handler needs libc's sa_restorer, too. */
	kernel_action(SIG_SETXID, NULL, &any);
	action.restorer = any.restorer;
	action.handler = ours;
	/*
	 * Block all signals, for two reasons. No handler may run while the thread pointer is
	 * another thread's. And no handler may run on top of a nudge that is not over: its fiber
	 * may wait for something that only the next nudge brings about.
	 */
	action.mask = ~(uint64_t)0;
	/* SIGCANCEL without SA_RESTART: see interrupting_signal(). */
	action.flags = (any.flags | FLAG_SIGINFO) &
		       ~(sig == SIG_CANCEL ? (unsigned long)FLAG_RESTART : 0);
	return kernel_action(sig, &action, NULL) == 0;
}

void fz_signal_guard_libc(void)
{
	bool renewed = guard(SIG_SETXID, setxid_arrived, false, &nudges.setxid_handler);

	renewed |= guard(SIG_CANCEL, cancel_arrived, true, &nudges.cancel_handler);
	/* libc's own handler may have received a nudge meanwhile, and ignored it. */
	if (renewed)
		fz_carrier_each(forget_nudge, NULL);
}
