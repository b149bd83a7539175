/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_SYNC_COND_H
#define FZ_PRELOAD_SYNC_COND_H

/*
 * preload/sync/cond.h - condition variables: process-shared ones (cond_shared.c), where libc
 * keeps the flags, and what the child of a fork resets.
 */

#include <pthread.h>
#include <stdbool.h>

struct fz_fiber;

enum fz_cond_wait_kind { FZ_COND_WAIT, FZ_COND_TIMEDWAIT, FZ_COND_CLOCKWAIT };

/*
 * Wait with libc's function, for a process-shared condition variable, with a mutex of ours or
 * of libc's. kind: which of libc's functions. self: the calling fiber, or NULL. clock and when:
 * as the function takes them. A cancellation point; returns as the pthread function does.
 */
int fz_cond_wait_shared(enum fz_cond_wait_kind kind, struct fz_fiber *self, pthread_cond_t *c,
			pthread_mutex_t *m, clockid_t clock, const struct timespec *when);

/*
 * Call wake, which is libc's pthread_cond_signal or pthread_cond_broadcast, and return its
 * result.
 */
int fz_cond_wake_shared(pthread_cond_t *c, int (*wake)(pthread_cond_t *));

/*
 * Find where this libc keeps the flags of a condition variable. From the constructor. Returns
 * false if the place is not found.
 */
bool fz_cond_find_flags(void);

/* In the child of a fork: free the gates (cond_shared.c) that other threads of the parent held. */
void fz_cond_gates_after_fork(void);

#endif
