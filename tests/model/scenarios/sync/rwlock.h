/* SPDX-License-Identifier: MIT */
#ifndef FZ_MODEL_SCENARIOS_SYNC_RWLOCK_H
#define FZ_MODEL_SCENARIOS_SYNC_RWLOCK_H

/*
 * tests/model/scenarios/sync/rwlock.h - the sequential model of a rwlock: a number of readers, or one writer.
 */
#include "tests/model/scenario.h"

#include <asm/errno.h>

/* The kinds of operations; the argument of UNLOCK is what it unlocks, READ or WRITE. */
enum { READ, WRITE, UNLOCK };

/* *state: the readers; WRITTEN: a writer. */
static inline bool shared_or_alone(uint64_t *state, const struct operation *op)
{
	static const uint64_t WRITTEN = (uint64_t)1 << 32;

	/* It may time out at any time, and then it takes nothing. */
	if (op->kind != UNLOCK && op->result == -ETIMEDOUT)
		return true;
	if (op->result)
		return false;
	switch (op->kind) {
	case READ:
		return (*state)++ < WRITTEN;
	case WRITE:
		*state += WRITTEN;
		return *state == WRITTEN;
	default:
		if (op->arg == READ)
			return *state < WRITTEN && (*state)-- > 0;
		*state -= WRITTEN;
		return *state == 0;
	}
}

#endif
