/* SPDX-License-Identifier: MIT */
#ifndef FZ_MODEL_SCENARIOS_SYNC_RWLOCK_H
#define FZ_MODEL_SCENARIOS_SYNC_RWLOCK_H

/*
 * tests/model/scenarios/sync/rwlock.h - the sequential model of a rwlock: a number of readers, or one writer.
 */
#include "tests/model/scenario.h"

#include <asm/errno.h>

#include "runtime/sync/rwlock.h"

/* The kinds of operations; the argument of UNLOCK is what it unlocks, READ or WRITE. */
enum { READ, WRITE, UNLOCK };

/* The argument of READ and WRITE. */
enum { WAITS, TRIES };

/* *state: the readers; WRITTEN: a writer. */
static inline bool shared_or_alone(uint64_t *state, const struct operation *op)
{
	static const uint64_t WRITTEN = (uint64_t)1 << 32;

	/* It may time out at any time, and then it takes nothing. */
	if (op->kind != UNLOCK && op->result == -ETIMEDOUT)
		return true;
	/* A lock that prefers readers refuses a try only while somebody has it, and readers refuse no reader. */
	if (op->kind != UNLOCK && op->result == -EBUSY)
		return op->arg == TRIES && *state >= (op->kind == READ ? WRITTEN : 1);
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

static inline void check_free(const struct fz_rwlock *l)
{
	MODEL_CHECK(!l->both, "the lock is not free: %lx", (unsigned long)l->both);
	MODEL_CHECK(!l->cur_writer, "a writer is named that has left");
}

#endif
