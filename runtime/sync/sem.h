/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SYNC_SEM_H
#define FZ_RUNTIME_SYNC_SEM_H

/*
 * runtime/sync/sem.h - private semaphores in the storage of sem_t, with glibc's words: the value
 * in the low half of `both`, the number of waiters in the high half.
 */

#include "runtime/fiber/fiber.h"

struct fz_sem {
	union {
		_Atomic uint64_t both;
		_Atomic uint32_t value;	/* little endian: the low half */
	};
	int shared;			/* 0, or FUTEX_PRIVATE_FLAG */
};

/*
 * Any thread; may park.  Returns 0, -ETIMEDOUT, -ECANCELED, or -EINTR after a handler: with a
 * deadline after any handler, without a deadline only after a handler without SA_RESTART.
 */
int fz_sem_wait(struct fz_sem *s, fz_nsec deadline);

/* Any thread; does not wait.  Returns 0 or -EAGAIN. */
int fz_sem_trywait(struct fz_sem *s);

/* Any thread, signal handlers too.  Returns 0 or -EOVERFLOW. */
int fz_sem_post(struct fz_sem *s);

#endif
