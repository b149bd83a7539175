/* SPDX-License-Identifier: MIT */
/*
 * preload/sync/once.c - pthread_once: who comes while somebody is at it parks.  An
 * exception or a cancellation in the routine passes through here, and the next one
 * in line tries again.
 */
#include "preload/gate.h"
#include "runtime/sync/once.h"

_Static_assert(sizeof(struct fz_once) == sizeof(pthread_once_t), "it is it");

/* libc's, for frames that cannot be unwound; it lists them itself. */
extern void _pthread_cleanup_push(struct _pthread_cleanup_buffer *buffer,
				  void (*routine)(void *), void *arg);
extern void _pthread_cleanup_pop(struct _pthread_cleanup_buffer *buffer, int execute);

/* On the stack of who is at it. */
struct attempt {
	struct _pthread_cleanup_buffer listed;
	struct fz_once *once;		/* NULL: over, one way or the other */
};

static void end(struct attempt *a, bool done)
{
	struct fz_once *once = a->once;

	a->once = NULL;
	_pthread_cleanup_pop(&a->listed, 0);
	fz_once_end(once, done);
}

static void abandon(struct attempt *a)
{
	if (a->once)
		end(a, false);
}

static void abandon_listed(void *a)
{
	abandon(a);
}

/*
 * Registered twice: an exception, and a cancellation if it can, comes by unwinding.
 * Where the routine has no tables for that libc jumps over us to the next handler
 * of the program's, and calls what is listed on the way (glibc's tst-oncey3).
 */
static void attempt(struct fz_once *once, void (*routine)(void))
{
	__attribute__((cleanup(abandon))) struct attempt a = { .once = once };

	_pthread_cleanup_push(&a.listed, abandon_listed, &a);
	routine();
	end(&a, true);
}

FZ_EXPORT int pthread_once(pthread_once_t *control, void (*routine)(void))
{
	struct fz_once *once = (struct fz_once *)(void *)control;

	if (FZ_LIKELY(fz_once_is_done(once)))
		return 0;
	fz_enter(FZ_SYM_pthread_once);
	if (FZ_UNLIKELY(fz_locks_are_libcs))
		return fz_real.pthread_once(control, routine);
	if (fz_once_begin(once))
		attempt(once, routine);
	return 0;
}
FZ_EXPORT_ALIAS(__pthread_once, pthread_once);
