/* SPDX-License-Identifier: MIT */
/*
 * preload/sync/once.c - pthread_once: a caller parks while another thread runs the routine. An
 * exception or a cancellation in the routine unwinds through this file, and the next caller
 * runs the routine again.
 */
#include "preload/gate.h"
#include "runtime/sync/once.h"

_Static_assert(sizeof(struct fz_once) == sizeof(pthread_once_t), "it is it");

/* libc's functions for frames that cannot be unwound; libc keeps the list of these buffers. */
extern void _pthread_cleanup_push(struct _pthread_cleanup_buffer *buffer,
				  void (*routine)(void *), void *arg);
extern void _pthread_cleanup_pop(struct _pthread_cleanup_buffer *buffer, int execute);

/* One run of the routine; on the stack of the thread that runs it. */
struct attempt {
	struct _pthread_cleanup_buffer listed;
	struct fz_once *once;		/* NULL once the run is over, done or abandoned */
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
 * The clean-up is registered twice. An exception, and a cancellation where possible, unwinds
 * through here and runs the cleanup attribute. Where the routine has no unwind tables, libc
 * jumps over this frame to the program's next handler, and on the way calls only what is on its
 * list (glibc's tst-oncey3).
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
