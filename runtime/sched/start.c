/* SPDX-License-Identifier: MIT */
/*
 * runtime/sched/start.c - the start of the runtime, and its end in a fork's child.
 *
 * fz_sched_start() turns a program with one thread into one with fibers; everything that may fail
 * comes before anything is changed.  fz_sched_after_fork() makes the child dormant.
 */
#include <asm/errno.h>
#include <limits.h>
#include <sys/resource.h>

#include "runtime/backend/own_fd.h"
#include "runtime/backend/watch.h"
#include "runtime/base/cpus.h"
#include "runtime/base/host.h"
#include "runtime/base/limits.h"
#include "runtime/base/role.h"
#include "runtime/fiber/adopt.h"
#include "runtime/fiber/stack.h"
#include "runtime/sched/carrier.h"
#include "runtime/sched/monitor.h"
#include "runtime/sched/park.h"
#include "runtime/sched/poll_cycles.h"
#include "runtime/sched/sched_internal.h"
#include "runtime/sched/spawner.h"
#include "runtime/sched/trace.h"
#include "runtime/signal/signal.h"

/*
 * A limit may forbid any of the kernel threads that the start needs.  So the start makes them
 * before it changes anything, and the helpers wait until all are there.
 */
enum { START_UNDECIDED, START_DONE, START_FAILED };

static _Atomic uint32_t start_state;	/* futex */

enum { HELPER_STACK = 256 * 1024, HELPER_GUARD = 4096 };

struct helper {
	void (*run)(void);		/* NULL: the thread is only there to be counted */
	enum fz_role_kind kind;
	const char *role;
	const char *name;		/* for ps -T and gdb */
	void *stack;
	uintptr_t tcb;
	int tid;
	_Atomic uint32_t runs;		/* futex; 1: the thread has left libc, and tcb and tid are set */
};

static void *helper_thread(void *arg)
{
	struct helper *helper = arg;
	struct fz_fiber *self = fz_self();
	uint32_t state;

	self->tcb = fz_tcb_get();
	self->kind = FZ_KIND_HELPER;
	/*
	 * Unregister rseq.  libc then registers none in the carriers that this thread makes later,
	 * where a filter may forbid to unregister it.
	 */
	fz_adopt_cut_rseq();
	atomic_store_explicit(&self->in_runtime, 1, memory_order_relaxed);
	helper->tcb = self->tcb;
	helper->tid = (int)fz_sys_gettid();
	/* release: pairs with await_helper(). */
	atomic_store_explicit(&helper->runs, 1, memory_order_release);
	fz_sys_futex_wake(&helper->runs, 1);
	/* acquire: pairs with decide(). */
	while ((state = atomic_load_explicit(&start_state, memory_order_acquire)) ==
	       START_UNDECIDED)
		fz_sys_futex_wait(&start_state, START_UNDECIDED, NULL);
	if (state != START_DONE)
		return NULL;
	if (fz_host.name_kernel_thread)
		fz_host.name_kernel_thread(helper->name);
	helper->run();
	return NULL;
}

static int start_helper(struct helper *helper)
{
	size_t size;
	int err = fz_stack_alloc(HELPER_STACK, HELPER_GUARD, &helper->stack, &size);

	if (err)
		return err;
	atomic_store_explicit(&helper->runs, 0, memory_order_relaxed);
	err = FZ_FAULT(thread_helper) ? -EAGAIN :
		fz_host.thread_create(helper->stack, size, helper_thread, helper, NULL);
	if (err)
		fz_stack_free(helper->stack, HELPER_STACK, HELPER_GUARD);
	return err;
}

static void decide(uint32_t state)
{
	/* release: pairs with helper_thread(). */
	atomic_store_explicit(&start_state, state, memory_order_release);
	fz_sys_futex_wake(&start_state, INT_MAX);
}

/* Wait until the helper has left libc's start of a thread. */
static void await_helper(struct helper *helper)
{
	/* acquire: pairs with helper_thread(). */
	while (!atomic_load_explicit(&helper->runs, memory_order_acquire))
		fz_sys_futex_wait(&helper->runs, 0, NULL);
}

