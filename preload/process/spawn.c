/* SPDX-License-Identifier: MIT */
/*
 * preload/process/spawn.c - posix_spawn, popen, system: libc makes the process.
 */
#include "preload/process/spawn.h"

#include "preload/gate.h"
#include "preload/init.h"
#include "preload/libc/redirect.h"
#include "runtime/fiber/parent.h"
#include "runtime/io/fdtab.h"
#include "runtime/sched/announce.h"
#include "runtime/sched/carrier.h"
#include "runtime/sched/own_fds.h"
#include "runtime/sched/sched.h"
#include "runtime/signal/signal.h"

/*
 * Announce a brief call.  Returns the calling fiber or NULL, to be passed to leave_brief().  A cancellation inside
 * the real call unwinds past leave_brief(), which is harmless.
 */
__attribute__((always_inline)) static inline struct fz_fiber *enter_brief(enum fz_symbol symbol)
{
	struct fz_fiber *self = fz_enter(symbol);

	if (self)
		fz_announce_brief(self);
	return self;
}

static void leave_brief(struct fz_fiber *self)
{
	if (self)
		fz_announce_end(self);
}

static void prepare(struct fz_fiber *self)
{
	fz_fdtab_share_all();
	fz_carrier_makes_process(self);
}

bool fz_spawn_begins(void)
{
	struct fz_fiber *self = fz_self();
	bool hides = self->thread.spawn_begun;

	self->thread.spawn_begun = false;
	prepare(self);
	if (!hides)
		hides = fz_signal_before_spawn();
	fz_sched_hold_limit();
	return hides;
}

void fz_spawn_ends(bool hides)
{
	fz_sched_release_limit();
	fz_signal_after_spawn(hides);
}

/*
 * Do libc's popen() and system() make their process by a call that is not redirected? A redirected call comes to
 * fz_posix_spawn_inside(), which calls fz_spawn_begins() and fz_spawn_ends().
 */
static bool spawns_unseen(void)
{
	return !fz_redirect_reaches((const void *)fz_real.posix_spawn);
}

/* posix_spawn or posix_spawnp; both return when the exec of the child has succeeded or failed. */
typedef int spawn_fn(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
		     const posix_spawnattr_t *attr, char *const argv[], char *const envp[]);

static int spawn(struct fz_fiber *self, spawn_fn *real, pid_t *pid, const char *file,
		 const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attr,
		 char *const argv[], char *const envp[])
{
	int ret, tries = 0;
	pid_t made;
	bool hides;

	do {
		hides = fz_spawn_begins();
		ret = real(&made, file, actions, attr, argv, envp);
		fz_spawn_ends(hides);
	} while (ret && fz_carrier_made_room(fz_self(), -ret, &tries));
	if (!ret) {
		fz_child_made(made);
		if (pid)
			*pid = made;
	}
	leave_brief(self);
	return ret;
}

FZ_EXPORT int posix_spawn(pid_t *pid, const char *path,
			  const posix_spawn_file_actions_t *actions,
			  const posix_spawnattr_t *attr, char *const argv[], char *const envp[])
{
	struct fz_fiber *self = enter_brief(FZ_SYM_posix_spawn);
	FZ_COUNTED_AS_ONE;

	return spawn(self, fz_real.posix_spawn, pid, path, actions, attr, argv, envp);
}

FZ_EXPORT int posix_spawnp(pid_t *pid, const char *file,
			   const posix_spawn_file_actions_t *actions,
			   const posix_spawnattr_t *attr, char *const argv[], char *const envp[])
{
	struct fz_fiber *self = enter_brief(FZ_SYM_posix_spawnp);
	FZ_COUNTED_AS_ONE;

	return spawn(self, fz_real.posix_spawnp, pid, file, actions, attr, argv, envp);
}

FZ_EXPORT FILE *popen(const char *command, const char *mode)
{
	struct fz_fiber *self = enter_brief(FZ_SYM_popen);
	FZ_COUNTED_AS_ONE;
	const bool unseen = spawns_unseen();
	bool hides = false;
	FILE *file;

	if (unseen)
		hides = fz_spawn_begins();
	file = fz_real.popen(command, mode);
	if (unseen)
		fz_spawn_ends(hides);
	leave_brief(self);
	return file;
}

FZ_EXPORT int pclose(FILE *file)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_pclose);
	FZ_COUNTED_AS_ONE;

	/* libc's own wait goes on after signals, so no loop here. */
	if (self)
		fz_announce(self);
	return fz_real.pclose(file);
}

struct system_call {
	struct fz_fiber *self;
	uint64_t mask;
	bool began, returned;
};

static void end_system(struct system_call *call)
{
	struct fz_fiber *self = call->self;

	if (call->began && fz_runtime_runs())
		fz_signal_system_ends();
	fz_signal_after_spawn(fz_self()->thread.spawn_begun);
	fz_self()->thread.spawn_begun = false;
	/* A handler may have forked: its child has no fiber, and libc has restored the mask there. */
	if (fz_self()->kind != FZ_KIND_FIBER)
		return;
	/*
	 * A cancelled system() leaves SIGCHLD blocked for the fiber; the kernel thread must not
	 * keep it blocked for other fibers.
	 */
	if (self && call->returned)
		fz_signal_set_mask(self, SIG_SETMASK, &call->mask, NULL);
	else if (self)
		fz_signal_load_mask(self->carrier, self->mask);
}

/*
 * libc blocks SIGCHLD during system(), by itself. The fiber's mask only follows; the kernel thread
 * keeps the previous mask, which the command inherits.
 */
FZ_EXPORT int system(const char *command)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_system);
	FZ_COUNTED_AS_ONE;
	__attribute__((cleanup(end_system))) struct system_call call = { .self = self };
	int status;

	/* In this case the limit on descriptors is not held (fz_own_fd_hold_limit). */
	if (spawns_unseen())
		prepare(fz_self());
	call.began = fz_runtime_runs();
	if (call.began)
		fz_signal_system_begins();
	/*
	 * libc's system() asks whether SIGINT and SIGQUIT are ignored before it makes the process, so this comes first.
	 * fz_posix_spawn_inside() calls fz_signal_after_spawn(); where libc's code is not redirected, end_system() does.
	 */
	if (!fz_self()->thread.spawn_begun)
		fz_self()->thread.spawn_begun = fz_signal_before_spawn();
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
