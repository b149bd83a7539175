/* SPDX-License-Identifier: MIT */
#ifndef FZ_MODEL_RINGS_H
#define FZ_MODEL_RINGS_H

/*
 * tests/model/rings.h - the model's io_uring: NOP, POLL_ADD (also multishot), POLL_REMOVE and ASYNC_CANCEL.
 *
 * A poll that has become ready is reported by the kthread that submitted it: when that next enters the kernel, or
 * goes on after others have run (an interrupt brings it there), or at once if it sleeps there.  It posts a completion
 * then if the descriptor is ready still.  The scheduler may choose otherwise (schedule_choose()): another order of what
 * is to be reported; a report at the submitter's next call, or when its wait for completions goes on; a cancelled poll that
 * is reported likewise; a call for which there is no memory; a wait that a stop interrupts.
 */

#include <stdbool.h>
#include <stdint.h>

struct io_uring;
struct io_uring_params;

/* A ring as the scenario's start has laid it out, and its descriptor.  liburing's part: linked/liburing.c. */
int ring_make(unsigned entries, struct io_uring *ring, struct io_uring_params *params);

long ring_enter(int fd, uint32_t to_submit, uint32_t least, uint32_t flags, const void *arg);
long ring_register(int fd, unsigned operation, const void *arg);

/* Which polls have a report that is on its way to its ring, by this kthread, or any (-1). */
uint32_t rings_reports(int kt);

/* The running kthread is in the kernel, */
void rings_task_work(void);
/* or goes on after others have run. */
void rings_goes_on(void);

/* Somebody has written to file `i`: its polls are woken, once for each time. */
void rings_note_event(int i);

/* Has ring `i` completions that the program has not taken? */
bool ring_has_completions(int i);

/* From now on a filter refuses io_uring_enter to all kthreads. */
void model_forbid_rings(void);

/* The next report of a poll that goes on is its last, as when the completion queue is full. */
void model_end_multishot(void);

/* The next one that enters a ring waits for its lock, and others go first.  Has it come so far? */
void model_hold_ring_lock(void);
bool model_ring_lock_is_awaited(void);

#endif
