/* SPDX-License-Identifier: MIT */
#include "runtime/signal/signal.h"

#include "runtime/base/die.h"
#include "runtime/fiber/parent.h"
#include "runtime/fiber/stack.h"
#include "runtime/sched/carrier.h"
#include "runtime/sched/park.h"
#include "runtime/sched/sched.h"
#include "runtime/signal/overrun.h"
#include "runtime/signal/signal_internal.h"

static bool synchronous(int sig, const struct fz_siginfo_head *info)
{
	if (info->code <= 0)
		return false;
	return sig == SIG_SEGV || sig == SIG_BUS || sig == SIG_FPE || sig == SIG_ILL ||
	       sig == SIG_TRAP || sig == SIG_SYS;
}

static void set_default(int sig)
{
	struct kernel_sigaction dfl = { .handler = NULL };

	kernel_action(sig, &dfl, NULL);
}

void fz_signal_report_overflow(void)
{
	fz_signal_substitute(fz_signal_bit(SIG_SEGV));
}

/* If the faulting address is in the guard area of the faulting thread, report a stack overflow. */
static void report_overflow(const struct fz_fiber *self, const struct fz_siginfo_head *info)
{
	/* si_addr is where si_pid and si_uid are. */
	uintptr_t address, low = (uintptr_t)self->mem.stack;
	size_t size;
	void *bottom;

	__builtin_memcpy(&address, &info->pid, sizeof(address));
	if (self->kind != FZ_KIND_FIBER || self->thread.is_main || address >= low ||
	    address < low - self->mem.guard_size)
		return;
	fz_stack_bounds(self->mem.stack, self->mem.stack_size, &bottom, &size);
	fz_say("thread %d (%s) has overflowed its stack of %lu bytes: recursion without end, or too "
	       "small a stack; FIBERIZE_STACK_SIZE sets another size",
	       self->thread.tid, self->thread.name, (unsigned long)size);
}

bool fz_signal_main_is_wired(void)
{
	const struct fz_fiber *main_fiber = fz_fiber_main();

	return main_fiber && main_fiber->kind == FZ_KIND_WIRED;
}

/* Does the main thread accept a signal that was sent to the process? */
static bool main_wants(int sig)
{
	struct fz_fiber *main_fiber = fz_fiber_main();

	return main_fiber && main_fiber->kind == FZ_KIND_FIBER &&
	       !(main_fiber->mask & fz_signal_bit(sig));
}

int fz_signal_maker(int sig, const struct fz_siginfo_head *info)
{
	return sig == SIG_CHLD && info->code > 0 ? fz_child_maker(info->pid) : 0;
}

/*
 * Is the calling thread, to which the kernel has given a signal of the process, the one that natively has it? If a child
 * is another thread's, the monitor finds that thread, or another if that thread has ended or blocks the signal.
 */
static bool is_for_caller(const struct fz_fiber *self, int sig, const struct fz_siginfo_head *info)
{
	const int maker = fz_signal_maker(sig, info);

	if (FZ_UNLIKELY(maker) && maker == fz_self_tid())
		return true;
	if (FZ_UNLIKELY(maker) && self->kind == FZ_KIND_FIBER)
		return false;
	return self->thread.is_main || !main_wants(sig);
}

static void arrived_in_runtime(struct fz_fiber *self, int sig, const struct fz_siginfo_head *info,
			       bool directed)
{
	struct fz_signode *node;
	bool own_thread = self->kind == FZ_KIND_NATIVE || self->kind == FZ_KIND_WIRED;

	/*
	 * Drop the signal of a request on the ring that met a closed pipe or a file size limit: the
	 * thread that made the request raises it itself.
	 */
	if ((sig == SIG_PIPE || sig == SIG_XFSZ) && info->code == CODE_USER &&
	    info->pid == (int)fz_sys_getpid())
		return;
	/*
	 * SIGPROF and SIGVTALRM tell a profiler where the time goes: keep them for the fiber that
	 * they hit.
	 */
	if (!own_thread && (self->kind != FZ_KIND_FIBER ||
			    (sig != SIG_PROF && sig != SIG_VTALRM))) {
		fz_signal_leave_to_monitor(sig, info);
		return;
	}
	node = fz_signode_arrived(sig, info, directed || info->code == CODE_TKILL);
	if (!node)
		return;
	/* fz_leave_runtime() looks for pending signals. */
	fz_sigqueue_add(self, node);
	if (own_thread)
		/* The thread may be about to sleep in the runtime. */
		fz_wake_any(self, FZ_WHY_SIGNAL);
	else
		fz_signal_undelivered();
}

