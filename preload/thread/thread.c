/* SPDX-License-Identifier: MIT */
/*
 * preload/thread/thread.c - pthread_create makes a fiber, unless the program asks for
 * what only a kernel thread has: a scheduling policy, an affinity, a stack of
 * its own.  join, detach and the rest tell by the handle which of both it is.
 */
#include "preload/config.h"
#include "preload/gate.h"
#include "preload/init.h"
#include "preload/process/fork_gate.h"
#include "preload/thread/exclude.h"
#include "preload/thread/kernel_state.h"
#include "preload/thread/tls.h"
#include "preload/time.h"
#include "runtime/base/die.h"
#include "runtime/base/host.h"
#include "runtime/fiber/fiber.h"
#include "runtime/fiber/stack.h"
#include "runtime/sched/announce.h"
#include "runtime/sched/park.h"
#include "runtime/sched/sched.h"
#include "runtime/signal/signal.h"

#include <stdarg.h>
#include <sys/prctl.h>

/* The fiber behind a handle, or NULL for a native thread. */
static struct fz_fiber *fiber_of(pthread_t thread)
{
	struct fz_fiber *f = fz_fiber_of_handle(thread);

	return fz_is_fiber(f) ? f : NULL;
}

/* ---- creation ----------------------------------------------------------- */

static bool wants_policy(const pthread_attr_t *attr)
{
	struct sched_param param;
	int inherit, policy;

	pthread_attr_getinheritsched(attr, &inherit);
	if (inherit != PTHREAD_EXPLICIT_SCHED)
		return false;
	pthread_attr_getschedpolicy(attr, &policy);
	pthread_attr_getschedparam(attr, &param);
	/* A priority that the policy does not have is the kernel's to refuse. */
	return policy != SCHED_OTHER || param.sched_priority != 0;
}

static bool wants_affinity(const pthread_attr_t *attr)
{
	cpu_set_t cpus;

	/* Without an affinity in it, all bits of the answer are set. */
	return pthread_attr_getaffinity_np(attr, sizeof(cpus), &cpus) != 0 ||
	       CPU_COUNT(&cpus) != CPU_SETSIZE;
}

static bool wants_stack(const pthread_attr_t *attr)
{
	void *stack;
	size_t size;

	pthread_attr_getstack(attr, &stack, &size);
	return (uintptr_t)stack + size != 0 && stack != NULL &&
	       (uintptr_t)stack < UINTPTR_MAX - size;
}

/* State of the kernel's, which the new thread's own threads inherit. */
static bool wants_state(const pthread_attr_t *attr)
{
	return wants_policy(attr) || wants_affinity(attr);
}

static bool wants_kernel_thread(const pthread_attr_t *attr)
{
	return wants_state(attr) || wants_stack(attr);
}

/* Native threads are counted: the last thread to leave ends the process. */
struct native_start {
	void *(*start)(void *);
	void *arg;
	bool counted;
	bool owns_kernel_state;
};

static void *native_thread(void *arg)
{
	struct native_start order = *(struct native_start *)arg;
	struct fz_fiber *self = fz_self();

	free(arg);
	self->thread.owns_kernel_state = order.owns_kernel_state;
	/* With its destructors, which are still the thread. */
	fz_host_run_thread(order.start, order.arg, &self->thread.result);
	/* It has forked, and in the child it was the first to make fibers. */
	if (self->thread.is_main)
		fz_fiber_main_ended();
	if (order.counted)
		fz_fiber_native_ended();
	return self->thread.result;
}

static int create_native(pthread_t *thread, const pthread_attr_t *attr,
			 void *(*start)(void *), void *arg)
{
	/* There may be fibers later, or none ever. */
	bool counted = !fz_stays_native();
	bool owns = fz_self()->thread.owns_kernel_state || (attr && wants_state(attr));
	struct native_start *order;
	int err;

	if (!counted && !owns)
		return fz_real.pthread_create(thread, attr, start, arg);
	order = malloc(sizeof(*order));
	if (!order)
		return EAGAIN;
	*order = (struct native_start){ start, arg, counted, owns };
	if (counted)
		fz_fiber_native_started();
	err = fz_real.pthread_create(thread, attr, native_thread, order);
	if (err) {
		free(order);
		if (counted)
			fz_fiber_native_ended();
	}
	return err;
}