/*
 * Wait until the helper has left libc's start of a thread: the program's next filter may forbid a
 * call that libc makes there.  Then name the helper for tools, before the program has a second
 * thread.  Returns its tid.
 */
static int show_helper(struct helper *helper)
{
	int tid;

	await_helper(helper);
	/* relaxed: libc has set it before the helper ran. */
	tid = atomic_load_explicit(fz_tcb_tid(helper->tcb), memory_order_relaxed);
	fz_role_set(tid, helper->kind, helper->role, NULL);
	return tid;
}

/*
 * Wait until the helper has left libc, because the caller then restores libc's code.  Wait also
 * until the kernel counts it no more: otherwise a limit might leave no room for the program's own
 * thread.
 */
static void end_helper(struct helper *helper)
{
	await_helper(helper);
	/* acquire: pairs with the kernel, which clears the tid in the TCB.  The TCB is on the stack, which is freed below. */
	while (atomic_load_explicit(fz_tcb_tid(helper->tcb), memory_order_acquire))
		fz_syscall0(__NR_sched_yield);
	/* The thread is found until just after the kernel has counted it out. */
	while (fz_syscall3(__NR_tgkill, fz_sys_getpid(), helper->tid, 0) == 0)
		fz_syscall0(__NR_sched_yield);
	fz_stack_free(helper->stack, HELPER_STACK, HELPER_GUARD);
}

/* An RLIMIT_NPROC of at least this leaves enough kernel threads, whatever else runs. */
enum { NARROW = 1024 };

/*
 * Kernel threads needed besides one per processor: 2 helpers, 1 while a thread is being
 * created, 3 left to the program for processes.  Of the threads per processor one is a spare,
 * because the main thread is a carrier, too.
 */
enum { BESIDES = 6, MOST = 256 + BESIDES };

/*
 * How many of `count` processors the limit on kernel threads allows; may be 0.  If the limit is
 * narrow, this tries it out with as many kernel threads as needed, which do nothing.
 */
static uint32_t allowed_processors(uint32_t count)
{
	static struct helper tried[MOST];
	struct { uint64_t now, most; } limit;
	uint32_t got = 0;

	if (fz_syscall4(__NR_prlimit64, 0, RLIMIT_NPROC, 0, (long)&limit) != 0 || limit.now >= NARROW)
		return count;
	atomic_store_explicit(&start_state, START_UNDECIDED, memory_order_relaxed);
	while (got < count + BESIDES && got < MOST && !start_helper(&tried[got]))
		got++;
	decide(START_FAILED);
	for (uint32_t i = 0; i < got; i++)
		end_helper(&tried[i]);
	return got < BESIDES ? 0 : got - BESIDES;
}

/*
 * Start the two helpers, a first carrier, and a context for the main thread's carrier.  The carrier
 * is the first spare: without one, the first fiber that blocks would stop all others.  The context
 * comes last: its kernel thread ends at once, which shows that the limit leaves room for the kernel
 * thread that each new thread needs for a moment.
 */
static int start_threads(struct fz_fiber **ret_context)
{
	static struct helper monitor = { .run = fz_monitor_run, .kind = FZ_ROLE_MONITOR,
					  .role = "monitor", .name = "fz-monitor" };
	static struct helper spawner = { .run = fz_spawner_run, .role = "carrier spawner",
					 .name = "fz-spawner" };
	struct fz_carrier_birth spare;
	int err, not_started;

	if (!fz_carrier_prepare_first())
		return -ENOMEM;
	atomic_store_explicit(&start_state, START_UNDECIDED, memory_order_relaxed);
	err = start_helper(&monitor);
	if (err)
		return err;
	err = start_helper(&spawner);
	if (err)
		goto out_end_monitor;
	err = fz_carrier_begin_start(&spare);
	if (err)
		goto out_end_spawner;
	err = fz_fiber_prepare_main(ret_context);
	/*
	 * The kernel threads started at the same time.  fz_carrier_prepare_first() reserved the
	 * memory, so this cannot fail.
	 */
	not_started = fz_carrier_end_start(&spare);
	FZ_ASSERT(!not_started);
	if (!err) {
		fz_adopt_await(*ret_context, NULL);
		fz_sched.monitor_tid = show_helper(&monitor);
		show_helper(&spawner);
		return 0;
	}
	fz_carrier_end_all();
out_end_spawner:
	decide(START_FAILED);
	end_helper(&spawner);
out_end_monitor:
	decide(START_FAILED);
	end_helper(&monitor);
	return err;
}

