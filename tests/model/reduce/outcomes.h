/* SPDX-License-Identifier: MIT */
#ifndef FZ_MODEL_OUTCOMES_H
#define FZ_MODEL_OUTCOMES_H

/*
 * tests/model/reduce/outcomes.h - what the runs of an exhaustive exploration differ by: to see that reduce.c leaves out none.
 *
 * An end is the memory that a run leaves behind.  An order says of each place and each object of the kernel who used it
 * after whom, as far as one of the two wrote: runs of one order are those that reduce.c takes for the same.
 */

#include "tests/model/model.h"

extern bool outcomes;				/* asked for */

void outcomes_begin_run(void);
/* The running kthread uses a place. */
void outcomes_use(const struct place *p, bool writes);
/* The run is over; before its memory is put back. */
void outcomes_end_run(void);
void outcomes_forget(void);
/* "ENDS ends SUM, ORDERS orders SUM": equal texts, equal sets. */
const char *outcomes_say(void);

#endif
