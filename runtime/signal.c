/* SPDX-License-Identifier: MIT */
#include "runtime/signal.h"

#include <asm/errno.h>

#include "runtime/carrier.h"
#include "runtime/host.h"
#include "runtime/lock.h"
#include "runtime/monitor.h"
#include "runtime/park.h"
#include "runtime/sched.h"

/* Kernel numbers, the same on every architecture that we know. */
enum {
	SIG_ILL = 4, SIG_TRAP = 5, SIG_BUS = 7, SIG_FPE = 8, SIG_SEGV = 11,
	SIG_PIPE = 13, SIG_SYS = 31, SIG_CANCEL = 32, SIG_SETXID = 33,
	HOW_BLOCK = 0, HOW_UNBLOCK = 1, HOW_SETMASK = 2,
	CODE_USER = 0, CODE_QUEUE = -1, CODE_TKILL = -6,
};
#define FLAG_SIGINFO 4u
#define FLAG_RESTART 0x10000000u
#define FLAG_NODEFER 0x40000000u
#define FLAG_RESETHAND 0x80000000u

/* The head of the kernel's siginfo_t, as far as kill() and tgkill() fill it. */
struct info {
	int signo, error, code, pad;
	int pid;
	uint32_t uid;
};

struct kernel_sigaction {
	void (*handler)(int, void *, void *);
	unsigned long flags;
	void (*restorer)(void);
	uint64_t mask;
};

static struct {
	/* Written under lock, read without in handlers: see action_get(). */
	struct fz_lock lock;
	struct fz_action actions[FZ_SIGNALS + 1];
	_Atomic uint32_t version[FZ_SIGNALS + 1];

	/*
	 * Arrived where no handler could run.  taken: info is being written or
	 * in use; ready: written, for the monitor.  Standard signals coalesce.
	 */
	_Atomic uint64_t taken, ready;
	struct fz_siginfo infos[FZ_SIGNALS + 1];
	_Atomic(struct fz_fiber *) routed_to[FZ_SIGNALS + 1];
	/* Some fiber may have a pending signal and not know it. */
	_Atomic bool undelivered;

	/* Guarded by the registry's lock. */
	uint32_t blocked_by[FZ_SIGNALS + 1];
	uint32_t threads;
	_Atomic uint64_t blocked_by_all;
	_Atomic uint64_t waited_for;	/* by fibers in sigwait */

	void (*setxid_handler)(int, void *, void *);
	void (*cancel_handler)(int, void *, void *);
} signals;

/* ---- the program's actions ---------------------------------------------- */

struct fz_action fz_signal_action_get(int sig)
{
	struct fz_action a;
	uint32_t before;

	/* A sequence lock; acquire and fence pair with action_set's release. */
	do {
		before = atomic_load_explicit(&signals.version[sig], memory_order_acquire);
		a = signals.actions[sig];
		atomic_thread_fence(memory_order_acquire);
	} while (before & 1 || before != atomic_load_explicit(&signals.version[sig],
							      memory_order_relaxed));
	return a;
}

void fz_signal_action_set(int sig, const struct fz_action *action)
{
	uint64_t all = ~(uint64_t)0, old;

	/* A handler that reads what we are writing would wait for ever. */
	fz_sys_sigmask(HOW_SETMASK, &all, &old);
	fz_lock_acquire(&signals.lock);
	atomic_fetch_add_explicit(&signals.version[sig], 1, memory_order_acq_rel);
	signals.actions[sig] = *action;
	atomic_fetch_add_explicit(&signals.version[sig], 1, memory_order_release);
	fz_lock_release(&signals.lock);
	fz_sys_sigmask(HOW_SETMASK, &old, NULL);
}

/* ---- masks -------------------------------------------------------------- */

static void publish_blocked_by_all(void)
{
	uint64_t all = 0;

	for (int sig = 1; sig <= FZ_SIGNALS; sig++)
		if (signals.blocked_by[sig] == signals.threads)
			all |= fz_signal_bit(sig);
	/* relaxed: the monitor is told of changes that matter. */
	atomic_store_explicit(&signals.blocked_by_all, all & ~FZ_SIGNALS_OF_LIBC,
			      memory_order_relaxed);
}

static void count(uint64_t mask, int by)
{
	for (; mask; mask &= mask - 1)
		signals.blocked_by[__builtin_ctzll(mask) + 1] += (uint32_t)by;
}

