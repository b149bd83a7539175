/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SCHED_RETREAT_H
#define FZ_RUNTIME_SCHED_RETREAT_H

/*
 * runtime/sched/retreat.h - give up io_uring before the program installs a filter for all its
 * threads.
 *
 * A filter may kill the process for a system call that it does not list.  If it answers with an
 * error, the ring is lost without this, too (runtime/backend/ring.c); but then requests in flight
 * cannot be cancelled any more.
 */

#include "runtime/fiber/fiber.h"

/*
 * Use epoll from now on, and wait until all requests in flight are complete, which makes their
 * fibers wait on epoll; for at most about a second.  Outside the runtime.
 */
void fz_retreat_from_ring(struct fz_fiber *self);

#endif
