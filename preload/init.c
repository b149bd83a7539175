/* SPDX-License-Identifier: MIT */
/*
 * preload/init.c - start-up, from loaded to dormant to running. The way back to dormant in the child
 * of a fork is preload/after_fork.c.
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
#include "preload/after_fork.h"
#include "preload/config.h"
#include "preload/gate.h"
#include "preload/libc/loader.h"
#include "preload/libc/modules.h"
#include "preload/libc/redirect.h"
#include "preload/libc/selfcheck.h"
#include "preload/libc/thread_end.h"
#include "preload/process/children.h"
#include "preload/proc.h"
#include "preload/processors.h"
#include "preload/process/fork_gate.h"
#include "preload/signal/host.h"
#include "preload/sync/cond.h"
#include "preload/thread/exclude.h"
#include "preload/thread/names.h"
#include "preload/thread/schedule.h"
#include "preload/thread/tls.h"
#include "preload/thread/watched.h"
#include "runtime/backend/filter.h"
#include "runtime/backend/own_fd.h"
#include "runtime/base/cpus.h"
#include "runtime/base/die.h"
#include "runtime/base/fault.h"
#include "runtime/base/features.h"
#include "runtime/base/host.h"
#include "runtime/base/limits.h"
#include "runtime/fiber/cputime.h"
#include "runtime/fiber/stack.h"
#include "runtime/fiber/wire.h"
#include "runtime/inspect/deadlock.h"
#include "runtime/inspect/dormant.h"
#include "runtime/inspect/version.h"
#include "runtime/io/fdtab.h"
#include "runtime/io/hints.h"
#include "runtime/io/io.h"
#include "runtime/io/pin.h"
#include "runtime/sched/carrier.h"
#include "runtime/sched/monitor.h"
#include "runtime/sched/provide.h"
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
void fz_stay_native(const char *why, int err)
{
	native = true;
	snprintf(fz_dormant_why, sizeof(fz_dormant_why), "%s%s%s", why, err ? ": " : "",
		 err ? strerrorname_np(err) : "");
	if (fz_config.verbose || launched)
		fz_say("threads stay kernel threads: %s", fz_dormant_why);
}

/* Why io_uring is not used; the text is static. */
static const char *describe_failure(void)
{
	static char text[128];
	const int error = -fz_backend_choice.error;

	snprintf(text, sizeof(text), "%s%s%s", fz_backend_choice.failed, error ? ": " : "",
		 error ? fz_host.error_name(error) : "");
	return text;
}

const char *fz_describe_backend(void)
{
	static char text[160];
	bool failed = fz_backend_choice.failed;

	snprintf(text, sizeof(text), "%s%s%s%s", fz_backend_name(), failed ? " (" : "",
		 failed ? describe_failure() : "", failed ? ")" : "");
	return text;
}

/* ---- running ------------------------------------------------------------ */

/*
 * Find libc's clock_gettime for the runtime, past a preloaded library that fakes the time
 * (faketime): the kernel's timers follow the real clock, and such a library may take locks, for
 * which the runtime must not wait.
 */
static int (*libc_clock_gettime(void))(clockid_t, struct timespec *)
{
	void *fn = fz_loader_in_libc("clock_gettime");

	return fn ? (int (*)(clockid_t, struct timespec *))fn : fz_real.clock_gettime;
}

static bool has_own_allocator(void)
{
	/* libc calls these functions to make a thread. */
	static const char *const names[] = { "malloc", "calloc" };
	bool own = false;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		void *libcs = fz_loader_in_libc(names[i]);

		own |= libcs && libcs != dlsym(RTLD_DEFAULT, names[i]);
	}
	return own;
}

/*
 * Find the lower end of the main thread's stack, below which the stack does not grow. The result is
 * a hint, because the kernel reads the limit anew at each fault. The upper end of the stack follows
 * from AT_EXECFN: behind that name there is only one word.
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

/*
 * Make the signals that are pending for the main thread pending for its fiber. sigpending() mixes
 * them with those pending for the process; only /proc tells them apart.
 */
static void adopt_pending(struct fz_fiber *self)
{
	char text[4096], *own;
	uint64_t set;
	sigset_t any;

	/* If the main thread is wired, its signals stay pending in the kernel. */
	if (self->kind != FZ_KIND_FIBER || fz_real.sigpending(&any) != 0 || sigisemptyset(&any))
		return;
	do {
		own = fz_proc_read("/proc/thread-self/status", "\nSigPnd:\t", text, sizeof(text));
		set = own ? strtoull(own, NULL, 16) : 0;
	} while (set && fz_signal_adopt_pending(self, set));
}