static void describe(const pthread_attr_t *attr, struct fz_birth *birth)
{
	sigset_t mask;
	int state;

	pthread_attr_getstacksize(attr, &birth->stack_size);
	pthread_attr_getguardsize(attr, &birth->guard_size);
	pthread_attr_getdetachstate(attr, &state);
	birth->detached = state == PTHREAD_CREATE_DETACHED;
	if (pthread_attr_getsigmask_np(attr, &mask) == 0)
		memcpy(&birth->mask, &mask, sizeof(birth->mask));
}

/* Of the calling thread. */
static uint64_t mask_of(struct fz_fiber *self)
{
	uint64_t mask;

	if (self->kind == FZ_KIND_FIBER)
		return self->mask;
	fz_sys_sigmask(SIG_BLOCK, NULL, &mask);
	return mask;
}

/* The program's own defaults, for threads without attributes. */
static _Atomic bool defaults_set;

FZ_EXPORT int pthread_setattr_default_np(const pthread_attr_t *attr)
{
	int err;

	fz_enter(FZ_SYM_pthread_setattr_default_np);
	err = fz_real.pthread_setattr_default_np(attr);
	if (!err)
		atomic_store_explicit(&defaults_set, true, memory_order_relaxed);
	return err;
}

static int create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *),
		  void *arg, const void *caller)
{
	struct fz_birth birth = { .start = start, .arg = arg };
	struct fz_fiber *self;
	pthread_attr_t defaults;

	if (fz_excluded_caller(caller)) {
		/* It is going to wait with them as they do. */
		self = fz_self();
		if (self->kind == FZ_KIND_FIBER)
			fz_fiber_wire(self);
		return create_native(thread, attr, start, arg);
	}
	/* A new thread inherits what its creator has of the kernel. */
	if (fz_self()->thread.owns_kernel_state || (attr && wants_kernel_thread(attr)) ||
	    !fz_runtime_ready())
		return create_native(thread, attr, start, arg);
	self = fz_self();
	if (self->kind == FZ_KIND_CARRIER || self->kind == FZ_KIND_HELPER)
		return create_native(thread, attr, start, arg);
	birth.mask = mask_of(self);
	if (attr) {
		describe(attr, &birth);
	} else {
		pthread_attr_init(&defaults);
		describe(&defaults, &birth);
		pthread_attr_destroy(&defaults);
		birth.stack_size = fz_default_stack_size(birth.stack_size);
		birth.any_stack_size = !fz_config.stack_size;
	}
	return -fz_fiber_create(&birth, thread);
}

FZ_EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attr,
			     void *(*start)(void *), void *arg)
{
	const void *caller = __builtin_return_address(0);
	pthread_attr_t defaults;
	int err;

	fz_enter(FZ_SYM_pthread_create);
	/* relaxed: who sets the defaults while others create takes his chance. */
	if (attr || FZ_LIKELY(!atomic_load_explicit(&defaults_set, memory_order_relaxed)))
		return create(thread, attr, start, arg, caller);
	err = pthread_getattr_default_np(&defaults);
	if (err)
		return err;
	err = create(thread, &defaults, start, arg, caller);
	pthread_attr_destroy(&defaults);
	return err;
}

/* ---- the runtime's view of libc ----------------------------------------- */

extern void __pthread_register_cancel(__pthread_unwind_buf_t *buf);
extern void __pthread_unregister_cancel(__pthread_unwind_buf_t *buf);

/* Its kernel thread has the name of the carrier that it was. */
static void wire_if_excluded(struct fz_fiber *self)
{
	if (FZ_LIKELY(!fz_excluded_name(self->thread.name)))
		return;
	fz_fiber_wire(self);
	fz_real.prctl(PR_SET_NAME, self->thread.name, 0, 0, 0);
}

void fz_host_run_thread(void *(*start)(void *), void *arg, void **result)
{
	__pthread_unwind_buf_t here;
	void *volatile value = NULL;
	volatile bool returned = false;

	/* Its creator may have named it already. */
	wire_if_excluded(fz_self());
	/* What a cancelled thread leaves; pthread_exit and return overwrite it. */
	*result = PTHREAD_CANCELED;
	if (__sigsetjmp_cancel(here.__cancel_jmp_buf, 0) == 0) {
		__pthread_register_cancel(&here);
		fz_signal_life_begins(fz_self());
		value = start(arg);
		returned = true;
	} else {
		returned = false;
	}
	/* Left from a destructor, by cancellation too, the thread goes on with the rest. */
	fz_host_run_destructors();
	fz_signal_life_ends(fz_self());
	if (returned)
		*result = value;
	__pthread_unregister_cancel(&here);
}

