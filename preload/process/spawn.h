/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_PROCESS_SPAWN_H
#define FZ_PRELOAD_PROCESS_SPAWN_H

/*
 * preload/process/spawn.h - around a call in which libc makes a process and waits for its exec: the process inherits
 * which signals are ignored, and the limit on descriptors, as the program has set them.  Any thread, also with locks of
 * libc held; outside the runtime.
 */

#include <stdbool.h>

/* Pass what fz_spawn_begins() returns to fz_spawn_ends(). */
bool fz_spawn_begins(void);
void fz_spawn_ends(bool hides);

#endif
