/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_SIGNAL_KILL_H
#define FZ_PRELOAD_SIGNAL_KILL_H

/*
 * preload/signal/kill.h - a signal to a thread of this process, by its virtual id.
 */

#include <stdbool.h>

/* False: there is none with that id, so the kernel is to be asked.  Or else as tgkill(). */
bool fz_kill_by_tid(int pid, int tid, int sig, long *ret);

#endif