void fz_signal_thread_started(uint64_t mask)
{
	signals.threads++;
	count(mask, 1);
	/*
	 * One more that blocks the same as all: nothing changes.  Otherwise the
	 * set can only shrink; the monitor may learn of that late.
	 */
	if (signals.threads == 1 ||
	    (atomic_load_explicit(&signals.blocked_by_all, memory_order_relaxed) & ~mask))
		publish_blocked_by_all();
}

void fz_signal_thread_ended(uint64_t mask)
{
	signals.threads--;
	count(mask, -1);
	if (signals.threads)
		publish_blocked_by_all();
}

uint64_t fz_signal_left_to_kernel(void)
{
	return atomic_load_explicit(&signals.blocked_by_all, memory_order_relaxed) |
	       atomic_load_explicit(&signals.waited_for, memory_order_relaxed);
}

static bool collect_waits(struct fz_fiber *f, void *arg)
{
	*(uint64_t *)arg |= f->sigwait_set;
	return false;
}

void fz_signal_note_sigwait(struct fz_fiber *self, uint64_t set)
{
	uint64_t before, all = 0;

	fz_enter_runtime(self);
	before = fz_signal_left_to_kernel();
	self->sigwait_set = set;
	fz_fiber_each(collect_waits, &all);
	atomic_store_explicit(&signals.waited_for, all & ~FZ_SIGNALS_OF_LIBC,
			      memory_order_relaxed);
	all = fz_signal_left_to_kernel();
	fz_leave_runtime(self);
	if (all != before)
		fz_monitor_set_mask(all);
}

void fz_signal_load_mask(struct fz_carrier *c, uint64_t mask)
{
	fz_sys_sigmask(HOW_SETMASK, &mask, NULL);
	c->kernel_mask = mask;
}

bool fz_signal_mask_is_known(const struct fz_fiber *self)
{
	uint64_t mask;

	fz_sys_sigmask(HOW_SETMASK, NULL, &mask);
	return mask == self->carrier->kernel_mask;
}

struct mask_change {
	struct fz_fiber *self;
	uint64_t from, to;
};

static bool recount(struct fz_fiber *first, void *arg)
{
	struct mask_change *change = arg;

	(void)first;
	count(change->from & ~change->to, -1);
	count(change->to & ~change->from, 1);
	publish_blocked_by_all();
	return true;
}

static void apply_mask(struct fz_fiber *self, uint64_t mask)
{
	if (self->mask == mask)
		return;
	/* In user code: the carrier stays the same, and nobody else writes these. */
	self->mask = mask;
	self->carrier->kernel_mask = mask;
	fz_sys_sigmask(HOW_SETMASK, &mask, NULL);
}

int fz_signal_set_mask(struct fz_fiber *self, int how, const uint64_t *set,
		       uint64_t *ret_old)
{
	uint64_t old = self->mask, all_before, all_after;
	struct mask_change change = { self, old, old };

	if (set) {
		switch (how) {
		case HOW_BLOCK: change.to = old | *set; break;
		case HOW_UNBLOCK: change.to = old & ~*set; break;
		case HOW_SETMASK: change.to = *set; break;
		default: return -EINVAL;
		}
		change.to &= ~FZ_SIGNALS_OF_LIBC;
	}
	if (change.to != old) {
		/* Blocked at once, before it is counted as blocked. */
		apply_mask(self, old | change.to);
		fz_enter_runtime(self);
		all_before = fz_signal_left_to_kernel();
		fz_fiber_each(recount, &change);
		all_after = fz_signal_left_to_kernel();
		fz_leave_runtime(self);
		/*
		 * Blocked by all from now on: must stay pending in the kernel, for
		 * sigwait, so the monitor may not take it.  The reverse as well, or
		 * nobody would receive it.
		 */
		if (all_before != all_after)
			fz_monitor_set_mask(all_after);
		/* Let in outside the runtime: what is pending is handled here. */
		apply_mask(self, change.to);
		fz_signal_run_pending(self);
	}
	if (ret_old)
		*ret_old = old;
	return 0;
}

/* ---- arrival ------------------------------------------------------------ */

static bool synchronous(int sig, const struct info *info)
{
	if (info->code <= 0)
		return false;
	return sig == SIG_SEGV || sig == SIG_BUS || sig == SIG_FPE || sig == SIG_ILL ||
	       sig == SIG_TRAP || sig == SIG_SYS;
}

static void set_default(int sig)
{
	struct kernel_sigaction dfl = { .handler = NULL };

	fz_syscall4(__NR_rt_sigaction, sig, (long)&dfl, 0, sizeof(uint64_t));
}

