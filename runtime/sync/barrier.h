/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SYNC_BARRIER_H
#define FZ_RUNTIME_SYNC_BARRIER_H

/*
 * runtime/sync/barrier.h - private barriers in the storage of pthread_barrier_t, as
 * pthread_barrier_init leaves it: count and shared set, the rest 0.
 */

#include "runtime/fiber/fiber.h"

struct fz_barrier {
	union {
		_Atomic uint64_t both;
		struct {	/* little endian */
			_Atomic uint32_t arrived;	/* in this round: 0 .. count - 1 */
			_Atomic uint32_t round;
		};
	};
	uint32_t count;		/* const */
	int shared;		/* const; 0 if private */
	/* How many have left, times two; 1: somebody waits for the last of them. */
	_Atomic uint32_t left;
};

/* Any thread; may park.  Returns true in the last one of a round. */
bool fz_barrier_wait(struct fz_barrier *b);

/* Waits until all of the last round have left.  May park. */
void fz_barrier_destroy(struct fz_barrier *b);

#endif
