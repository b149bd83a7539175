/* SPDX-License-Identifier: MIT */
/* preload/thread/names.c - ids, names and attributes of a thread. */
#include "preload/gate.h"
#include "preload/thread/exclude.h"
#include "preload/thread/handle.h"
#include "runtime/fiber/stack.h"

FZ_EXPORT pid_t gettid(void)
{
	struct fz_fiber *self = fz_self();

	fz_enter(FZ_SYM_gettid);
	return fz_is_fiber(self) ? self->thread.tid : fz_real.gettid();
}

FZ_EXPORT int pthread_setname_np(pthread_t thread, const char *name)
{
	struct fz_fiber *fiber = fz_thread_fiber(thread);

	fz_enter(FZ_SYM_pthread_setname_np);
	if (!fiber)
		return fz_real.pthread_setname_np(thread, name);
	if (strlen(name) >= sizeof(fiber->thread.name))
		return ERANGE;
	strcpy(fiber->thread.name, name);
	if (fiber == fz_self())
		fz_exclude_by_name(fiber);
	/* The main thread's name is the process's, in ps and top. */
	return fiber->thread.is_main || fiber->kind == FZ_KIND_WIRED ? fz_real.pthread_setname_np(thread, name) : 0;
}

FZ_EXPORT int pthread_getname_np(pthread_t thread, char *name, size_t size)
{
	struct fz_fiber *fiber = fz_thread_fiber(thread);

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

	/* EINVAL: the kernel's CPU set is larger than `size`. */
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
	struct fz_fiber *fiber = fz_thread_fiber(thread);
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
	/*
	 * The whole stack, which may be larger than the program asked for, as with libc's stacks.
	 */
	fz_stack_bounds(fiber->mem.stack, fiber->mem.stack_size, &bottom, &size);
	pthread_attr_setstack(attr, bottom, size);
	/* libc rounds up, too. */
	pthread_attr_setguardsize(attr, FZ_ROUND_UP(fiber->mem.asked_guard,
						    (size_t)getpagesize()));
	if (life & FZ_LIFE_DETACHED)
		pthread_attr_setdetachstate(attr, PTHREAD_CREATE_DETACHED);
	err = add_affinity(thread, attr);
	if (err)
		pthread_attr_destroy(attr);
	return err;
}
