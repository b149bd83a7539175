/* SPDX-License-Identifier: MIT */
/*
 * preload/process.c - fork and its kin, and waiting for children.
 *
 * A fork's child has the calling fiber as its only thread, dormant.  vfork is
 * fork: a child that shares our memory would use the parent's runtime.  What
 * waits for a child makes the real call, announced.  A child inherits our
 * descriptors and may change their flags, so none is OURS alone any more.
 */
#include "preload/brief.h"
#include "preload/init.h"
#include "runtime/fdtab.h"
#include "runtime/sched.h"

FZ_EXPORT pid_t fork(void)
{
	fz_enter(FZ_SYM_fork);
	fz_fdtab_share_all();
	return fz_real.fork();
}
FZ_EXPORT_ALIAS(__fork, fork);

/* Without atfork handlers, so without ours. */
FZ_EXPORT pid_t _Fork(void)
{
	pid_t pid;

	fz_enter(FZ_SYM__Fork);
	fz_fdtab_share_all();
	pid = fz_real._Fork();
	if (pid == 0)
		fz_after_fork_in_child();
	return pid;
}

FZ_EXPORT pid_t vfork(void)
{
	pid_t pid;

	fz_enter(FZ_SYM_vfork);
	fz_fdtab_share_all();
	pid = fz_real._Fork ? fz_real._Fork() : fz_real.fork();
	if (pid == 0)
		fz_after_fork_in_child();
	return pid;
}
FZ_EXPORT_ALIAS(__vfork, vfork);

FZ_EXPORT int posix_spawn(pid_t *pid, const char *path,
			  const posix_spawn_file_actions_t *actions,
			  const posix_spawnattr_t *attr, char *const argv[], char *const envp[])
{
	fz_enter(FZ_SYM_posix_spawn);
	fz_fdtab_share_all();
	return fz_real.posix_spawn(pid, path, actions, attr, argv, envp);
}

FZ_EXPORT int posix_spawnp(pid_t *pid, const char *file,
			   const posix_spawn_file_actions_t *actions,
			   const posix_spawnattr_t *attr, char *const argv[], char *const envp[])
{
	fz_enter(FZ_SYM_posix_spawnp);
	fz_fdtab_share_all();
	return fz_real.posix_spawnp(pid, file, actions, attr, argv, envp);
}

FZ_EXPORT FILE *popen(const char *command, const char *mode)
{
	fz_enter(FZ_SYM_popen);
	fz_fdtab_share_all();
	return fz_real.popen(command, mode);
}

FZ_EXPORT int pclose(FILE *file)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_pclose);

	if (self)
		fz_announce(self);
	return fz_real.pclose(file);
}

FZ_EXPORT int system(const char *command)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_system);

	fz_fdtab_share_all();
	if (self)
		fz_announce(self);
	return fz_real.system(command);
}

FZ_EXPORT pid_t wait(int *status)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_wait);

	if (self)
		fz_announce(self);
	return fz_real.wait(status);
}
FZ_EXPORT_ALIAS(__wait, wait);

FZ_EXPORT pid_t waitpid(pid_t pid, int *status, int options)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_waitpid);

	if (self && !(options & WNOHANG))
		fz_announce(self);
	return fz_real.waitpid(pid, status, options);
}
FZ_EXPORT_ALIAS(__waitpid, waitpid);

FZ_EXPORT int waitid(idtype_t type, id_t id, siginfo_t *info, int options)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_waitid);

	if (self && !(options & WNOHANG))
		fz_announce(self);
	return fz_real.waitid(type, id, info, options);
}

FZ_EXPORT pid_t wait3(int *status, int options, struct rusage *usage)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_wait3);

	if (self && !(options & WNOHANG))
		fz_announce(self);
	return fz_real.wait3(status, options, usage);
}

FZ_EXPORT pid_t wait4(pid_t pid, int *status, int options, struct rusage *usage)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_wait4);

	if (self && !(options & WNOHANG))
		fz_announce(self);
	return fz_real.wait4(pid, status, options, usage);
}
