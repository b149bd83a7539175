/* SPDX-License-Identifier: MIT */
/*
 * preload/thread/create.c - pthread_create makes a fiber, unless the program asks for something
 * that only a kernel thread has: a scheduling policy, an affinity, or a stack of its own.
 */
#include "preload/config.h"
#include "preload/gate.h"
#include "preload/init.h"
#include "preload/thread/exclude.h"
#include "preload/thread/names.h"
#include "preload/thread/schedule.h"
#include "preload/thread/tls.h"
#include "runtime/base/die.h"
#include "runtime/base/role.h"
#include "runtime/fiber/fiber.h"
#include "runtime/fiber/parent.h"
#include "runtime/fiber/wire.h"
#include "runtime/sync/priority.h"

static bool wants_policy(const pthread_attr_t *attr)
{
	struct sched_param param;
	int inherit, policy;

	pthread_attr_getinheritsched(attr, &inherit);
	if (inherit != PTHREAD_EXPLICIT_SCHED)
		return false;
	pthread_attr_getschedpolicy(attr, &policy);
	pthread_attr_getschedparam(attr, &param);
	if (param.sched_priority)
		fz_priority_heed();
	/*
	 * A new thread inherits its creator's policy. Any other policy needs a kernel thread; the kernel
	 * then refuses a priority that the policy does not have.
	 */
	return FZ_POLICY(policy, param.sched_priority) != fz_schedule_policy_of(0);
}

static bool wants_affinity(const pthread_attr_t *attr)
{
	cpu_set_t cpus, all;

	/* If attr has no affinity, all bits of the answer are set. */
	memset(&all, 0xff, sizeof(all));
	return pthread_attr_getaffinity_np(attr, sizeof(cpus), &cpus) != 0 ||
	       !CPU_EQUAL(&cpus, &all);
}

static bool wants_stack(const pthread_attr_t *attr)
{
	void *stack;
	size_t size;

	pthread_attr_getstack(attr, &stack, &size);
	return (uintptr_t)stack + size != 0 && stack != NULL &&
	       (uintptr_t)stack < UINTPTR_MAX - size;
}

/* Does attr ask for state in the kernel, which threads made by the new thread inherit? */
static bool wants_state(const pthread_attr_t *attr)
{
	return wants_policy(attr) || wants_affinity(attr);
}

static bool wants_kernel_thread(const pthread_attr_t *attr)
{
	return wants_state(attr) || wants_stack(attr);
}

/* What native_thread() needs. counted: the thread is counted, since the last thread to end ends the process. */
struct native_start {
	void *(*start)(void *);
	void *arg;
	bool counted;
	bool owns_kernel_state;
	bool owns_files;
	const char *why;
	char name[FZ_NAME_SIZE];	/* the creator's, if its kernel thread has another name; or empty */
};

static void *native_thread(void *arg)
{
	struct native_start order = *(struct native_start *)arg;
	struct fz_fiber *self = fz_self();

	free(arg);
	self->thread.owns_kernel_state = order.owns_kernel_state;
	self->thread.owns_files = order.owns_files;
	fz_role_set(fz_self_tid(), FZ_ROLE_NATIVE, order.why, self);
	if (*order.name)
		fz_host_name_kernel_thread(order.name);
	/* This runs the destructors, too, while the thread still counts. */
	fz_host_run_thread(order.start, order.arg, &self->thread.result);
	/* True in the child of a fork by this thread, if this thread has made the first fiber there. */
	if (self->thread.is_main)
		fz_fiber_main_ended();
	fz_parent_ends(self);
	fz_role_end(fz_self_tid());
	if (order.counted)
		fz_fiber_native_ended();
	return self->thread.result;
}