static void say_running(void)
{
	if (fz_config.verbose) {
		const uint32_t open = atomic_load_explicit(&fz_sched.open, memory_order_relaxed);

		fz_signal_report_overflow();
		fz_say("version %s, %u processor%s, %s", fz_version, open, fz_plural(open),
		       fz_describe_backend());
	} else if (launched && fz_backend_choice.failed) {
		fz_say("io_uring cannot be used here: %s; fibers wait by epoll; see fiberize(1), "
		       "CONTAINERS", describe_failure());
	}
}

static int start(const char **ret_why)
{
	uint32_t open, processors = fz_processors_wanted(&open);
	int err;

	fz_stats_to_file(processors);
	err = fz_sched_start(processors, (enum fz_backend_kind)fz_config.backend, ret_why);
	if (err) {
		fz_cpus_close(fz_own_fd_close);
		return err;
	}
	/* relaxed: this thread has set wire_main, or has synchronized with the thread that has. */
	if (fz_schedule_start() || atomic_load_explicit(&wire_main, memory_order_relaxed))
		fz_fiber_wire_main(fz_self(), "its kernel thread had to be known before the first thread");
	fz_provide_begin(open);
	fz_stats_started();
	return 0;
}

/*
 * Start the runtime while the gate keeps a native thread from forking in the middle. If the program has its own
 * allocator, do without the gate: a thread in fork may hold the allocator's locks and wait for the gate, while
 * this thread waits for those locks.
 */
static int start_whole(const char **ret_why)
{
	int err;

	if (fz_host.has_own_allocator)
		return start(ret_why);
	fz_gate_enter(FZ_GATE_LOADER);
	err = start(ret_why);
	fz_gate_leave(FZ_GATE_LOADER);
	return err;
}

static bool begin_running(void)
{
	char text[192];
	const char *why;
	int err;

	if (fz_watched_from_outside(&why)) {
		fz_stay_native(why, 0);
		return false;
	}
	fz_io_policy = (enum fz_io_policy)fz_config.io;
	fz_host.clock_gettime = libc_clock_gettime();
	fz_host.has_own_allocator = has_own_allocator();
	fz_stats_before_redirect();
	fz_redirect_start();
	fz_modules_learn();
	/*
	 * This takes the loader's lock, so it comes before start_whole() enters the gate: a thread that
	 * holds the loader's lock may fork, and would wait for the gate.
	 */
	fz_thread_end_look();
	if (fz_config.verbose || fz_stats_are_printed())
		fz_alt_stack_for_reports(true);
	find_main_stack(fz_self());
	fz_limits_told = fz_config.verbose;
	/* libc's malloc reserves 64 MB of address space for the arena of each new kernel thread. */
	if (fz_limits_count_address_space())
		mallopt(M_ARENA_MAX, 1);
	err = start_whole(&why);
	if (err) {
		fz_redirect_undo();
		if (fz_config.backend == FZ_BACKEND_RING && strstr(why, "io_uring")) {
			snprintf(text, sizeof(text), "only io_uring is wanted (--backend uring), and "
				 "it cannot be used here: %s", why);
			why = text;
		}
		fz_stay_native(why, -err);
		return false;
	}
	adopt_pending(fz_self());
	say_running();
	return true;
}