/* Call the program's handler: on its own thread, in user code. */
static void call_handler(struct fz_fiber *self, int sig, void *info, void *ucontext)
{
	struct fz_action a = fz_signal_action_get(sig);
	uint64_t mask = self->mask, during = mask | a.mask;

	if ((uintptr_t)a.handler <= 1) {
		/* Changed since it was sent.  The kernel's table is the new one. */
		if (!a.handler)
			fz_syscall3(__NR_tgkill, fz_sys_getpid(), fz_sys_gettid(), sig);
		return;
	}
	if (!(a.flags & FLAG_NODEFER))
		during |= fz_signal_bit(sig);
	if (a.flags & FLAG_RESETHAND) {
		struct fz_action dfl = { .handler = NULL };

		fz_signal_action_set(sig, &dfl);
	}
	self->handlers_run++;
	if (!(a.flags & FLAG_RESTART))
		self->must_return_eintr = true;
	/* What the kernel has set for the time of the handler. */
	if (self->kind == FZ_KIND_FIBER) {
		self->mask = during & ~FZ_SIGNALS_OF_LIBC;
		self->carrier->kernel_mask = self->mask;
	}
	a.handler(sig, info, ucontext);
	if (self->kind == FZ_KIND_FIBER) {
		/* And what the return from the handler restores, maybe elsewhere. */
		self->mask = mask;
		self->carrier->kernel_mask = mask;
	}
}

static void leave_to_monitor(int sig, const void *info)
{
	uint64_t bit = fz_signal_bit(sig);

	/* acquire: pairs with the release of who gave the slot back. */
	if (atomic_fetch_or_explicit(&signals.taken, bit, memory_order_acquire) & bit)
		return;
	__builtin_memcpy(&signals.infos[sig], info, sizeof(struct fz_siginfo));
	/* release: pairs with fz_signal_route(). */
	atomic_fetch_or_explicit(&signals.ready, bit, memory_order_release);
	fz_monitor_poke();
}

/* Does the main thread want a signal that was sent to the process? */
static bool main_wants(int sig)
{
	struct fz_fiber *main_fiber = fz_fiber_main();

	return main_fiber && !(main_fiber->mask & fz_signal_bit(sig));
}

void fz_signal_arrived(int sig, void *siginfo, void *ucontext)
{
	struct fz_fiber *self = fz_self();
	const struct info *info = siginfo;
	bool busy = atomic_load_explicit(&self->in_runtime, memory_order_relaxed) ||
		    self->kind == FZ_KIND_CARRIER || self->kind == FZ_KIND_MONITOR;
	uint64_t bit = fz_signal_bit(sig);

	if (synchronous(sig, info)) {
		/* In here it is our own fault; show it where it happened. */
		if (busy)
			set_default(sig);
		else
			call_handler(self, sig, siginfo, ucontext);
		return;
	}
	/* acquire: pairs with fz_sched_start(). */
	if (!atomic_load_explicit(&fz_sched.started, memory_order_acquire)) {
		call_handler(self, sig, siginfo, ucontext);
		return;
	}
	if (busy) {
		/* A request on the ring met a closed pipe: its caller raises it. */
		if (sig == SIG_PIPE && info->code == CODE_USER &&
		    info->pid == (int)fz_sys_getpid())
			return;
		if (self->kind == FZ_KIND_NATIVE || self->kind == FZ_KIND_WIRED) {
			/* seq_cst, as everywhere; fz_leave_runtime() looks. */
			atomic_fetch_or_explicit(&self->pending, bit, memory_order_seq_cst);
			/* It may be about to sleep in there. */
			fz_wake_any(self, FZ_WHY_SIGNAL);
		} else {
			leave_to_monitor(sig, siginfo);
		}
		return;
	}
	if (self->injected & bit || info->code == CODE_TKILL || self->is_main ||
	    sig == SIG_PIPE || !main_wants(sig)) {
		self->injected &= ~bit;
		call_handler(self, sig, siginfo, ucontext);
		return;
	}
	leave_to_monitor(sig, siginfo);
}

/* ---- delivery to fibers ------------------------------------------------- */

