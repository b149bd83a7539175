/* SPDX-License-Identifier: MIT */
/*
 * preload/process/process.c - fork and its kin, and waiting for children.
 *
 * A fork's child has the calling fiber as its only thread, dormant.  What
 * waits for a child makes the real call, announced.  A child inherits our
 * descriptors and may change their flags, so none is OURS alone any more.
 */
#include "preload/io/brief.h"
#include "preload/real_call.h"
#include "preload/init.h"
#include "runtime/sched/carrier.h"
#include "runtime/io/fdtab.h"
#include "runtime/io/io.h"
#include "runtime/sched/sched.h"
#include "runtime/signal/signal.h"

FZ_EXPORT pid_t fork(void)
{
	struct fz_fiber *self;
	int tries = 0;
	pid_t pid;

	fz_enter(FZ_SYM_fork);
	self = fz_self();
	fz_fdtab_share_all();
	do {
		fz_carrier_makes_process(self);
		self->in_fork = true;
		pid = fz_real.fork();
		self->in_fork = false;
	} while (pid < 0 && fz_carrier_made_room(self, errno, &tries));
	return pid;
}
FZ_EXPORT_ALIAS(__fork, fork);

/* Without atfork handlers, so without ours. */
FZ_EXPORT pid_t _Fork(void)
{
	int tries = 0;
	pid_t pid;

	fz_enter(FZ_SYM__Fork);
	fz_fdtab_share_all();
	do {
		fz_carrier_makes_process(fz_self());
		pid = fz_real._Fork();
	} while (pid < 0 && fz_carrier_made_room(fz_self(), errno, &tries));
	if (pid == 0)
		fz_after_fork_in_child();
	return pid;
}

/* Either of the two, which return when the child has called exec, or could not. */
typedef int spawn_fn(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
		     const posix_spawnattr_t *attr, char *const argv[], char *const envp[]);

static int spawn(struct fz_fiber *self, spawn_fn *real, pid_t *pid, const char *file,
		 const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attr,
		 char *const argv[], char *const envp[])
{
	int ret, tries = 0;
	bool began;

	fz_fdtab_share_all();
	fz_carrier_makes_process(fz_self());
	do {
		began = fz_signal_before_spawn();
		ret = real(pid, file, actions, attr, argv, envp);
		fz_signal_after_spawn(began);
	} while (ret && fz_carrier_made_room(fz_self(), ret, &tries));
	fz_leave_brief(self);
	return ret;
}

FZ_EXPORT int posix_spawn(pid_t *pid, const char *path,
			  const posix_spawn_file_actions_t *actions,
			  const posix_spawnattr_t *attr, char *const argv[], char *const envp[])
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_posix_spawn);

	return spawn(self, fz_real.posix_spawn, pid, path, actions, attr, argv, envp);
}

FZ_EXPORT int posix_spawnp(pid_t *pid, const char *file,
			   const posix_spawn_file_actions_t *actions,
			   const posix_spawnattr_t *attr, char *const argv[], char *const envp[])
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_posix_spawnp);

	return spawn(self, fz_real.posix_spawnp, pid, file, actions, attr, argv, envp);
}

FZ_EXPORT FILE *popen(const char *command, const char *mode)
{
	struct fz_fiber *self = fz_enter_brief(FZ_SYM_popen);
	bool began;
	FILE *file;

	fz_fdtab_share_all();
	fz_carrier_makes_process(fz_self());
	began = fz_signal_before_spawn();
	file = fz_real.popen(command, mode);
	fz_signal_after_spawn(began);
	fz_leave_brief(self);
	return file;
}

FZ_EXPORT int pclose(FILE *file)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_pclose);

	if (self)
		fz_announce(self);
	return fz_real.pclose(file);
}

struct system_call {
	struct fz_fiber *self;
	uint64_t mask;
	bool hides, returned;
};

static void end_system(struct system_call *call)
{
	struct fz_fiber *self = call->self;

	fz_signal_after_spawn(call->hides);
	/* Cancelled, it leaves SIGCHLD blocked; the kernel thread shall not, for others. */
	if (self && call->returned)
		fz_signal_set_mask(self, SIG_SETMASK, &call->mask, NULL);
	else if (self)
		fz_signal_load_mask(self->carrier, self->mask);
}

/*
 * Meanwhile libc blocks SIGCHLD, without asking us.  We only take note of that: the command
 * inherits what was blocked before.
 */
