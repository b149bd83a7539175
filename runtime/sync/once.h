/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SYNC_ONCE_H
#define FZ_RUNTIME_SYNC_ONCE_H

/*
 * runtime/sync/once.h - the word of a pthread_once_t, with glibc's values: 0 is not done, 2 is done,
 * 1 + generation is in progress.  A fork's child has a new generation.  So a word that another thread
 * of the parent had in progress counts as not done in the child, where that thread does not exist.
 */

#include "runtime/fiber/fiber.h"

struct fz_once {
	_Atomic uint32_t word;
};

enum {
	FZ_ONCE_IN_PROGRESS = 1,
	FZ_ONCE_DONE = 2,
	FZ_ONCE_GENERATION = 4,		/* from one generation to the next */
};

static inline bool fz_once_is_done(const struct fz_once *o)
{
	/* acquire: pairs with fz_once_end(). */
	return atomic_load_explicit(&o->word, memory_order_acquire) & FZ_ONCE_DONE;
}

/*
 * Any thread; may park.  Returns true if the caller must run the routine and then call
 * fz_once_end().
 */
bool fz_once_begin(struct fz_once *o);

/*
 * End the routine.  done false: an exception or cancellation has left it, and the next caller runs
 * it.
 */
void fz_once_end(struct fz_once *o, bool done);

void fz_once_after_fork(void);

#endif
