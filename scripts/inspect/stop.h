/* SPDX-License-Identifier: MIT */
#ifndef INSPECT_STOP_H
#define INSPECT_STOP_H

/*
 * scripts/inspect/stop.h - stops a process for some milliseconds, so that all that is read is of one
 * moment.
 *
 * Kernel threads that run, and the library's monitor, are stopped by ptrace; the parent of the process
 * does not notice.  Kernel threads that sleep are not stopped, because some system calls would end with
 * EINTR; stop_end() checks that they have slept all the time.  The process goes on when the time is
 * over, and when this tool ends, however it ends.  A thread that stops too late, when the time is over,
 * goes on at once.
 */

#include "scripts/process/target.h"

/* Stop the process for at most most_ms.  Returns when all kernel threads that ran have stopped. */
void stop_begin(const struct target *t, double most_ms);

/* Let the process go on.  Returns false if the time was over or a thread has run since stop_begin(). */
bool stop_end(double *ret_stopped_ms);

#endif
