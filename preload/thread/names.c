/* SPDX-License-Identifier: MIT */
/* preload/thread/names.c - ids, names and attributes of a thread. */
#include "preload/thread/names.h"

#include <sys/syscall.h>

#include "preload/gate.h"
#include "preload/thread/exclude.h"
#include "preload/thread/handle.h"
#include "runtime/fiber/stack.h"
#include "runtime/backend/filter.h"

FZ_EXPORT pid_t gettid(void)
{
	struct fz_fiber *self = fz_self();

	fz_enter(FZ_SYM_gettid);
	return fz_is_fiber(self) ? self->thread.tid : fz_real.gettid();
}

/*
 * Is the fiber the caller and the main thread, and does it run on the process's first kernel thread?
 * ps and top show the name of the first kernel thread as the name of the process; but the main thread
 * may run on another kernel thread.
 */
static bool is_on_first(const struct fz_fiber *fiber)
{
	return fiber->thread.is_main && fiber == fz_self() && fz_sys_gettid() == fz_sys_getpid();
}

/* Read or write the name of the process. Returns the number of bytes, or -errno. */
static long process_name(long number, int flags, char *name, size_t n)
{
	long fd = fz_syscall4(SYS_openat, AT_FDCWD, (long)"/proc/self/comm", flags | O_CLOEXEC, 0);
	long ret = fd;

	if (fd >= 0) {
		ret = fz_syscall3(number, fd, (long)name, (long)n);
		fz_syscall1(SYS_close, fd);
	}
	return ret;
}

static long name_of_kernel_thread(int option, char *name)
{
	return fz_syscall5(SYS_prctl, option, (long)name, 0, 0, 0);
}

void fz_host_name_kernel_thread(const char *name)
{
	/* relaxed: if the program installs a filter at this moment, this call may as well have come before it. */
	if (!atomic_load_explicit(&fz_filter_is_programs, memory_order_relaxed))
		fz_syscall2(SYS_prctl, PR_SET_NAME, (long)name);
}

void fz_name_set(struct fz_fiber *fiber, const char *name)
{
	char copy[FZ_NAME_SIZE] = "";

	strncpy(copy, name, sizeof(copy) - 1);
	memcpy(fiber->thread.name, copy, sizeof(copy));
	if (fiber == fz_self())
		fz_exclude_by_name(fiber);
	if (fiber->thread.is_main && !is_on_first(fiber))
		process_name(SYS_write, O_WRONLY, copy, strlen(copy));
	if (fiber == fz_self() && (fiber->kind == FZ_KIND_WIRED || is_on_first(fiber)))
		name_of_kernel_thread(PR_SET_NAME, copy);
	else if (fiber->kind == FZ_KIND_WIRED)
		fz_real.pthread_setname_np(fz_tcb_of(fiber) + (uintptr_t)fz_layout.handle, copy);
}

void fz_name_get(struct fz_fiber *fiber, char ret_name[FZ_NAME_SIZE])
{
	char name[FZ_NAME_SIZE] = "";
	long n = 0;

	if (fiber->thread.is_main && !is_on_first(fiber))
		n = process_name(SYS_read, O_RDONLY, name, sizeof(name));
	else if (fiber == fz_self() && (fiber->kind == FZ_KIND_WIRED || is_on_first(fiber)))
		n = !name_of_kernel_thread(PR_GET_NAME, name);
	else if (fiber->kind == FZ_KIND_WIRED)
		n = !fz_real.pthread_getname_np(fz_tcb_of(fiber) + (uintptr_t)fz_layout.handle,
						name, sizeof(name));
	/* /proc/self/comm ends with a newline. */
	name[strcspn(name, "\n")] = 0;
	memcpy(ret_name, n > 0 ? name : fiber->thread.name, sizeof(name));
}

FZ_EXPORT int pthread_setname_np(pthread_t thread, const char *name)
{
	struct fz_fiber *fiber = fz_thread_fiber(thread);

	fz_enter(FZ_SYM_pthread_setname_np);
	if (!fiber)
		return fz_real.pthread_setname_np(thread, name);
	if (strlen(name) >= sizeof(fiber->thread.name))
		return fz_leave_pthread(-ERANGE);
	fz_name_set(fiber, name);
	return 0;
}

FZ_EXPORT int pthread_getname_np(pthread_t thread, char *name, size_t size)
{
	struct fz_fiber *fiber = fz_thread_fiber(thread);

	fz_enter(FZ_SYM_pthread_getname_np);
	if (!fiber)
		return fz_real.pthread_getname_np(thread, name, size);
	if (size < FZ_NAME_SIZE)
		return fz_leave_pthread(-ERANGE);
	fz_name_get(fiber, name);
	return 0;
}

static int add_affinity(pthread_t thread, pthread_attr_t *attr)
{
	int err = EINVAL;

	/* EINVAL: the kernel's CPU set is larger than `size`. */
	for (size_t size = 16; err == EINVAL && size <= 1 << 20; size *= 2) {
		cpu_set_t *cpus = malloc(size);

		if (!cpus)
			return fz_leave_pthread(-ENOMEM);
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
	 * Report the whole stack, as libc does; it may be larger than the program asked for.
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
