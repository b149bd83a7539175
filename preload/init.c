/* SPDX-License-Identifier: MIT */
/*
 * preload/init.c - start-up, from loaded to dormant to running, and back to dormant in the
 * child of a fork.
 *
 *	loaded    real functions bound, options read, libc's layout checked
 *	dormant   every interposer passes through
 *	running   since the first pthread_create: backends, monitor, fibers
 *	native    switched off, or something that the library needs is missing: dormant for good
 */
#include "preload/init.h"

#include <dlfcn.h>
#include <malloc.h>
#include <sys/auxv.h>
#include <sys/resource.h>

#include "arch/arch.h"
#include "preload/config.h"
#include "preload/gate.h"
#include "preload/libc/loader.h"
#include "preload/libc/redirect.h"
#include "preload/libc/selfcheck.h"
#include "preload/process/children.h"
#include "preload/process/fork_gate.h"
#include "preload/signal/host.h"
#include "preload/sync/cond.h"
#include "preload/thread/exclude.h"
#include "preload/thread/tls.h"
#include "preload/thread/watched.h"
#include "runtime/base/die.h"
#include "runtime/base/fault.h"
#include "runtime/base/features.h"
#include "runtime/base/host.h"
#include "runtime/base/limits.h"
#include "runtime/fiber/cputime.h"
#include "runtime/fiber/stack.h"
#include "runtime/io/fdtab.h"
#include "runtime/io/hints.h"
#include "runtime/io/io.h"
#include "runtime/io/pin.h"
#include "runtime/sched/carrier.h"
#include "runtime/sched/monitor.h"
#include "runtime/sched/sched.h"
#include "runtime/sched/spawner.h"
#include "runtime/signal/altstack.h"
#include "runtime/signal/signal.h"
#include "runtime/sync/lot.h"
#include "runtime/sync/once.h"

bool fz_locks_are_libcs;
static bool native;
static bool launched;
static _Atomic bool wire_main;

/* Report once why there are no fibers, but only under the launcher or with FIBERIZE_VERBOSE=1. */
static void stay_native(const char *why, int err)
{
	native = true;
	if (!fz_config.verbose && !launched)
		return;
	if (err)
		fz_say("threads stay kernel threads: %s: %s", why, strerrorname_np(err));
	else
		fz_say("threads stay kernel threads: %s", why);
}

const char *fz_describe_backend(void)
{
	static char text[128];
	const struct fz_backend_choice *choice = &fz_backend_choice;

	snprintf(text, sizeof(text), "%s%s%s%s%s%s", fz_backend_name(),
		 choice->failed ? " (" : "", choice->failed ? choice->failed : "",
		 choice->failed ? ": " : "",
		 choice->failed ? strerrorname_np(choice->error) : "",
		 choice->failed ? ")" : "");
	return text;
}

/* ---- running ------------------------------------------------------------ */

static uint32_t cpus_allowed(void)
{
	cpu_set_t cpus;

	if (sched_getaffinity(0, sizeof(cpus), &cpus) != 0)
		return 1;
	return (uint32_t)CPU_COUNT(&cpus);
}

/*
 * A function of libc itself, even if another library defines the name first. Not from the
 * constructor: dlopen() would run libc's own constructor, which comes after ours, too early.
 */
static void *in_libc(const char *name)
{
	void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);

	return libc ? dlsym(libc, name) : NULL;
}

/*
 * The kernel's time, even if a preloaded library fakes another (faketime): the kernel's timers
 * follow the real clock, and such a library may take locks, which the runtime must not wait
 * for.
 */
static int (*libc_clock_gettime(void))(clockid_t, struct timespec *)
{
	void *fn = in_libc("clock_gettime");

	return fn ? (int (*)(clockid_t, struct timespec *))fn : fz_real.clock_gettime;
}

static bool has_own_allocator(void)
{
	/* What libc calls for a new thread. */
	static const char *const names[] = { "malloc", "calloc" };
	bool own = false;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		void *libcs = in_libc(names[i]);

		own |= libcs && libcs != dlsym(RTLD_DEFAULT, names[i]);
	}
	return own;
}

/*
 * Find the lower end of the main thread's stack, below which it does not grow. A hint: the
 * kernel reads the limit anew at each fault. Above the stack's strings are only the name that
 * was executed and one word.
 */
static void find_main_stack(struct fz_fiber *self)
{
	const char *name = (const char *)getauxval(AT_EXECFN);
	struct rlimit limit;
	uintptr_t end;

	/* In the child of a fork, the main thread may run on another stack. */
	if (self->mem.stack || !name || getrlimit(RLIMIT_STACK, &limit) != 0)
		return;
	end = FZ_ROUND_UP((uintptr_t)name + strlen(name) + 1, (uintptr_t)4096);
	if (limit.rlim_cur >= end)
		return;
	self->mem.stack_size = limit.rlim_cur & ~(rlim_t)4095;
	self->mem.stack = (void *)(end - self->mem.stack_size);
	self->mem.guard_size = 4096;
}