bool fz_runtime_ready(void)
{
	bool runs;

	if (FZ_LIKELY(fz_runtime_runs()))
		return true;
	/*
	 * A native thread may make the first call, but only the main thread can be the first
	 * fiber.
	 */
	if (native || fz_sys_gettid() != fz_sys_getpid())
		return false;
	/* Bar handlers: a handler might fork in the middle of the start, or leave it by siglongjmp. */
	fz_signal_bar(fz_self());
	runs = begin_running();
	fz_signal_allow(fz_self());
	return runs;
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

/* ---- loaded ------------------------------------------------------------- */

static void switch_refused(void)
{
	fz_die("a filter forbids arch_prctl, and this CPU or kernel has no FSGSBASE: no thread can "
	       "go on; run the program by fiberize --disable");
}

static const char *error_name(int error)
{
	const char *name = strerrorname_np(error);

	return name ? name : "an error without a name";
}

static _Noreturn void exit_process(int status)
{
	exit(status);
}

static void test_cancel(void)
{
	pthread_testcancel();
}

/*
 * FIBERIZE_LAUNCHED: the id of the process that the launcher has become by exec; its standard error
 * (INODE:MAJOR:MINOR), which its children inherit; the word "dormant" if the library is only
 * for the programs that this process starts.
 */
static bool started_by_launcher(char *const *envp, bool *ret_dormant)
{
	const char *value = fz_variable(envp, "FIBERIZE_LAUNCHED");
	uint64_t number[4] = { 0 };	/* process id, inode, major, minor */
	char *end = (char *)value;

	for (size_t i = 0; value && i < 4; i++)
		number[i] = strtoul(end + (*end == ':'), &end, 10);
	fz_say_init(number[1] ? &(struct fz_file_id){ number[1], (uint32_t)number[2],
						      (uint32_t)number[3] } : NULL);
	if (!value || number[0] != (uint64_t)fz_sys_getpid())
		return false;
	*ret_dormant = strcmp(end, " dormant") == 0;
	return true;
}

static void say_loaded(const char *name)
{
	static const char *const backends[] = { "auto", "uring", "epoll" };

	uint32_t open, made = fz_processors_wanted(&open);

	fz_cpus_close(fz_own_fd_close);
	made = open ? open : made;
	fz_say("%s[%d]: dormant%s%s; version %s, %u processor%s, backend %s", name ? name : "",
	       (int)fz_sys_getpid(), *fz_dormant_why ? ": " : " until the first pthread_create",
	       fz_dormant_why, fz_version, made, fz_plural(made), backends[fz_config.backend]);
}

static void fill_host(void)
{
	fz_host = (struct fz_host){
		.thread_create = fz_host_thread_create,
		.threads_begin = fz_host_threads_begin,
		.fork_notice = fz_fork_notice,
		.is_in_child = fz_redirect_in_child,
		.needs_no_turn = fz_modules_locked,
		.threads_end = fz_host_threads_end,
		.run_thread = fz_host_run_thread,
		.release_thread_state = fz_thread_end_release,
		.reset_thread_state = fz_host_reset_thread_state,
		.test_cancel = test_cancel,
		.name_kernel_thread = fz_host_name_kernel_thread,
		.clock_gettime = fz_real.clock_gettime,
		.error_name = error_name,
		.exit_process = exit_process,
		.signal_handler = fz_host_signal_handler,
		.call_handler = fz_host_call_handler,
		.last_words = fz_stats_last_words,
	};
}

static void prepare(const char *name, char **envp)
{
	bool dormant = false;
	const char *why, *watcher;
	bool known, watched;

	launched = started_by_launcher(envp, &dormant);
	fz_real_bind();
	fz_config_read(envp);
	fz_fault_init(fz_variable(envp, "FZ_FAULTS"));
	fz_loader_init();
	fz_exclude_init(fz_config.native_threads);
	if (!fz_config.children)
		fz_children_without_us(envp);
	if (fz_config.stats)
		fz_stats_start(name, fz_config.stats);
	atomic_store_explicit(&fz_features_without, fz_config.without, memory_order_relaxed);
	fz_switch_refused = switch_refused;
	fz_arch_init(fz_feature_allowed(FZ_FEATURE_FSGSBASE) ? getauxval(AT_HWCAP2) : 0);
	fill_host();
	why = "this libc lacks functions";
	known = !fz_real_missing && fz_libc_check(&why) && fz_tls_init(&why);
	/*
	 * Register the handlers in any case: if the runtime cannot be started later, threads are native,
	 * but the library's locks stay in use.
	 */
	fz_fork_handlers_register();
	if (fz_config.disable || dormant)
		strcpy(fz_dormant_why, fz_config.disable ?
		       "switched off (FIBERIZE_DISABLE or /etc/fiberize/disable)" :
		       "only programs that it starts may have fibers");
	fz_verbose = fz_config.verbose;
	if (fz_verbose)
		say_loaded(name);
	watched = fz_watched_from_inside(envp, &watcher);
	if (fz_stats_are_printed() && !dormant && !watched)
		fz_stats_watch_signals();
	if (fz_config.disable || dormant) {
		native = fz_locks_are_libcs = true;
	} else if (!known || watched) {
		fz_locks_are_libcs = true;
		fz_stay_native(known ? watcher : why, 0);
	} else {
		fz_fdtab_init();
		fz_filter_init();
		fz_hints_init();
		if (fz_config.deadlock)
			fz_deadlock_report();
	}
}

/*
 * The loader calls this constructor. libfiberize-preload.so calls it earlier if the constructor of
 * libfiberize-preload.so is the first one of the process (preload/stub).
 */
__attribute__((constructor, visibility("default"))) void fiberize_start(int argc, char **argv,
								 char **envp)
{
	static bool started;

	if (started)
		return;
	started = true;
	prepare(argc > 0 ? argv[0] : NULL, envp);
	/* The program's first dlerror() must not report the look-ups of this constructor. */
	dlerror();
}
