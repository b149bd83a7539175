/* SPDX-License-Identifier: MIT */
#include "preload/after_fork.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

#include "preload/gate.h"
#include "preload/process/fork_gate.h"
#include "preload/stats.h"
#include "preload/sync/cond.h"
#include "preload/thread/names.h"
#include "runtime/backend/kept_fd.h"
#include "runtime/backend/own_fd.h"
#include "runtime/base/die.h"
#include "runtime/fiber/cputime.h"
#include "runtime/fiber/stack.h"
#include "runtime/io/fdtab.h"
#include "runtime/io/pin.h"
#include "runtime/io/turn.h"
#include "runtime/sched/carrier.h"
#include "runtime/sched/monitor.h"
#include "runtime/sched/own_fds.h"
#include "runtime/sched/sched.h"
#include "runtime/sched/spawner.h"
#include "runtime/signal/signal.h"
#include "runtime/sync/lot.h"
#include "runtime/sync/once.h"

void fz_files_copying_begins(void)
{
	fz_sched_hold_limit();
	if (!fz_fdtab_is_unshared())
		fz_kept_fd_copying_begins();
}

void fz_files_copying_ends(void)
{
	if (!fz_fdtab_is_unshared())
		fz_sched_copying_ends();
	fz_sched_release_limit();
}

/* Has fz_fork_notice() reset this process already, before after_fork_in_child()? */
static bool noticed;

static void before_fork(void)
{
	struct fz_fiber *self = fz_self();

	noticed = false;
	fz_spawner_turn_begin(self);
	fz_carrier_makes_process(self);
	/* Take the name from the kernel, for the child: the program may have written it to /proc/self/comm. */
	if (self->kind == FZ_KIND_FIBER && self->thread.is_main)
		fz_name_get(self, self->thread.name);
	fz_gate_close(FZ_GATE_LOADER);
	fz_files_copying_begins();
}

static void after_fork_in_parent(void)
{
	fz_gate_open(FZ_GATE_LOADER);
	fz_files_copying_ends();
	fz_spawner_turn_end(fz_self());
}

static void forget(void)
{
	fz_gates_after_fork();
	fz_once_after_fork();
	fz_cond_gates_after_fork();
	fz_lot_after_fork();
	fz_fiber_alone();
	if (!atomic_load_explicit(&fz_sched.started, memory_order_relaxed)) {
		fz_stats_after_fork();
		return;
	}
	if (fz_verbose)
		fz_say("process %d, made by fork: dormant until it makes a thread", (int)fz_sys_getpid());
	fz_sched_after_fork();
	fz_pin_after_fork();
	fz_turn_after_fork();
	fz_carrier_after_fork();
	fz_monitor_after_fork();
	fz_spawner_after_fork();
	fz_signal_after_fork();
	fz_cputime_after_fork();
	fz_fiber_after_fork();
	fz_stack_after_fork();
	fz_stats_after_fork();
}

/*
 * Points to memory that the kernel sets to 0 in a copy of the process (MADV_WIPEONFORK). 0: this process is a
 * copy that has not been reset. NULL: the kernel has no such memory.
 */
static int *original;

void fz_after_fork_in_child(bool shares_files)
{
	const uint64_t all = ~(uint64_t)0;
	uint64_t mask;

	/* A handler would find a part of the parent's state, and a part of the child's. */
	fz_sys_sigmask(SIG_SETMASK, &all, &mask);
	/* Set this first, or the calls below would reset the process again (fz_fork_notice). */
	if (original)
		*original = 1;
	/*
	 * A thread with an unshared table of descriptors has passed that table on. Its numbers belong to
	 * the program, so none is closed.
	 */
	fz_own_fd_begin_in_child(shares_files || fz_fdtab_is_unshared());
	fz_kept_fd_after_fork();
	fz_fdtab_rest_after_fork();
	fz_self()->thread.spawn_begun = false;
	if (!shares_files)
		fz_fdtab_after_fork();
	forget();
	fz_own_fd_end_in_child();
	fz_sys_sigmask(SIG_SETMASK, &mask, NULL);
}

static void after_fork_in_child(void)
{
	if (!noticed)
		fz_after_fork_in_child(false);
}

void fz_fork_notice(void)
{
	if (!original || *original)
		return;
	noticed = true;
	fz_after_fork_in_child(false);
}

/* Make the memory for `original`. Linux before 4.14 has no MADV_WIPEONFORK: `original` stays NULL. */
static void watch_for_copies(void)
{
	const size_t size = sizeof(*original);
	const long mem = fz_sys_mmap(size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);

	if (fz_sys_failed(mem))
		return;
	if (fz_syscall3(__NR_madvise, mem, (long)size, MADV_WIPEONFORK)) {
		fz_syscall2(__NR_munmap, mem, (long)size);
		return;
	}
	original = (int *)mem;
	*original = 1;
}

/*
 * Child handlers run in the order of their registration. The library's runs before those of the
 * program, which may call the library. An allocator that the loader calls may have registered a
 * handler earlier: the first call that such a handler makes to the library resets the process
 * (fz_fork_notice).
 * Handlers before a fork run in reverse order, so the library closes its gate after all handlers of
 * the program, which may wait for threads that are inside the gate.
 */
void fz_fork_handlers_register(void)
{
	watch_for_copies();
	pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}