int fz_host_thread_create(void *stack, size_t size, void *(*fn)(void *), void *arg)
{
	struct fz_fiber *self = fz_self();
	uint64_t all = FZ_SIGNALS_ALL, old;
	pthread_attr_t attr;
	pthread_t thread;
	int err;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	err = pthread_attr_setstack(&attr, stack, size);
	if (!err) {
		/* libc gives the new thread the mask of its creator. */
		fz_sys_sigmask(SIG_SETMASK, &all, &old);
		/* libc's locks in there are those that a new carrier needs. */
		self->call.blocks = true;
		fz_gate_enter(FZ_GATE_THREADS);
		err = fz_real.pthread_create(&thread, &attr, fn, arg);
		fz_gate_leave(FZ_GATE_THREADS);
		self->call.blocks = false;
		fz_sys_sigmask(SIG_SETMASK, &old, NULL);
	}
	pthread_attr_destroy(&attr);
	return -err;
}

/* main() runs in a frame of ours, to which pthread_exit from it unwinds. */
static int (*program_main)(int, char **, char **);

struct main_call {
	int argc;
	char **argv, **envp;
};

static void *call_main(void *arg)
{
	struct main_call *call = arg;

	exit(program_main(call->argc, call->argv, call->envp));
}

static int main_in_frame(int argc, char **argv, char **envp)
{
	struct main_call call = { argc, argv, envp };
	struct fz_fiber *self = fz_self();

	fz_host_run_thread(call_main, &call, &self->thread.result);
	/* It left by pthread_exit, or was cancelled. */
	if (fz_is_fiber(self))
		fz_fiber_main_ended();
	/* Whatever other threads there are, libc has made and counts. */
	fz_real.pthread_exit(self->thread.result);
	__builtin_unreachable();
}

FZ_EXPORT int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv,
				void (*init)(void), void (*fini)(void),
				void (*rtld_fini)(void), void *stack_end)
{
	fz_enter(FZ_SYM___libc_start_main);
	program_main = main;
	return fz_real.__libc_start_main(main_in_frame, argc, argv, init, fini, rtld_fini,
					 stack_end);
}

/* ---- joining and the like ----------------------------------------------- */

static int join_fiber(struct fz_fiber *fiber, fz_nsec deadline, void **result)
{
	int err;

	/* A thread that has ended is joined even by one that is cancelled: as in libc. */
	while ((err = fz_fiber_join(fiber, deadline, result)) == -ECANCELED)
		fz_host.test_cancel();
	return -err;
}

FZ_EXPORT int pthread_join(pthread_t thread, void **result)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_pthread_join);
	struct fz_fiber *fiber = fiber_of(thread);

	if (fiber)
		return join_fiber(fiber, FZ_FOREVER, result);
	if (self)
		fz_announce(self);
	return fz_real.pthread_join(thread, result);
}

FZ_EXPORT int pthread_tryjoin_np(pthread_t thread, void **result)
{
	struct fz_fiber *fiber = fiber_of(thread);

	fz_enter(FZ_SYM_pthread_tryjoin_np);
	return fiber ? join_fiber(fiber, 0, result) :
		       fz_real.pthread_tryjoin_np(thread, result);
}

static int join_until(struct fz_fiber *fiber, void **result, clockid_t clock,
		      const struct timespec *when)
{
	int err;

	if (!when)
		return join_fiber(fiber, FZ_FOREVER, result);
	if (!fz_timespec_valid(when))
		return EINVAL;
	do {
		err = join_fiber(fiber, when->tv_sec < 0 ? 1 : fz_deadline_at(clock, when),
				 result);
	} while (err == ETIMEDOUT && !fz_passed(clock, when));
	return err;
}

FZ_EXPORT int pthread_timedjoin_np(pthread_t thread, void **result, const struct timespec *when)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_pthread_timedjoin_np);
	struct fz_fiber *fiber = fiber_of(thread);

	if (fiber)
		return join_until(fiber, result, CLOCK_REALTIME, when);
	if (self)
		fz_announce(self);
	return fz_real.pthread_timedjoin_np(thread, result, when);
}

FZ_EXPORT int pthread_clockjoin_np(pthread_t thread, void **result, clockid_t clock,
				   const struct timespec *when)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_pthread_clockjoin_np);
	struct fz_fiber *fiber = fiber_of(thread);

	if (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC)
		return EINVAL;
	if (fiber)
		return join_until(fiber, result, clock, when);
	if (self)
		fz_announce(self);
	return fz_real.pthread_clockjoin_np(thread, result, clock, when);
}

FZ_EXPORT int pthread_detach(pthread_t thread)
{
	struct fz_fiber *fiber = fiber_of(thread);

	fz_enter(FZ_SYM_pthread_detach);
	return fiber ? -fz_fiber_detach(fiber) : fz_real.pthread_detach(thread);
}

