/* SPDX-License-Identifier: MIT */
/*
 * preload/process/fork.c - fork and _Fork.
 *
 * The child has the calling fiber as its only thread, and is dormant: fz_after_fork_in_child() of
 * preload/after_fork.c resets it. The child shares all open files with its parent and may change their
 * flags, so fz_fdtab_share_all() first removes the hint FZ_FD_OURS from all descriptors.
 */
#include "preload/gate.h"
#include "preload/process/copy.h"
#include "runtime/fiber/parent.h"
#include "runtime/io/fdtab.h"
#include "runtime/sched/carrier.h"

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
		self->call.in_fork = true;
		pid = fz_real.fork();
		self->call.in_fork = false;
	} while (pid < 0 && fz_carrier_made_room(self, -errno, &tries));
	fz_child_made(pid);
	return pid;
}
FZ_EXPORT_ALIAS(__fork, fork);

/* _Fork runs no handlers of pthread_atfork(), so fz_copy_begin(), _end() and _in_child() do what ours would. */
FZ_EXPORT pid_t _Fork(void)
{
	struct fz_copy copy;
	int tries = 0;
	pid_t pid;

	fz_enter(FZ_SYM__Fork);
	do {
		fz_copy_begin(&copy, 0);
		pid = fz_real._Fork();
		fz_child_made(pid);
		if (pid == 0)
			fz_copy_in_child(&copy);
		else
			fz_copy_end(&copy);
	} while (pid < 0 && fz_carrier_made_room(fz_self(), -errno, &tries));
	return pid;
}
