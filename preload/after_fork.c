/* SPDX-License-Identifier: MIT */
#include "preload/after_fork.h"

#include <pthread.h>
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

/* fz_fork_notice() has reset this process, before the handler. */
static bool noticed;

static void before_fork(void)
{
	struct fz_fiber *self = fz_self();

	noticed = false;
	fz_spawner_turn_begin(self);
	fz_carrier_makes_process(self);
	/* The program may have written to /proc/self/comm; the child takes the name over. */
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

/* 0: this process is a copy that has not been reset; the kernel makes it 0.  NULL: it cannot. */
static int *original;

void fz_after_fork_in_child(bool shares_files)
{
	/* First: what follows makes calls that would notice the copy. */
	if (original)
		*original = 1;
	/* A thread with a table of its own has passed that on: the numbers are the program's there. */
	fz_own_fd_begin_in_child(shares_files || fz_fdtab_is_unshared());
	fz_kept_fd_after_fork();
	fz_self()->thread.spawn_begun = false;
	if (!shares_files)
		fz_fdtab_after_fork();
	forget();
	fz_own_fd_end_in_child();
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

/* Before Linux 4.14 there is no such memory. */
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
 * The child handler runs before those registered later, which may call the library; one that was
 * registered earlier, by an allocator that the loader calls, reaches fz_fork_notice() by its first
 * call. The handler before fork runs last, since the other ones may wait for threads that are
 * inside the gate.
 */
void fz_fork_handlers_register(void)
{
	watch_for_copies();
	pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}
