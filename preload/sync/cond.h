/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_SYNC_COND_H
#define FZ_PRELOAD_SYNC_COND_H

/*
 * preload/sync/cond.h - what of condition variables others need: process-shared ones, and
 * what the child of a fork does.
 */

#include <pthread.h>
#include <stdbool.h>

struct fz_fiber;

enum fz_cond_wait_kind { FZ_COND_WAIT, FZ_COND_TIMEDWAIT, FZ_COND_CLOCKWAIT };

/*
 * libc's wait of that kind, with a mutex of ours or of libc's.  self: the calling fiber, or NULL.
 * A cancellation point; returns as the pthread function does.
 */
int fz_cond_wait_shared(enum fz_cond_wait_kind kind, struct fz_fiber *self, pthread_cond_t *c,
			pthread_mutex_t *m, clockid_t clock, const struct timespec *when);

/* wake: libc's pthread_cond_signal or pthread_cond_broadcast.  Returns what it does. */
int fz_cond_wake_shared(pthread_cond_t *c, int (*wake)(pthread_cond_t *));

/*
 * From the constructor: where does this libc keep the flags of a condition variable?
 * False: in no place that is known.
 */
bool fz_cond_find_flags(void);

/* In the child, which has one thread. */
void fz_cond_gates_after_fork(void);

#endif
