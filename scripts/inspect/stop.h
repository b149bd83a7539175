/* SPDX-License-Identifier: MIT */
#ifndef INSPECT_STOP_H
#define INSPECT_STOP_H

/*
 * scripts/inspect/stop.h - hold a process still for a moment, so that all is read as it was at one
 * time.
 *
 * Kernel threads that run are stopped by ptrace, as a debugger stops them; the process's parent does
 * not notice.  The library's monitor is stopped, too.  Those that sleep are left alone, because some system calls would end with EINTR: that
 * they have not run meanwhile is checked afterwards.  The process goes on when the time is over, and
 * when this program ends, however it ends.
 */

#include "scripts/process/target.h"

/* Returns when all that ran is stopped, for at most so long. */
void stop_begin(const struct target *t, double most_ms);

/* Let the process go on.  Returns false if a thread has run since stop_begin() returned. */
bool stop_end(double *ret_stopped_ms);

#endif
