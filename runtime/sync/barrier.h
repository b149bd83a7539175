/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SYNC_BARRIER_H
#define FZ_RUNTIME_SYNC_BARRIER_H

/*
 * runtime/sync/barrier.h - private barriers in the storage of pthread_barrier_t.
 * pthread_barrier_init sets count and shared, and the rest to 0.
 */

#include "runtime/fiber/fiber.h"

struct fz_barrier {
	union {
		_Atomic uint64_t both;
		struct {	/* little endian */
			_Atomic uint32_t arrived;	/* threads in this round: 0 .. count - 1 */
			_Atomic uint32_t round;
		};
	};
	uint32_t count;		/* const */
	int shared;		/* const; 0 if private */
	/*
	 * Number of threads that have left fz_barrier_wait(), times two; plus 1 if fz_barrier_destroy()
	 * waits for the last one.
	 */
	_Atomic uint32_t left;
};

/* Any thread; may park.  Returns true in the last thread to arrive in a round. */
bool fz_barrier_wait(struct fz_barrier *b);

/* Wait until all threads of the last round have left b.  May park. */
void fz_barrier_destroy(struct fz_barrier *b);

#endif
