/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_SIGNAL_KILL_H
#define FZ_PRELOAD_SIGNAL_KILL_H

/* preload/signal/kill.h - sends a signal to a thread of this process, by its virtual tid. */

#include <stdbool.h>

/*
 * Returns false if no thread of this process has that tid: the kernel must be asked. Otherwise
 * *ret is the result of tgkill(), with errno set.
 */
bool fz_kill_by_tid(int pid, int tid, int sig, long *ret);

#endif
