/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SCHED_RETREAT_H
#define FZ_RUNTIME_SCHED_RETREAT_H

/*
 * runtime/sched/retreat.h - give up io_uring before the program does what would make it dangerous:
 *
 * - The program installs a filter for all its threads, which may kill the process for a system call
 *   that the filter does not list.  If the filter answers with an error instead, the library loses the
 *   ring anyway (runtime/backend/ring.c), but cannot cancel requests in flight any more.
 * - The program lets one of its threads fill in memory for others: by userfaultfd, or by serving a file
 *   that it has mapped (FUSE).  The kernel touches a request's memory while it holds the ring's lock, so
 *   the whole ring would wait, perhaps for a thread that waits for the ring.  Without the ring each call
 *   waits alone.
 */

#include "runtime/fiber/fiber.h"

/*
 * Use epoll from now on, and wait until all requests in flight are complete; the fibers that made
 * them then wait on epoll.  This takes about ten seconds at most.  why, error: for
 * fz_backend_lose_ring().  Outside the runtime.  A handler that has interrupted the runtime may
 * call it, too; it does not wait then.
 */
void fz_retreat_from_ring(struct fz_fiber *self, const char *why, int error);

/*
 * Call before the program gets a descriptor by which one of its threads fills in memory for others:
 * does fz_retreat_from_ring(), and no ring is made in the future.  Any thread.
 */
void fz_retreat_before_faults(const char *why);

#endif