FZ_EXPORT _Noreturn void pthread_exit(void *result)
{
	fz_enter(FZ_SYM_pthread_exit);
	fz_self()->thread.result = result;
	fz_real.pthread_exit(result);
	__builtin_unreachable();
}

/* ---- who am I ----------------------------------------------------------- */

FZ_EXPORT pid_t gettid(void)
{
	struct fz_fiber *self = fz_self();

	fz_enter(FZ_SYM_gettid);
	return fz_is_fiber(self) ? self->thread.tid : fz_real.gettid();
}

FZ_EXPORT int pthread_setname_np(pthread_t thread, const char *name)
{
	struct fz_fiber *fiber = fiber_of(thread);

	fz_enter(FZ_SYM_pthread_setname_np);
	if (!fiber)
		return fz_real.pthread_setname_np(thread, name);
	if (strlen(name) >= sizeof(fiber->thread.name))
		return ERANGE;
	strcpy(fiber->thread.name, name);
	if (fiber == fz_self())
		wire_if_excluded(fiber);
	/* The main thread's name is the process's, in ps and top. */
	return fiber->thread.is_main || fiber->kind == FZ_KIND_WIRED ? fz_real.pthread_setname_np(thread, name) : 0;
}

FZ_EXPORT int pthread_getname_np(pthread_t thread, char *name, size_t size)
{
	struct fz_fiber *fiber = fiber_of(thread);

	fz_enter(FZ_SYM_pthread_getname_np);
	if (!fiber)
		return fz_real.pthread_getname_np(thread, name, size);
	if (size < sizeof(fiber->thread.name))
		return ERANGE;
	strcpy(name, fiber->thread.name);
	return 0;
}

static int add_affinity(pthread_t thread, pthread_attr_t *attr)
{
	int err = EINVAL;

	/* EINVAL: the kernel knows of more CPUs than that. */
	for (size_t size = 16; err == EINVAL && size <= 1 << 20; size *= 2) {
		cpu_set_t *cpus = malloc(size);

		if (!cpus)
			return ENOMEM;
		err = pthread_getaffinity_np(thread, size, cpus);
		if (!err)
			err = pthread_attr_setaffinity_np(attr, size, cpus);
		free(cpus);
	}
	return err;
}

FZ_EXPORT int pthread_getattr_np(pthread_t thread, pthread_attr_t *attr)
{
	struct fz_fiber *fiber = fiber_of(thread);
	uint32_t life;
	void *bottom;
	size_t size;
	int err;

	fz_enter(FZ_SYM_pthread_getattr_np);
	/* libc finds the main thread's stack in /proc and its limits. */
	if (!fiber || fiber->thread.is_main)
		return fz_real.pthread_getattr_np(thread, attr);
	life = atomic_load_explicit(&fiber->thread.life, memory_order_relaxed);
	err = pthread_attr_init(attr);
	if (err)
		return err;
	/* All of it, which may be more than was asked for, as with libc's stacks. */
	fz_stack_bounds(fiber->mem.stack, fiber->mem.stack_size, &bottom, &size);
	pthread_attr_setstack(attr, bottom, size);
	pthread_attr_setguardsize(attr, fiber->mem.asked_guard);
	if (life & FZ_LIFE_DETACHED)
		pthread_attr_setdetachstate(attr, PTHREAD_CREATE_DETACHED);
	err = add_affinity(thread, attr);
	if (err)
		pthread_attr_destroy(attr);
	return err;
}

FZ_EXPORT int prctl(int option, ...)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_prctl);
	unsigned long args[4];
	va_list list;

	/* Four words, whatever their types: as in libc. */
	va_start(list, option);
	for (int i = 0; i < 4; i++)
		args[i] = va_arg(list, unsigned long);
	va_end(list);
	/* The name of a thread is the fiber's; the main thread's also the process's. */
	if (self && option == PR_GET_NAME && fz_sys_readable((void *)args[0]))
		return strcpy((char *)args[0], self->thread.name) ? 0 : -1;
	if (self && option == PR_SET_NAME && fz_sys_readable((void *)args[0])) {
		snprintf(self->thread.name, sizeof(self->thread.name), "%s", (char *)args[0]);
		wire_if_excluded(self);
		if (!self->thread.is_main && self->kind != FZ_KIND_WIRED)
			return 0;
	}
	if (fz_prctl_is_of_thread(option))
		fz_wire_for_state();
	return fz_real.prctl(option, args[0], args[1], args[2], args[3]);
}