void fz_signal_unmark(void *siginfo)
{
	struct fz_siginfo_head *info = siginfo;

	if (info->code <= CODE_HANDED_BACK && info->code > CODE_HANDED_BACK - CODE_MAX)
		info->code = CODE_HANDED_BACK - info->code;
	else if (info->code == CODE_QUEUE && info->error == FZ_SIGNAL_DIRECTED)
		info->error = 0;
}

/*
 * Was the signal sent to this thread only? Decides for codes that the kernel uses both for a
 * thread and for the process. Removes our mark.
 */
static bool take_directed(struct fz_fiber *self, int sig, struct fz_siginfo_head *info)
{
	bool directed = info->code == CODE_QUEUE && info->error == FZ_SIGNAL_DIRECTED;

	fz_signal_unmark(info);
	if (directed)
		return true;
	/* relaxed: timer_signals is written before the timer is made. */
	return info->code == CODE_TIMER && fz_signal_bit(sig) &
	       atomic_load_explicit(&self->sig.timer_signals, memory_order_relaxed);
}

/* A signal has arrived on the thread that handles it. */
static void collect(int sig, void *siginfo)
{
	fz_signal_note_arrival(sig);
	fz_overrun_collect(siginfo);
}

/* Note that a signal for this thread has arrived; complete what its handler is told. */
static void take(struct fz_fiber *self, int sig, void *siginfo)
{
	if (self->sig.injecting == sig) {
		if (FZ_UNLIKELY(self->sig.injected))
			*(struct fz_siginfo *)siginfo = *self->sig.injected;
		self->sig.injecting = 0;
	} else if (self->sig.owed == sig) {
		self->sig.owed = 0;
	} else {
		collect(sig, siginfo);
	}
}

/*
 * Is the calling thread barred?  In a fork's child the bar of the fork lasts a moment too long:
 * there is no monitor that would take the signal, so the fiber, which has another tid than its
 * carrier there, is not barred.
 */
static bool is_barred(const struct fz_fiber *self)
{
	return FZ_UNLIKELY(self->sig.barred) &&
	       (self->kind != FZ_KIND_FIBER || fz_sys_gettid() == self->carrier->tid);
}

/* A SIGCHLD of the kernel's has come. Returns false if it is ignored: then it came only because our handler is in front. */
static bool child_changed(const struct fz_fiber *self, const struct fz_siginfo_head *info)
{
	if (self->call.in_fork)
		fz_child_may_be_new(info->pid);
	return !fz_signal_substituted(SIG_CHLD) ||
	       (uintptr_t)fz_signal_action_get(SIG_CHLD).handler != 1;
}