/* How many of `count` processors the limit on descriptors allows; may be 0. */
static uint32_t affordable_processors(uint32_t count, enum fz_backend_kind backend)
{
	const uint32_t each = fz_backend_fds(backend);

	return fz_own_fd_allowed(count * each) / each;
}

static const struct fz_backend_hooks hooks = {
	.wake = fz_wake_done,
	.submits = fz_carrier_note_submitted,
};

static int make_processors(uint32_t count)
{
	long mem = fz_sys_map_table(count * sizeof(struct fz_processor));

	if (fz_sys_failed(mem))
		return (int)mem;
	fz_sched.processors = (struct fz_processor *)mem;
	fz_runq_init(&fz_sched.global);
	fz_runq_init(&fz_sched.births);
	for (uint32_t i = 0; i < count; i++) {
		struct fz_processor *p = &fz_sched.processors[i];

		p->counts = p->backend.ring.counts = &fz_counters->processor[i];
		p->backend.ring.owner = &p->owner;
		fz_runq_init(&p->runq);
		fz_timers_init(&p->timers);
	}
	return 0;
}

int fz_sched_start(uint32_t count, enum fz_backend_kind backend, const char **ret_why)
{
	static const char no_threads[] = "no kernel threads for the library";
	struct fz_fiber *context = NULL;
	int err;

	*ret_why = "the limit on memory is low";
	/* The library takes about 15 MB of the 64 MB; the rest is for the program. */
	if (!fz_limits_allow_memory((size_t)64 << 20))
		return -ENOMEM;
	*ret_why = "the limit on descriptors is low";
	count = affordable_processors(count, backend);
	if (!count)
		return -EMFILE;
	*ret_why = no_threads;
	count = allowed_processors(count);
	if (!count)
		return -EAGAIN;
	*ret_why = "no memory";
	err = make_processors(count);
	if (err)
		return err;
	fz_poll_cycles_start();
	err = fz_backends_init(&fz_sched.processors->backend, count,
			       sizeof(struct fz_processor), backend, &hooks, ret_why);
	if (!err) {
		err = start_threads(&context);
		if (err) {
			*ret_why = no_threads;
			fz_backends_fini(&fz_sched.processors->backend, count,
					 sizeof(struct fz_processor));
		}
	}
	if (err) {
		fz_sys_unmap_table(fz_sched.processors, count * sizeof(struct fz_processor));
		fz_sched.processors = NULL;
		return err;
	}
	if (!fz_counters->version)
		fz_counters_begin();
	fz_sched.count = fz_counters->processors = count;
	atomic_store_explicit(&fz_sched.open, count, memory_order_relaxed);
	atomic_store_explicit(&fz_sched.allowed, count, memory_order_relaxed);
	fz_fiber_adopt_main(context);
	/* Before any fiber can block inside libc and be interrupted there by one of libc's internal signals. */
	fz_signal_guard_libc();
	FZ_DEBUG_ONLY(fz_lock_allowed = fz_bars_handlers);
	decide(START_DONE);
	atomic_store_explicit(&fz_sched.started, true, memory_order_release);
	return 0;
}

void fz_sched_after_fork(void)
{
	if (!fz_sched.processors)
		return;
	fz_trace_after_fork();
	fz_cpus_close(fz_own_fd_close);
	fz_backends_fini(&fz_sched.processors->backend, fz_sched.count,
			 sizeof(struct fz_processor));
	fz_watch_after_fork();
	fz_sys_unmap_table(fz_sched.processors, fz_sched.count * sizeof(struct fz_processor));
	__builtin_memset(&fz_sched, 0, sizeof(fz_sched));
	FZ_DEBUG_ONLY(fz_lock_allowed = NULL);
}
