/* SPDX-License-Identifier: MIT */
/*
 * preload/process/clone.c - vfork and clone.
 *
 * vfork is a fork whose parent waits until the child executes or exits: a fiber parks
 * (preload/process/exec_watch.h), any other thread is suspended by the kernel (CLONE_VFORK). The
 * child gets its own copy of the memory: a child that shared the memory would use the parent's
 * runtime, and what it does to its own signals and descriptors would stay in the parent's tables.
 *
 * libc's clone without CLONE_VM is a fork with another stack. With CLONE_VM and CLONE_VFORK the
 * child does share everything with a caller that sleeps: every call of the child passes through.
 */
#include "preload/gate.h"
#include "preload/init.h"
#include "preload/process/copy.h"
#include "preload/process/exec_watch.h"
#include "runtime/fiber/parent.h"
#include "runtime/io/fdtab.h"
#include "runtime/sched/announce.h"
#include "runtime/sched/carrier.h"
#include "runtime/sched/own_fds.h"
#include "runtime/sched/sched.h"
#include "runtime/signal/signal.h"

#include <stdarg.h>

FZ_EXPORT pid_t vfork(void)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_vfork);
	uint64_t flags = CLONE_VFORK | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD;
	struct fz_exec_watch *watch;
	struct fz_copy copy;
	bool began;
	long pid;

	/* The layout of libc's thread control block is not known, so libc's own fork must do. */
	if (!fz_layout.tid)
		return fz_real._Fork ? fz_real._Fork() : fz_real.fork();
	began = fz_signal_before_spawn();
	watch = fz_exec_watch_begin(self, &flags);
	fz_copy_begin(&copy, flags);
	pid = fz_clone_fork(flags, fz_tcb_tid(fz_tcb_get()));
	if (pid == 0) {
		fz_copy_in_child(&copy);
		fz_exec_watch_in_child(watch);
		return 0;
	}
	fz_child_made((pid_t)pid);
	fz_copy_end(&copy);
	fz_exec_watch_end(watch, self, (pid_t)pid);
	fz_signal_after_spawn(began);
	return (pid_t)fz_leave(pid);
}
FZ_EXPORT_ALIAS(__vfork, vfork);

struct start {
	int (*fn)(void *);
	void *arg;
	struct fz_copy copy;
};

static int start_forked(void *arg)
{
	struct start start = *(struct start *)arg;
	int status;

	fz_copy_in_child(&start.copy);
	status = start.fn(start.arg);

	/*
	 * If fn returns, libc would end only this kernel thread, and kernel threads of the library would
	 * keep the process alive. So end the process here, if no other thread of the program runs.
	 */
	if (!fz_runtime_runs() ||
	    fz_fiber_alive() <= 1)
		fz_syscall1(__NR_exit_group, status);
	fz_fiber_main_ended();
}

static int clone_process(struct start *start, void *stack, int flags, void *parent_tid,
			 void *tls, void *child_tid)
{
	int ret;

	fz_copy_begin(&start->copy, (unsigned long)flags);
	ret = fz_real.clone(start_forked, stack, flags, start, parent_tid, tls, child_tid);
	fz_child_made(ret);
	fz_copy_end(&start->copy);
	return ret;
}

FZ_EXPORT int clone(int (*fn)(void *), void *stack, int flags, void *arg, ...)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_clone);
	struct start start = { .fn = fn, .arg = arg };
	void *parent_tid, *tls, *child_tid;
	bool borrowed = false, began;
	va_list list;
	int ret;

	va_start(list, arg);
	parent_tid = va_arg(list, void *);
	tls = va_arg(list, void *);
	child_tid = va_arg(list, void *);
	va_end(list);
	if (flags & CLONE_THREAD || !fn || !stack)
		return fz_real.clone(fn, stack, flags, arg, parent_tid, tls, child_tid);
	if (!(flags & CLONE_VM))
		return clone_process(&start, stack, flags, parent_tid, tls, child_tid);
	fz_fdtab_share_all();
	fz_carrier_makes_process(fz_self());
	/*
	 * With CLONE_VFORK the child calls exec, or ends, before clone returns. With CLONE_SIGHAND the
	 * child shares the caller's signal actions, so these must not be changed for the child.
	 */
	began = flags & CLONE_VFORK && !(flags & CLONE_SIGHAND) && fz_signal_before_spawn();
	if (self && flags & CLONE_VFORK) {
		fz_announce(self);
		/* relaxed: only the child reads this, and it is made afterwards. */
		atomic_store_explicit(&self->in_runtime, 1, memory_order_relaxed);
		borrowed = true;
	}
	fz_sched_hold_limit();
	fz_self()->thread.lends_memory = flags & CLONE_VFORK && !(flags & CLONE_SIGHAND);
	ret = fz_real.clone(fn, stack, flags, arg, parent_tid, tls, child_tid);
	fz_self()->thread.lends_memory = false;
	fz_sched_release_limit();
	fz_signal_after_spawn(began);
	if (borrowed) {
		atomic_store_explicit(&self->in_runtime, 0, memory_order_relaxed);
		fz_signal_run_pending(self);
	}
	fz_child_made(ret);
	return ret;
}
FZ_EXPORT_ALIAS(__clone, clone);
