/* SPDX-License-Identifier: MIT */
#include "runtime_setup.h"

#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <time.h>
#include <unistd.h>

#include "runtime/io/fdtab.h"
#include "runtime/base/host.h"
#include "runtime/io/op.h"
#include "runtime/sched/park.h"

_Atomic unsigned setup_resets, setup_destructor_runs, setup_cancels;

static _Noreturn void give_up(const char *what, int err)
{
	fprintf(stderr, "test set-up: %s: %s\n", what, strerror(err));
	abort();
}

static int create_with_mask(pthread_t *thread, const pthread_attr_t *attr,
			    void *(*fn)(void *), void *arg)
{
	sigset_t all, old;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(thread, attr, fn, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return err;
}

static int host_thread_create(void *stack, size_t size, void *(*fn)(void *), void *arg,
			      unsigned long *ret_handle)
{
	pthread_attr_t attr;
	pthread_t thread;
	int err = 0;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (stack)
		err = pthread_attr_setstack(&attr, stack, size);
	if (!err)
		err = create_with_mask(&thread, &attr, fn, arg);
	pthread_attr_destroy(&attr);
	if (!err && ret_handle)
		*ret_handle = thread;
	return -err;
}

static void host_run_thread(void *(*start)(void *), void *arg, void **result)
{
	*result = start(arg);
	COUNT(setup_destructor_runs);
}

static void host_reset_thread_state(void)
{
	COUNT(setup_resets);
	errno = 0;
}

static void host_release_thread_state(void)
{
}

static uint64_t host_threads_begin(void)
{
	sigset_t all, old;
	uint64_t mask;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	memcpy(&mask, &old, sizeof(mask));
	return mask;
}

static void host_threads_end(uint64_t mask)
{
	sigset_t old;

	sigemptyset(&old);
	memcpy(&old, &mask, sizeof(mask));
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static void host_test_cancel(void)
{
	COUNT(setup_cancels);
}

static const char *host_error_name(int error)
{
	return strerrorname_np(error);
}

static void host_exit_process(int status)
{
	exit(status);
}

static intptr_t field(const char *symbol)
{
	const uint32_t *f = dlsym(RTLD_DEFAULT, symbol);

	if (!f || f[0] != 32 || f[1] != 1)
		give_up(symbol, ENOSYS);
	return (intptr_t)f[2];
}

void setup_layout(void)
{
	fz_fault_init(getenv("FZ_FAULTS"));
	fz_arch_init(getauxval(AT_HWCAP2));
	fz_host = (struct fz_host){
		.clock_gettime = clock_gettime,
		.thread_create = host_thread_create,
		.run_thread = host_run_thread,
		.release_thread_state = host_release_thread_state,
		.threads_begin = host_threads_begin,
		.threads_end = host_threads_end,
		.reset_thread_state = host_reset_thread_state,
		.test_cancel = host_test_cancel,
		.error_name = host_error_name,
		.exit_process = host_exit_process,
	};
	fz_layout.record = (intptr_t)fz_self() - (intptr_t)fz_tcb_get();
	fz_layout.handle = (intptr_t)pthread_self() - (intptr_t)fz_tcb_get();
	fz_layout.tid = field("_thread_db_pthread_tid") + fz_layout.handle;
	fz_layout.cancelhandling = field("_thread_db_pthread_cancelhandling") + fz_layout.handle;
	fz_fdtab_init();
}

/* As the whole program: tests/run.sh runs the same tests with either. */
static enum fz_backend_kind setup_backend(void)
{
	const char *wanted = getenv("FIBERIZE_BACKEND");

	if (!wanted)
		return FZ_BACKEND_RING;
	return strcmp(wanted, "epoll") ? FZ_BACKEND_AUTO : FZ_BACKEND_EPOLL;
}

void setup_start_on(unsigned processors, enum fz_backend_kind backend)
{
	const char *why = "";
	int err;

	setup_layout();
	err = fz_sched_start(processors, backend, &why);
	if (err)
		give_up(why, -err);
}

void setup_start(unsigned processors)
{
	setup_start_on(processors, setup_backend());
}

struct fz_fiber *spawn_with(void *(*fn)(void *), void *arg, size_t stack, bool detached)
{
	/* Some CPUs' smallest stack is larger than what most tests need. */
	size_t least = (size_t)sysconf(_SC_THREAD_STACK_MIN);
	struct fz_birth birth = {
		.start = fn, .arg = arg, .stack_size = stack > least ? stack : least,
		.guard_size = 4096,
		.mask = fz_self()->mask, .detached = detached,
	};
	unsigned long handle;
	int err = fz_fiber_create(&birth, &handle);

	if (err)
		give_up("fz_fiber_create", -err);
	return fz_fiber_of_handle(handle);
}

struct fz_fiber *spawn(void *(*fn)(void *), void *arg)
{
	return spawn_with(fn, arg, 256 * 1024, false);
}

void *join(struct fz_fiber *fiber)
{
	void *result = NULL;
	int err = fz_fiber_join(fiber, FZ_FOREVER, &result);

	if (err)
		give_up("fz_fiber_join", -err);
	return result;
}

pthread_t native(void *(*fn)(void *), void *arg)
{
	pthread_t thread;
	int err = create_with_mask(&thread, NULL, fn, arg);

	if (err)
		give_up("pthread_create", err);
	return thread;
}

fz_nsec now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (fz_nsec)ts.tv_sec * FZ_SEC + (fz_nsec)ts.tv_nsec;
}

void nap(fz_nsec ns)
{
	struct fz_fiber *self = fz_self();
	struct timespec ts = { .tv_sec = (time_t)(ns / FZ_SEC), .tv_nsec = (long)(ns % FZ_SEC) };

	if (self->kind == FZ_KIND_FIBER)
		fz_sleep(self, FZ_FOR_TIME, now_ns() + ns, 0);
	else
		nanosleep(&ts, NULL);
}

void yield_fiber(void)
{
	struct fz_fiber *self = fz_self();

	if (self->kind != FZ_KIND_FIBER) {
		sched_yield();
		return;
	}
	fz_enter_runtime(self);
	fz_sched_yield(self);
	fz_leave_runtime(self);
}

uint64_t random_next(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545f4914f6cdd1du;
}