static void send_self(struct fz_fiber *self, int sig)
{
	struct fz_siginfo info = { .bytes = { 0 } };
	struct info *head = (struct info *)&info;
	int pid = (int)fz_sys_getpid();
	struct fz_fiber *routed = self;

	/* acq_rel: the slot's content, then its release to the next arrival. */
	if (atomic_compare_exchange_strong_explicit(&signals.routed_to[sig], &routed, NULL,
						    memory_order_acq_rel,
						    memory_order_relaxed)) {
		info = signals.infos[sig];
		atomic_fetch_and_explicit(&signals.taken, ~fz_signal_bit(sig),
					  memory_order_release);
	} else {
		head->signo = sig;
		head->code = CODE_TKILL;
		head->pid = pid;
		head->uid = (uint32_t)fz_syscall0(__NR_getuid);
	}
	self->injected |= fz_signal_bit(sig);
	fz_syscall4(__NR_rt_tgsigqueueinfo, pid, fz_sys_gettid(), sig, (long)&info);
}

void fz_signal_run_pending(struct fz_fiber *self)
{
	uint64_t due;

	/* seq_cst: pairs with deliver(). */
	while ((due = atomic_load_explicit(&self->pending, memory_order_seq_cst) &
		      ~self->mask)) {
		int sig = __builtin_ctzll(due) + 1;
		uint64_t bit = fz_signal_bit(sig);

		if (atomic_fetch_and_explicit(&self->pending, ~bit, memory_order_seq_cst) & bit)
			send_self(self, sig);
	}
}

/* Give a pending signal to f, in the runtime. */
static void deliver(struct fz_fiber *f, int sig)
{
	/* seq_cst: pairs with fz_wait_arm() and look_for_requests(). */
	atomic_fetch_or_explicit(&f->pending, fz_signal_bit(sig), memory_order_seq_cst);
	if (!fz_wake_any(f, FZ_WHY_SIGNAL))
		/* release: pairs with fz_signal_route(). */
		atomic_store_explicit(&signals.undelivered, true, memory_order_release);
}

void fz_signal_send(struct fz_fiber *f, int sig)
{
	struct fz_fiber *self = fz_self();

	fz_enter_runtime(self);
	deliver(f, sig);
	fz_leave_runtime(self);
	if (f != self)
		fz_monitor_poke();
}

void fz_signal_give_back(struct fz_fiber *self)
{
	/* acquire: pairs with deliver(); the fiber takes nothing more after this. */
	uint64_t left = atomic_exchange_explicit(&self->pending, 0, memory_order_acquire);

	for (; left; left &= left - 1) {
		int sig = __builtin_ctzll(left) + 1;
		struct fz_fiber *routed = self;

		if (!atomic_compare_exchange_strong_explicit(
			    &signals.routed_to[sig], &routed, NULL, memory_order_acq_rel,
			    memory_order_relaxed))
			continue;
		atomic_fetch_or_explicit(&signals.ready, fz_signal_bit(sig),
					 memory_order_release);
		fz_monitor_poke();
	}
}

void fz_signal_nudge(void)
{
	atomic_store_explicit(&signals.undelivered, true, memory_order_release);
	fz_monitor_poke();
}

struct delivery {
	int sig;
	bool to_main;
};

/* Under the registry's lock, so that the fiber does not end meanwhile. */
static bool deliver_if_accepted(struct fz_fiber *f, void *arg)
{
	struct delivery *d = arg;

	if (f->mask & fz_signal_bit(d->sig) || (d->to_main && !f->is_main))
		return false;
	/* release: pairs with send_self(). */
	atomic_store_explicit(&signals.routed_to[d->sig], f, memory_order_release);
	deliver(f, d->sig);
	return true;
}

/*
 * Running user code, where it does not look: interrupt its kernel thread.  What is
 * pending stays with the fiber, so that nothing is lost if it is not there.
 */
static bool nudge(struct fz_fiber *f, void *arg)
{
	bool *again = arg;
	struct fz_carrier *c = f->carrier;
	struct fz_siginfo siginfo = { .bytes = { 0 } };
	struct info *info = (struct info *)&siginfo;

	if (!(atomic_load_explicit(&f->pending, memory_order_seq_cst) & ~f->mask) &&
	    !fz_cancel_is_asynchronous(f))
		return false;
	*again = true;
	if (fz_wake_any(f, FZ_WHY_SIGNAL) || !c ||
	    atomic_load_explicit(&f->in_runtime, memory_order_relaxed))
		return false;
	/* Not SI_TKILL, which is libc's own use of the signal. */
	info->signo = SIG_CANCEL;
	info->code = CODE_QUEUE;
	fz_syscall4(__NR_rt_tgsigqueueinfo, fz_sys_getpid(), c->tid, SIG_CANCEL,
		    (long)&siginfo);
	return false;
}

