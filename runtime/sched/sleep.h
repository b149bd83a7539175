/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SCHED_SLEEP_H
#define FZ_RUNTIME_SCHED_SLEEP_H

/*
 * runtime/sched/sleep.h - waiting for nothing but time.  Both: from a fiber, outside the
 * runtime; handlers have run on return.
 */

#include "runtime/sched/park.h"

/* Park until the deadline.  flags as in fz_wait_arm(): what else may end it.  Returns why. */
enum fz_why fz_sleep(struct fz_fiber *self, fz_nsec deadline, unsigned flags);

/*
 * Sleep as nanosleep does: a cancellation point.  Returns 0 when the deadline has passed,
 * -EINTR after a handler, with SA_RESTART or not.
 */
int fz_sleep_until(struct fz_fiber *self, fz_nsec deadline);

#endif