void fz_signal_arrived(int sig, void *siginfo, void *ucontext)
{
	struct fz_fiber *self = fz_self();
	struct fz_siginfo_head *info = siginfo;
	bool busy = atomic_load_explicit(&self->in_runtime, memory_order_relaxed) ||
		    self->sig.between_lives ||
		    self->kind == FZ_KIND_CARRIER || self->kind == FZ_KIND_HELPER;
	bool directed = take_directed(self, sig, info);
	uint64_t bit = fz_signal_bit(sig);

	if (FZ_UNLIKELY(sig == SIG_CHLD && info->code > 0) && !child_changed(self, info))
		return;
	if (synchronous(sig, info)) {
		/*
		 * A fault in the runtime is the library's own: let the default action show it
		 * where it happened.
		 */
		if (!busy && !fz_signal_substituted(sig)) {
			fz_signal_call_handler(self, sig, siginfo, ucontext);
			return;
		}
		report_overflow(self, info);
		fz_signal_tell_end(sig);
		set_default(sig);
		return;
	}
	/* Also in a process without fibers: the thread may hold a lock of the parking lot. */
	if (busy || is_barred(self)) {
		arrived_in_runtime(self, sig, info, directed);
		fz_signal_note_arrival(sig);
		return;
	}
	/* acquire: pairs with fz_sched_start(). */
	if (!atomic_load_explicit(&fz_sched.started, memory_order_acquire)) {
		fz_signal_call_handler(self, sig, siginfo, ucontext);
		/* The signal may have interrupted sem_wait. */
		fz_wake_any(self, FZ_WHY_SIGNAL);
		return;
	}
	/*
	 * The signal is for this thread: the kernel directs it at a thread, or this thread sent it
	 * to itself.
	 */
	if (self->sig.injecting == sig || self->sig.owed == sig || directed ||
	    info->code == CODE_TKILL || sig == SIG_PIPE || sig == SIG_XFSZ || sig == SIG_PROF ||
	    sig == SIG_VTALRM) {
		take(self, sig, siginfo);
		fz_signal_call_handler(self, sig, siginfo, ucontext);
		return;
	}
	/* Only the kernel knows what native and wired threads accept: one that it has chosen handles the signal. */
	if (!(fz_signal_waited_for() & bit) &&
	    (!fz_signal_substituted(sig) || self->kind == FZ_KIND_NATIVE || self->kind == FZ_KIND_WIRED) &&
	    is_for_caller(self, sig, info)) {
		collect(sig, siginfo);
		fz_signal_call_handler(self, sig, siginfo, ucontext);
	} else {
		fz_signal_leave_to_monitor(sig, siginfo);
		fz_signal_note_arrival(sig);
	}
}

bool fz_signal_is_mine_of_fibers(const struct fz_fiber *self, int sig)
{
	uint64_t bit = fz_signal_bit(sig);

	return self->kind == FZ_KIND_FIBER && !(self->mask & bit) &&
	       !(fz_signal_waited_for() & bit) && (self->thread.is_main || !main_wants(sig));
}

bool fz_signal_is_mine(struct fz_fiber *self, int sig)
{
	return fz_signal_is_mine_of_fibers(self, sig) &&
	       (self->thread.is_main || !fz_signal_main_is_wired());
}

void fz_signal_collect(struct fz_fiber *self, int err)
{
	static const struct __kernel_timespec none;
	const int sig = err == -EPIPE ? SIG_PIPE : SIG_XFSZ;
	uint64_t set = fz_signal_bit(sig);
	struct fz_siginfo info;
	struct fz_signode *node;

	if (self->kind != FZ_KIND_FIBER || !(self->mask & set) ||
	    fz_syscall4(__NR_rt_sigtimedwait, (long)&set, (long)&info, (long)&none,
			sizeof(set)) != sig)
		return;
	node = fz_signode_new(sig, &info, true, false);
	if (node)
		fz_sigqueue_add(self, node);
}

struct fz_siginfo fz_signal_info(int sig, int code, uint64_t value)
{
	struct fz_siginfo info = { .bytes = { 0 } };
	struct fz_siginfo_head *head = (struct fz_siginfo_head *)&info;

	head->signo = sig;
	head->code = code;
	head->pid = (int)fz_sys_getpid();
	head->uid = (uint32_t)fz_syscall0(__NR_getuid);
	head->value = value;
	return info;
}

void fz_signal_after_fork(void)
{
	fz_signal_masks_after_fork();
	fz_sigqueue_after_fork();
	fz_overrun_after_fork();
	fz_sigwait_after_fork();
	fz_signal_process_after_fork();
	fz_signal_exec_after_fork();
	fz_signal_actions_after_fork();
}
