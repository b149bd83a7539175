/* SPDX-License-Identifier: MIT */
#include "preload/process/copy.h"

#include "preload/after_fork.h"
#include "preload/gate.h"
#include "preload/init.h"
#include "preload/process/fork_gate.h"
#include "runtime/io/fdtab.h"
#include "runtime/sched/carrier.h"
#include "runtime/sched/spawner.h"

void fz_copy_begin(struct fz_copy *copy, unsigned long flags)
{
	uint64_t blocked = FZ_SIGNALS_ALL;

	/*
	 * With CLONE_VFORK the kernel suspends this thread until the child calls exec or ends, and SIGCHLD may come
	 * meanwhile.  A blocked signal becomes pending for the process, and interrupts a call of another kernel thread
	 * even if the signal has no handler: so signals without effect are not blocked.
	 */
	if (flags & CLONE_VFORK)
		blocked &= ~fz_signals_without_effect();
	copy->gates = !(flags & CLONE_VFORK);
	copy->shares_files = flags & CLONE_FILES;
	if (copy->gates)
		fz_spawner_turn_begin(fz_self());
	fz_fdtab_share_all();
	fz_carrier_makes_process(fz_self());
	fz_sys_sigmask(SIG_SETMASK, &blocked, &copy->mask);
	/*
	 * With CLONE_VFORK the call lasts until the child executes or ends. Until then other threads,
	 * for which the child may wait, must be able to make threads: the gates stay open. The child may
	 * find libc's locks held, but no function that a child of vfork may call needs them.
	 */
	if (copy->gates) {
		fz_gate_close(FZ_GATE_LOADER);
		fz_gate_close(FZ_GATE_THREADS);
	}
	/* Before the runtime runs there are no carriers. */
	copy->carriers = copy->gates && fz_runtime_runs();
	if (copy->carriers)
		fz_carrier_hold_ends();
	fz_files_copying_begins();
}

void fz_copy_end(const struct fz_copy *copy)
{
	fz_files_copying_ends();
	if (copy->carriers)
		fz_carrier_let_end();
	if (copy->gates) {
		fz_gate_open(FZ_GATE_THREADS);
		fz_gate_open(FZ_GATE_LOADER);
	}
	fz_sys_sigmask(SIG_SETMASK, &copy->mask, NULL);
	if (copy->gates)
		fz_spawner_turn_end(fz_self());
}

void fz_copy_in_child(const struct fz_copy *copy)
{
	fz_after_fork_in_child(copy->shares_files);
	/* The library can make no descriptors here: they would be the parent's, too. */
	if (copy->shares_files)
		fz_stay_native("the descriptors are those of another process, too (CLONE_FILES)", 0);
	fz_sys_sigmask(SIG_SETMASK, &copy->mask, NULL);
}