FZ_EXPORT int system(const char *command)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_system);
	__attribute__((cleanup(end_system))) struct system_call call = { .self = self };
	int status;

	fz_fdtab_share_all();
	fz_carrier_makes_process(fz_self());
	call.hides = fz_signal_before_spawn();
	if (self) {
		call.mask = self->mask;
		fz_signal_adopt_mask(self, self->mask | fz_signal_bit(SIGCHLD));
		fz_announce(self);
		fz_signal_load_mask(self->carrier, call.mask);
	}
	status = fz_real.system(command);
	call.returned = true;
	return status;
}

/* ---- waiting for children ------------------------------------------------- */

/*
 * Asked without waiting, there was none yet.  Returns 1 when it is worth asking
 * again, 0 to make the real call, -errno.
 */
static int await_child(struct fz_fiber *self, int type, id_t id, int options)
{
	/* Children of this kernel thread only: whose are they?  The kernel knows. */
	return options & __WNOTHREAD ? 0 : fz_io_await_child(self, type, (int)id, options);
}

/*
 * A child that has ended sent its signals before, SIGCHLD too, and whoever waited for it has
 * handled them: the kernel may have chosen a thread of ours, but this one looks as well
 * when its mask changes.
 */
static void see_signals(struct fz_fiber *self)
{
	uint64_t mask;

	fz_sys_sigmask(SIG_SETMASK, &(uint64_t){ FZ_SIGNALS_ALL }, &mask);
	fz_sys_sigmask(SIG_SETMASK, &mask, NULL);
	/* relaxed: as in fz_leave_runtime(), which hands out what is there. */
	if (atomic_load_explicit(&fz_signal_arriving, memory_order_relaxed)) {
		fz_enter_runtime(self);
		fz_leave_runtime(self);
	}
}

static pid_t wait_common(struct fz_fiber *self, pid_t pid, int *status, int options,
			 struct rusage *usage)
{
	int kinds = WEXITED | (options & (WUNTRACED | WCONTINUED | __WALL | __WCLONE | __WNOTHREAD));
	int type = pid == -1 ? P_ALL : pid > 0 ? P_PID : P_PGID;
	id_t id = (id_t)(pid == -1 ? 0 : pid > 0 ? pid : -pid);
	struct fz_blocked call;
	pid_t child;
	int ret = 1;

	while (ret > 0) {
		child = fz_real.wait4(pid, status, options | WNOHANG, usage);

		if (child > 0)
			see_signals(self);
		if (child != 0)
			return child;
		ret = await_child(self, type, id, kinds);
	}
	if (ret < 0)
		return (pid_t)fz_leave(ret);
	call = fz_block(self, FZ_CALL_RESTARTS);
	do
		child = fz_real.wait4(pid, status, options, usage);
	while (fz_block_again(&call, child));
	if (child > 0)
		see_signals(self);
	return child;
}

FZ_EXPORT pid_t wait(int *status)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_wait);

	if (!self)
		return fz_real.wait(status);
	return wait_common(self, -1, status, 0, NULL);
}
FZ_EXPORT_ALIAS(__wait, wait);

FZ_EXPORT pid_t waitpid(pid_t pid, int *status, int options)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_waitpid);

	if (!self || options & WNOHANG)
		return fz_real.waitpid(pid, status, options);
	return wait_common(self, pid, status, options, NULL);
}
FZ_EXPORT_ALIAS(__waitpid, waitpid);

FZ_EXPORT pid_t wait3(int *status, int options, struct rusage *usage)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_wait3);

	if (!self || options & WNOHANG)
		return fz_real.wait3(status, options, usage);
	return wait_common(self, -1, status, options, usage);
}

FZ_EXPORT pid_t wait4(pid_t pid, int *status, int options, struct rusage *usage)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_wait4);

	if (!self || options & WNOHANG)
		return fz_real.wait4(pid, status, options, usage);
	return wait_common(self, pid, status, options, usage);
}

FZ_EXPORT int waitid(idtype_t type, id_t id, siginfo_t *info, int options)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_waitid);
	struct fz_blocked call;
	int ret = 1;

	if (!self || options & WNOHANG)
		return fz_real.waitid(type, id, info, options);
	/* Of a pidfd only the kernel knows whose it is, and whether it is O_NONBLOCK. */
	while (ret > 0 && type != P_PIDFD) {
		siginfo_t none, *found = info ? info : &none;
		int err = fz_real.waitid(type, id, found, options | WNOHANG);

		if (!err && found->si_pid)
			see_signals(self);
		if (err || found->si_pid)
			return err;
		ret = await_child(self, type, id, options & ~WNOWAIT);
	}
	if (ret < 0)
		return (int)fz_leave(ret);
	call = fz_block(self, FZ_CALL_RESTARTS);
	do
		ret = fz_real.waitid(type, id, info, options);
	while (fz_block_again(&call, ret));
	if (!ret)
		see_signals(self);
	return ret;
}