bool fz_runtime_ready(void)
{
	const char *why;
	uint32_t processors;
	int err;

	if (FZ_LIKELY(fz_runtime_runs()))
		return true;
	/*
	 * A native thread may make the first call, but only the main thread can be the first
	 * fiber.
	 */
	if (native || fz_sys_gettid() != fz_sys_getpid())
		return false;
	if (fz_watched_from_outside(&why)) {
		stay_native(why, 0);
		return false;
	}
	processors = fz_config.processors ? (uint32_t)fz_config.processors : cpus_allowed();
	if (processors > 256)
		processors = 256;
	fz_io_policy = (enum fz_io_policy)fz_config.io;
	fz_host.clock_gettime = libc_clock_gettime();
	fz_host.has_own_allocator = has_own_allocator();
	fz_redirect_start();
	if (fz_config.verbose)
		fz_alt_stack_for_reports(true);
	find_main_stack(fz_self());
	fz_limits_told = fz_config.verbose;
	/* libc's malloc reserves 64 MB of address space for the arena of each new kernel thread. */
	if (fz_limits_count_address_space())
		mallopt(M_ARENA_MAX, 1);
	err = fz_sched_start(processors, (enum fz_backend_kind)fz_config.backend, &why);
	if (err) {
		fz_redirect_undo();
		stay_native(why, -err);
		return false;
	}
	/* relaxed: set by this thread, or by a thread that this one has synchronized with. */
	if (atomic_load_explicit(&wire_main, memory_order_relaxed))
		fz_fiber_wire(fz_self());
	if (fz_config.verbose)
		fz_signal_report_overflow();
	if (fz_config.verbose)
		fz_say("version %s, %u processors, %s", FZ_VERSION, fz_sched.count,
		       fz_describe_backend());
	return true;
}

bool fz_stays_native(void)
{
	return native;
}

void fz_wire_main_at_start(void)
{
	atomic_store_explicit(&wire_main, true, memory_order_relaxed);
}

size_t fz_default_stack_size(size_t of_libc)
{
	return fz_config.stack_size ? (size_t)fz_config.stack_size : of_libc;
}

/* ---- fork --------------------------------------------------------------- */

static void before_fork(void)
{
	fz_carrier_makes_process(fz_self());
	fz_gate_close(FZ_GATE_LOADER);
}

static void after_fork_in_parent(void)
{
	fz_gate_open(FZ_GATE_LOADER);
}

void fz_after_fork_in_child(void)
{
	fz_gates_after_fork();
	fz_once_after_fork();
	fz_cond_gates_after_fork();
	fz_lot_after_fork();
	fz_fiber_alone();
	if (!atomic_load_explicit(&fz_sched.started, memory_order_relaxed))
		return;
	fz_sched_after_fork();
	fz_pin_after_fork();
	fz_carrier_after_fork();
	fz_monitor_after_fork();
	fz_spawner_after_fork();
	fz_signal_after_fork();
	fz_cputime_after_fork();
	fz_fiber_after_fork();
	fz_stack_after_fork();
}

/* ---- loaded ------------------------------------------------------------- */

static _Noreturn void exit_process(int status)
{
	exit(status);
}

static void test_cancel(void)
{
	pthread_testcancel();
}

/*
 * The launcher execs the program, so FIBERIZE_LAUNCHED holds this process's id. The word
 * "dormant" behind the id says that the library is only for the programs that this one starts.
 */
static bool started_by_launcher(char *const *envp, bool *ret_dormant)
{
	const char *value = fz_variable(envp, "FIBERIZE_LAUNCHED");

	if (!value || atoi(value) != (int)fz_sys_getpid())
		return false;
	*ret_dormant = strstr(value, " dormant") != NULL;
	return true;
}

static void prepare(char **envp)
{
	bool dormant = false;
	const char *why;
	bool known;

	fz_real_bind();
	fz_config_read(envp);
	fz_fault_init(fz_variable(envp, "FZ_FAULTS"));
	fz_loader_init();
	fz_exclude_init(fz_config.native_threads);
	launched = started_by_launcher(envp, &dormant);
	if (!fz_config.children)
		fz_children_without_us(envp);
	fz_stats_wanted = fz_config.stats;
	fz_features_without = fz_config.without;
	fz_arch_init(fz_feature_allowed(FZ_FEATURE_FSGSBASE) ? getauxval(AT_HWCAP2) : 0);
	fz_host = (struct fz_host){
		.thread_create = fz_host_thread_create,
		.run_thread = fz_host_run_thread,
		.reset_thread_state = fz_host_reset_thread_state,
		.test_cancel = test_cancel,
		.clock_gettime = fz_real.clock_gettime,
		.exit_process = exit_process,
		.signal_handler = fz_host_signal_handler,
		.call_handler = fz_host_call_handler,
	};
	why = "this libc lacks functions";
	known = !fz_real_missing && fz_libc_check(&why) && fz_tls_init(&why);
	/*
	 * The child handler runs before those registered later, which may call the library. The
	 * handler before fork runs last, since the other ones may wait for threads that are
	 * inside the gate. Registered even if all threads are native, because the locks may be
	 * ours all the same.
	 */
	pthread_atfork(before_fork, after_fork_in_parent, fz_after_fork_in_child);
	if (fz_config.disable || dormant) {
		native = fz_locks_are_libcs = true;
		return;
	}
	if (!known || fz_watched_from_inside(envp, &why)) {
		fz_locks_are_libcs = true;
		stay_native(why, 0);
	} else {
		fz_fdtab_init();
		fz_hints_init();
	}
}

__attribute__((constructor)) static void loaded(int argc, char **argv, char **envp)
{
	(void)argc;
	(void)argv;
	prepare(envp);
	/* The program's first dlerror() must not report the look-ups of this constructor. */
	dlerror();
}