bool fz_signal_route(void)
{
	uint64_t ready = atomic_exchange_explicit(&signals.ready, 0, memory_order_acquire);
	bool again = false;

	for (; ready; ready &= ready - 1) {
		int sig = __builtin_ctzll(ready) + 1;

		/* The main thread if it accepts it, else anyone: as the kernel does. */
		if (fz_fiber_each(deliver_if_accepted, &(struct delivery){ sig, true }) ||
		    fz_fiber_each(deliver_if_accepted, &(struct delivery){ sig, false }))
			continue;
		/* Blocked by all meanwhile: the kernel keeps it. */
		fz_syscall2(__NR_kill, fz_sys_getpid(), sig);
		atomic_fetch_and_explicit(&signals.taken, ~fz_signal_bit(sig),
					  memory_order_release);
	}
	if (atomic_exchange_explicit(&signals.undelivered, false, memory_order_acquire))
		fz_fiber_each(nudge, &again);
	if (again)
		atomic_store_explicit(&signals.undelivered, true, memory_order_relaxed);
	return again;
}

/* ---- setuid and friends ------------------------------------------------- */

/*
 * libc makes all its threads change their ids by SIGSETXID, and its handler
 * clears a bit in the TCB it runs on: that must be the one that libc sent the
 * signal to, not that of the fiber which happens to run there.
 */
static void setxid_arrived(int sig, void *info, void *ucontext)
{
	struct fz_carrier *c = fz_carrier_by_tid((int)fz_sys_gettid());
	uintptr_t tcb = fz_tcb_get();

	if (!c) {
		signals.setxid_handler(sig, info, ucontext);
		return;
	}
	fz_tcb_set(c->libc_tcb);
	signals.setxid_handler(sig, info, ucontext);
	fz_tcb_set(tcb);
}

/* See nudge().  Cancelling asynchronously a native thread is libc's use of it. */
static void nudged(int sig, void *siginfo, void *ucontext)
{
	struct fz_fiber *self = fz_self();
	const struct info *info = siginfo;

	if (info->code != CODE_QUEUE) {
		if (signals.cancel_handler)
			signals.cancel_handler(sig, siginfo, ucontext);
		return;
	}
	if (!fz_is_fiber(self) || atomic_load_explicit(&self->in_runtime, memory_order_relaxed))
		return;
	fz_signal_run_pending(self);
	/* libc makes its own blocking calls asynchronously cancellable. */
	if (fz_cancel_is_asynchronous(self))
		fz_host.test_cancel();
}

/* Put `ours` before libc's handler of sig, if it has one; flags as it has them. */
static void guard(int sig, void (*ours)(int, void *, void *), uint64_t mask, bool always,
		  void (**libc)(int, void *, void *))
{
	struct kernel_sigaction action, any;

	if (fz_syscall4(__NR_rt_sigaction, sig, 0, (long)&action, sizeof(uint64_t)) ||
	    action.handler == ours)
		return;
	if ((uintptr_t)action.handler > 1)
		*libc = action.handler;
	else if (!always)
		return;
	/* libc's way back from a handler is what a handler of ours needs, too. */
	fz_syscall4(__NR_rt_sigaction, SIG_SETXID, 0, (long)&any, sizeof(uint64_t));
	action.restorer = any.restorer;
	action.handler = ours;
	action.mask = mask;
	/* Without SA_RESTART: what a nudge interrupts ends if its handlers say so. */
	action.flags = (any.flags | FLAG_SIGINFO |
			/* A cancelled thread unwinds out of it and leaves no mask behind. */
			(sig == SIG_CANCEL ? FLAG_NODEFER : 0)) &
		       ~(sig == SIG_CANCEL ? (unsigned long)FLAG_RESTART : 0);
	fz_syscall4(__NR_rt_sigaction, sig, (long)&action, 0, sizeof(uint64_t));
}

void fz_signal_guard_libc(void)
{
	/* Nothing may run while the TCB is another's. */
	guard(SIG_SETXID, setxid_arrived, ~(uint64_t)0, false, &signals.setxid_handler);
	guard(SIG_CANCEL, nudged, 0, true, &signals.cancel_handler);
}

void fz_signal_after_fork(void)
{
	atomic_store_explicit(&signals.taken, 0, memory_order_relaxed);
	atomic_store_explicit(&signals.ready, 0, memory_order_relaxed);
	__builtin_memset(signals.blocked_by, 0, sizeof(signals.blocked_by));
	__builtin_memset(&signals.lock, 0, sizeof(signals.lock));
	signals.threads = 0;
}
