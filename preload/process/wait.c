/* SPDX-License-Identifier: MIT */
/*
 * preload/process/wait.c - waiting for children: ask without waiting; if no child has ended, the
 * fiber parks until one has.  Where the ring cannot wait for children (epoll, older kernels), the
 * real call waits.
 */
#include <limits.h>

#include "preload/gate.h"
#include "preload/process/parent.h"
#include "preload/real_call.h"
#include "runtime/base/host.h"
#include "runtime/fiber/stack_probe.h"
#include "runtime/io/io.h"
#include "runtime/io/wait.h"
#include "runtime/sched/cancel.h"
#include "runtime/sched/sched.h"
#include "runtime/signal/signal.h"

/*
 * Natively a thread that a signal wakes looks for the child before the handler runs: a handler of SIGCHLD that
 * waits for all children does not get the one for which its own thread waits. So handlers are barred from
 * before the wait until after the next look, which is the system call itself: libc's functions are cancellation
 * points, and would unwind the stack with handlers barred.
 */
struct looks {
	bool barred;		/* handlers are barred until the next look */
	bool last;		/* after the next look the real call must wait */
};

/* To be called after each look. Returns 1 if the caller shall wait again, 0 if by the real call, or -EINTR. */
static int after_look(struct fz_fiber *self, struct looks *looks)
{
	if (!looks->barred)
		return 1;
	looks->barred = false;
	fz_signal_allow(self);
	/* fz_leave_runtime() leaves a cancellation to the end of the bar: it has ended the wait, so nobody tells of it again. */
	if (fz_cancel_is_asynchronous(self))
		fz_host.test_cancel();
	if (fz_signal_handled(self) && !fz_signal_restarts(self))
		return -EINTR;
	/* The handler may have forked, or have wired the thread. */
	if (looks->last || self->kind != FZ_KIND_FIBER)
		return 0;
	if (fz_signal_handled(self))
		fz_signal_mark(self);
	return 1;
}

/* Bar handlers and park. Returns 1 if the caller must look, or 0 if the real call must wait. */
static int await_barred(struct fz_fiber *self, int type, int id, int options, struct looks *looks)
{
	if (!fz_io_can_await_child())
		return 0;
	fz_io_test_cancel(self);
	/* A fault behind the bar would be handled there, and a jump out of its handler leave the bar behind. */
	fz_stack_probe(self, FZ_STACK_ROOM_OF_CALLER);
	fz_signal_bar(self);
	looks->barred = true;
	/* A nudge may have wired the thread just before. */
	looks->last = self->kind != FZ_KIND_FIBER || !fz_io_await_child(self, type, id, options);
	return 1;
}

static int without_child(struct fz_fiber *self)
{
	fz_signal_look(self);
	return (int)fz_leave(-ECHILD);
}

/* A wait for a child, by wait4 or by waitid. */
struct wanted {
	int type;		/* with id and options, as of waitid */
	id_t id;
	int options;
	bool by_wait4;		/* with these arguments: */
	pid_t pid;
	int *status;
	int wait4_options;
	struct rusage *usage;
	siginfo_t found;	/* by waitid: not the program's, which is stored to at the end alone */
};

/* Look without waiting. Returns the child, 0 if none is there, or -errno. */
static long look(struct wanted *w)
{
	long err;

	if (w->by_wait4)
		return fz_syscall4(__NR_wait4, w->pid, (long)w->status, w->wait4_options | WNOHANG, (long)w->usage);
	err = fz_syscall5(__NR_waitid, w->type, w->id, (long)&w->found, w->options | WNOHANG, 0);
	return err ? err : w->found.si_pid;
}

/*
 * Wait for a child. The signals of a child, SIGCHLD too, are sent before its end can be seen. Natively
 * the waiting thread has handled them when the call returns; here fz_signal_look() handles them, also where the
 * child has left no status (ECHILD). Returns the child, -errno, or 0: the real call must wait.
 */
static long await_child(struct fz_fiber *self, struct wanted *w)
{
	struct looks looks = { false, false };
	long child;
	int ret = 1;

	fz_io_test_cancel(self);
	fz_signal_mark(self);
	while (ret > 0) {
		child = look(w);
		ret = after_look(self, &looks);
		if (child > 0 || child == -ECHILD)
			fz_signal_look(self);
		if (child != 0)
			return child;
		if (ret > 0)
			ret = await_barred(self, w->type, (int)w->id, w->options & ~WNOWAIT, &looks);
	}
	return ret;
}

static pid_t wait_common(struct fz_fiber *self, pid_t pid, int *status, int options,
			 struct rusage *usage)
{
	struct wanted w = {
		.type = pid == -1 ? P_ALL : pid > 0 ? P_PID : P_PGID,
		.id = pid == -1 ? 0 : pid > 0 ? (id_t)pid : -(id_t)pid,
		.options = WEXITED | (options & (WUNTRACED | WCONTINUED | __WALL | __WCLONE)),
		.by_wait4 = true,
		.pid = pid,
		.status = status,
		.wait4_options = options,
		.usage = usage,
	};
	long child = await_child(self, &w);
	struct fz_blocked call;

