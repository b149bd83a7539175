/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_BASE_HOST_H
#define FZ_RUNTIME_BASE_HOST_H

/*
 * runtime/base/host.h - what the runtime needs of libc.  Its owner fills the table in: preload/
 * with libc's real functions, a unit test with the plain ones.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct timespec;

struct fz_host {
	/*
	 * Make a detached kernel thread with libc's structures, all signals blocked
	 * from its first instruction.  stack NULL: libc chooses the stack.
	 * Returns 0 or -errno.  *ret_handle, unless ret_handle is NULL, is its pthread_t.  If the
	 * caller is a fiber, it may park first; then it blocks its carrier, as in a brief call.
	 */
	int (*thread_create)(void *stack, size_t size, void *(*fn)(void *), void *arg,
			     unsigned long *ret_handle);

	/*
	 * To be called before and after libc makes or ends a thread, on the kernel thread that
	 * waits for that: libc then holds locks that carriers need.  In between all signals are
	 * blocked, and no fork begins, because its child would find these locks held for ever.
	 * threads_end takes what threads_begin returned.  A fiber may park in threads_begin; from
	 * then on it is in a brief call.
	 */
	uint64_t (*threads_begin)(void);
	void (*threads_end)(uint64_t mask);

	/*
	 * Does the caller hold the lock that thread_create takes?  Then it must not wait for a
	 * carrier to be made.  May be NULL.
	 */
	bool (*needs_no_turn)(void);

	/*
	 * Call start(arg), then thread_local destructors, then destructors of pthread keys.
	 * pthread_exit or cancellation in one of these steps goes on with the next step.
	 * *result is what start returned, PTHREAD_CANCELED, or the argument of pthread_exit.
	 */
	void (*run_thread)(void *(*start)(void *), void *arg, void **result);

	/* Free what libc keeps for a thread (malloc's cache ...); the last step of a life that ends as a fiber. */
	void (*release_thread_state)(void);

	/* Set thread-local variables, errno and the locale to their initial values. */
	void (*reset_thread_state)(void);

	/* Act on a cancellation request: does not return if there is one. */
	void (*test_cancel)(void);

	/*
	 * Name the calling kernel thread, for ps -T, top -H and gdb, unless the program has
	 * installed a filter, which might end the process for it. May be NULL.
	 */
	void (*name_kernel_thread)(const char *name);

	/* libc's clock_gettime(), which answers without a system call. */
	int (*clock_gettime)(int clock, struct timespec *ret);

	/* Does malloc or calloc come from the program or from a library other than libc? */
	bool has_own_allocator;

	/* Called before a signal's default action ends the process. Any context. May be NULL. */
	void (*last_words)(void);

	/* The name of an errno, for messages; never NULL.  Any context. */
	const char *(*error_name)(int error);

	/*
	 * Called by a thread that is in fork(): if it runs in the child, forget the parent's threads,
	 * once.  NULL before the constructor.
	 */
	void (*fork_notice)(void);

	/*
	 * Does the caller run in a child process, with the runtime and the fiber's record of its parent?
	 * Makes a system call.  May be NULL.
	 */
	bool (*is_in_child)(void);

	/* exit(status), which runs atexit handlers. */
	void (*exit_process)(int status);

	/*
	 * Call the program's handler of sig on this thread, in user code; for when the kernel has no room
	 * left to queue the signal.
	 */
	void (*call_handler)(int sig, void *info);

	/* The handler that the kernel calls: it calls fz_signal_arrived() and preserves errno. */
	void (*signal_handler)(int sig, void *info, void *ucontext);
};

extern struct fz_host fz_host;

#endif
