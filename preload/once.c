/* SPDX-License-Identifier: MIT */
/*
 * preload/once.c - pthread_once: who comes while somebody is at it parks.  An
 * exception or a cancellation in the routine passes through here, and the next one
 * in line tries again.
 */
#include "preload/gate.h"
#include "runtime/once.h"

_Static_assert(sizeof(struct fz_once) == sizeof(pthread_once_t), "it is it");

static void abandon(struct fz_once **unfinished)
{
	if (*unfinished)
		fz_once_end(*unfinished, false);
}

FZ_EXPORT int pthread_once(pthread_once_t *control, void (*routine)(void))
{
	struct fz_once *once = (struct fz_once *)(void *)control;

	if (FZ_LIKELY(fz_once_is_done(once)))
		return 0;
	fz_enter(FZ_SYM_pthread_once);
	if (fz_once_begin(once)) {
		__attribute__((cleanup(abandon))) struct fz_once *unfinished = once;

		routine();
		unfinished = NULL;
		fz_once_end(once, true);
	}
	return 0;
}
FZ_EXPORT_ALIAS(__pthread_once, pthread_once);
