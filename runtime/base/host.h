/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_BASE_HOST_H
#define FZ_RUNTIME_BASE_HOST_H

/*
 * runtime/base/host.h - what the runtime needs of libc, given to it by whoever sits
 * above: preload/ with libc's real functions, a unit test with the plain ones.
 */

#include <stdbool.h>
#include <stddef.h>

struct timespec;

struct fz_host {
	/*
	 * A detached kernel thread with libc's structures, all signals blocked
	 * from its first instruction.  stack NULL: libc's choice of stack.
	 * Returns 0 or -errno.
	 */
	int (*thread_create)(void *stack, size_t size, void *(*fn)(void *), void *arg);

	/*
	 * Call start(arg), then thread_local destructors, then those of pthread keys;
	 * pthread_exit and cancellation from any of them go on with the next.  *result
	 * is what start returned, PTHREAD_CANCELED, or what pthread_exit has stored.
	 */
	void (*run_thread)(void *(*start)(void *), void *arg, void **result);

	/* Initial values for thread-local variables, errno, locale. */
	void (*reset_thread_state)(void);

	/* Act on a cancellation request: does not return if there is one. */
	void (*test_cancel)(void);

	/* libc's own, which asks no kernel. */
	int (*clock_gettime)(int clock, struct timespec *ret);

	/* Is malloc or calloc the program's, or that of a library other than libc? */
	bool has_own_allocator;

	/* exit(status), atexit handlers and all. */
	void (*exit_process)(int status);

	/*
	 * Call the handler of sig on this thread, in user code, without the kernel's
	 * help: it has no room left to queue the signal.
	 */
	void (*call_handler)(int sig, void *info);

	/* The handler that the kernel calls: fz_signal_arrived(), with errno kept. */
	void (*signal_handler)(int sig, void *info, void *ucontext);
};

extern struct fz_host fz_host;

#endif