static int create_native(pthread_t *thread, const pthread_attr_t *attr,
			 void *(*start)(void *), void *arg, const char *why)
{
	/* Count the thread unless this process will never have fibers. */
	bool counted = !fz_stays_native();
	bool owns = fz_self()->thread.owns_kernel_state || (attr && wants_state(attr));
	struct fz_fiber *self = fz_self();
	struct native_start *order;
	int err;

	if (!counted && !owns)
		return fz_real.pthread_create(thread, attr, start, arg);
	order = malloc(sizeof(*order));
	if (!order)
		return fz_leave_pthread(-EAGAIN);
	*order = (struct native_start){ start, arg, counted, owns, self->thread.owns_files, why, "" };
	if (self->kind == FZ_KIND_FIBER)
		memcpy(order->name, self->thread.name, sizeof(order->name));
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

/* Does the sum of stack and guard overflow? libc makes the same check. */
static bool is_too_large(const struct fz_birth *birth)
{
	const size_t alignment = 64, guard = FZ_ROUND_UP(birth->guard_size, (size_t)4096);

	return guard < birth->guard_size || (birth->stack_size & ~(alignment - 1)) + guard < guard;
}

/* The mask of the calling thread. */
static uint64_t mask_of(struct fz_fiber *self)
{
	uint64_t mask;

	if (self->kind == FZ_KIND_FIBER)
		return self->mask;
	fz_sys_sigmask(SIG_BLOCK, NULL, &mask);
	return mask;
}

/* Has the program set defaults for threads without attributes? */
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

/* Why a thread stays a kernel thread; each is said once. */
enum told { BY_CREATOR, BY_ATTRIBUTES, BY_NOT_MAIN };

static int create_told(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *),
		       void *arg, enum told why)
{
	static const char *const texts[] = {
		[BY_CREATOR] = "its creator has state that the kernel keeps for each thread",
		[BY_ATTRIBUTES] = "its attributes ask for CPUs, a policy or a stack of its own",
		[BY_NOT_MAIN] = "only the main thread can make the first fiber",
	};
	static _Atomic uint32_t told;
	const uint32_t bit = 1u << why;

	/* relaxed: only what is said depends on it. */
	if (fz_verbose && !(atomic_fetch_or_explicit(&told, bit, memory_order_relaxed) & bit))
		fz_say("a new thread is a kernel thread, not a fiber: %s (said once for each reason)", texts[why]);
	return create_native(thread, attr, start, arg, texts[why]);
}

static int create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *),
		  void *arg, const void *caller)
{
	struct fz_birth birth = { .start = start, .arg = arg };
	struct fz_fiber *self;
	pthread_attr_t defaults;

	if (fz_excluded_caller(caller)) {
		/* The creator will wait for these threads as they wait: by spinning or by inline futex calls. */
		self = fz_self();
		if (self->kind == FZ_KIND_FIBER)
			fz_fiber_wire_for(self, "it makes threads that stay kernel threads");
		return create_native(thread, attr, start, arg, "--native-threads has its creator");
	}
	/* A new thread inherits its creator's state in the kernel. */
	if (fz_self()->thread.owns_kernel_state)
		return create_told(thread, attr, start, arg, BY_CREATOR);
	if (attr && wants_kernel_thread(attr))
		return create_told(thread, attr, start, arg, BY_ATTRIBUTES);
	if (!fz_runtime_ready())
		return fz_stays_native() ?
			       create_native(thread, attr, start, arg, NULL) :
			       create_told(thread, attr, start, arg, BY_NOT_MAIN);
	self = fz_self();
	if (self->kind == FZ_KIND_CARRIER || self->kind == FZ_KIND_HELPER)
		return create_native(thread, attr, start, arg, "a thread of the library makes it");
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
	if (FZ_UNLIKELY(is_too_large(&birth)))
		return fz_leave_pthread(-EINVAL);
	return fz_leave_pthread(fz_fiber_create(&birth, thread));
}

FZ_EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attr,
			     void *(*start)(void *), void *arg)
{
	const void *caller = __builtin_return_address(0);
	pthread_attr_t defaults;
	int err;

	fz_enter(FZ_SYM_pthread_create);
	/*
	 * relaxed: pthread_setattr_default_np() and pthread_create() at the same time have no
	 * order.
	 */
	if (attr || FZ_LIKELY(!atomic_load_explicit(&defaults_set, memory_order_relaxed)))
		return create(thread, attr, start, arg, caller);
	err = pthread_getattr_default_np(&defaults);
	if (err)
		return err;
	err = create(thread, &defaults, start, arg, caller);
	pthread_attr_destroy(&defaults);
	return err;
}
