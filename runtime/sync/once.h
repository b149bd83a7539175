/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SYNC_ONCE_H
#define FZ_RUNTIME_SYNC_ONCE_H

/*
 * runtime/sync/once.h - the word of a pthread_once_t, with glibc's meaning: 0 to be
 * done, 2 done, 1 + generation somebody is at it.  A fork's child has another
 * generation than its parent had when the thread was at it that the child lacks.
 */

#include "runtime/fiber/fiber.h"

struct fz_once {
	_Atomic uint32_t word;
};

enum {
	FZ_ONCE_IN_PROGRESS = 1,
	FZ_ONCE_DONE = 2,
	FZ_ONCE_GENERATION = 4,		/* the step from one to the next */
};

static inline bool fz_once_is_done(const struct fz_once *o)
{
	/* acquire: pairs with fz_once_end(). */
	return atomic_load_explicit(&o->word, memory_order_acquire) & FZ_ONCE_DONE;
}

/* Any thread; may park.  True: the caller is to do it, and then to call end. */
bool fz_once_begin(struct fz_once *o);

/* done false: it was left by an exception or cancellation; the next may try. */
void fz_once_end(struct fz_once *o, bool done);

void fz_once_after_fork(void);

#endif
