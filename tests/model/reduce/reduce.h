/* SPDX-License-Identifier: MIT */
#ifndef FZ_MODEL_REDUCE_H
#define FZ_MODEL_REDUCE_H

/*
 * tests/model/reduce/reduce.h - partial-order reduction: which runs of an exhaustive exploration need not be made.  reduce.c says
 * why that is sound.  It stands on one thing: whatever two kthreads can notice of each other is noted as the use of a place.
 *
 * A place is 8 bytes of memory, or an object of the model's kernel.  memory.c notes the uses of memory.  What the model
 * reads or writes of memory without a hook, and what a system call does to the kernel's state, is to be noted by
 * reduce_read(), reduce_write() or reduce_use(), at the moment that it is done, and again when it is done again after a sleep.
 * Of a kthread's own state only what others look at counts; whether it is runnable, has signals or polls to report is
 * looked at by reduce.c itself.
 */

#include "tests/model/model.h"

/* The kernel's objects, by numbers that are no address / 8. */
#define OBJECT_CLOCK ((uintptr_t)1)
#define OBJECT_EVENTS ((uintptr_t)2)		/* files, rings, their polls, and who waits for them */
#define OBJECT_SIGNALS ((uintptr_t)3)		/* actions, masks, what is pending */
#define OBJECT_HISTORY ((uintptr_t)4)		/* linear.c: read by an operation that begins, written by one that ends */
#define OBJECT_MAPS ((uintptr_t)5)
/* Those who wait for a futex. */
#define OBJECT_QUEUE(word) ((uintptr_t)(word) / 8 | (uintptr_t)1 << 61)

extern bool reducing;				/* asked for */
extern bool watching;				/* uses are to be noted: somebody looks at them */

/* The running kthread uses a place. */
void reduce_touch(struct place *p, bool writes);
void reduce_use(uintptr_t object, bool writes);
void reduce_read(const void *p, size_t size);
void reduce_write(const void *p, size_t size);

/* ---- schedule.c and run.c tell: ---- */

void reduce_begin_run(bool exhaustive);
/* *d is a new choice; list: among which kthreads, the default first; NULL: it is something else that is chosen. */
void reduce_note_choice(struct decision *d, const int *list);
/* The running kthread has come to its next point; or it blocks, or the kernel has a choice. */
void reduce_segment_ends(bool at_point);
/* This run does not take the default of *d. */
void reduce_deviates(const struct decision *d);
/* kt goes on.  Returns true if the run need not. */
bool reduce_resumes(int kt);
void reduce_end_run(bool cut);
/* The next pick of *d, which is not the default, is to be tried; all of them have been. */
void reduce_begin_pick(const struct decision *d);
void reduce_leave(const struct decision *d);

#endif