	if (child)
		return (pid_t)fz_leave(child);
	call = fz_block(self, FZ_CALL_RESTARTS);
	child = FZ_REPEAT(&call, fz_real.wait4(pid, status, options, usage));
	if (child > 0)
		fz_signal_look(self);
	else if (errno == ECHILD)
		return (pid_t)without_child(self);
	return (pid_t)child;
}

/*
 * With __WNOTHREAD: replace *pid by a child of the caller. Returns true if that is not possible,
 * with the answer in *ret.
 */
static bool no_own_child(pid_t *pid, int *options, pid_t *ret)
{
	int type = *pid == -1 ? P_ALL : *pid > 0 ? P_PID : P_PGID;
	pid_t child;

	/* No group has this number, which the kernel's answer tells. */
	if (*pid == INT_MIN)
		return false;
	child = fz_child_of_caller(fz_self(), type, (id_t)(*pid > 0 ? *pid : -*pid), WEXITED | *options);
	if (child <= 0) {
		*ret = (pid_t)fz_leave(child);
		return true;
	}
	*pid = child;
	*options &= ~__WNOTHREAD;
	return false;
}

FZ_EXPORT pid_t wait(int *status)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_wait);

	if (!self)
		return FZ_RETURNS_HERE(fz_real.wait(status));
	return wait_common(self, -1, status, 0, NULL);
}
FZ_EXPORT_ALIAS(__wait, wait);

FZ_EXPORT pid_t waitpid(pid_t pid, int *status, int options)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_waitpid);
	pid_t ret;

	if (fz_waits_for_own(options) && no_own_child(&pid, &options, &ret))
		return ret;
	if (!self || options & WNOHANG)
		return FZ_RETURNS_HERE(fz_real.waitpid(pid, status, options));
	return wait_common(self, pid, status, options, NULL);
}
FZ_EXPORT_ALIAS(__waitpid, waitpid);

FZ_EXPORT pid_t wait3(int *status, int options, struct rusage *usage)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_wait3);
	pid_t pid = -1, ret;

	if (fz_waits_for_own(options) && no_own_child(&pid, &options, &ret))
		return ret;
	if (!self || options & WNOHANG)
		return FZ_RETURNS_HERE(fz_real.wait4(pid, status, options, usage));
	return wait_common(self, pid, status, options, usage);
}

FZ_EXPORT pid_t wait4(pid_t pid, int *status, int options, struct rusage *usage)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_wait4);
	pid_t ret;

	if (fz_waits_for_own(options) && no_own_child(&pid, &options, &ret))
		return ret;
	if (!self || options & WNOHANG)
		return fz_real.wait4(pid, status, options, usage);
	return wait_common(self, pid, status, options, usage);
}

/*
 * Store what waitid has found, or zeros, as the kernel does it, which also does so when the call fails. Returns ret, or
 * -EFAULT, though the child is gone.
 */
static long store_found(siginfo_t *to, const siginfo_t *found, long ret)
{
	int *const fields[] = { &to->si_signo, &to->si_errno, &to->si_code, &to->si_pid, (int *)&to->si_uid,
				&to->si_status };
	const int values[] = { found->si_signo, found->si_errno, found->si_code, found->si_pid, (int)found->si_uid,
			       found->si_status };

	for (size_t i = 0; to && i < sizeof(values) / sizeof(*values); i++) {
		if (!fz_sys_int_writable(fields[i]))
			return -EFAULT;
		*fields[i] = values[i];
	}
	return ret;
}

FZ_EXPORT int waitid(idtype_t type, id_t id, siginfo_t *info, int options)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_waitid);
	struct wanted w = { .found.si_pid = 0 };
	struct fz_blocked call;
	long child;

	if (fz_waits_for_own(options) && options & (WEXITED | WSTOPPED | WCONTINUED) &&
	    (type == P_ALL || type == P_PID || type == P_PGID || type == P_PIDFD)) {
		child = fz_child_of_caller(fz_self(), (int)type, id, options);
		if (child <= 0)
			return (int)fz_leave(store_found(info, &w.found, child));
		if (type != P_PIDFD) {
			type = P_PID;
			id = (id_t)child;
		}
		options &= ~__WNOTHREAD;
	}
	if (!self || options & WNOHANG)
		return fz_real.waitid(type, id, info, options);
	/* Only the kernel knows whose child a pidfd is, and whether the pidfd is O_NONBLOCK. */
	if (type != P_PIDFD) {
		w.type = (int)type;
		w.id = id;
		w.options = options;
		child = await_child(self, &w);
		if (child)
			return (int)fz_leave(store_found(info, &w.found, child > 0 ? 0 : child));
	}
	call = fz_block(self, FZ_CALL_RESTARTS);
	/* Not into the program's memory: where that cannot be written, a call that is interrupted says EFAULT, not EINTR. */
	child = FZ_REPEAT(&call, fz_real.waitid(type, id, &w.found, options)) ? -errno : 0;
	if (child == 0 || child == -ECHILD)
		fz_signal_look(self);
	return (int)fz_leave(store_found(info, &w.found, child));
}
