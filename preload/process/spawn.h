/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_PROCESS_SPAWN_H
#define FZ_PRELOAD_PROCESS_SPAWN_H

/*
 * preload/process/spawn.h - around a call in which libc makes a process and waits for its exec: the process gets what
 * the program has set, not what the library has put in its place (ignored signals, the limit on descriptors).  Any
 * thread, also with locks of libc held; outside the runtime.
 *
 * The kernel has our handler for a signal that the program ignores while a thread waits for it.  The child replaces it
 * in the call of execve (fz_execve_inside), so the parent gets its signals as ever.
 */

#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>

struct fz_spawn {
	uint64_t before;	/* of an interrupted call of the same thread */
	bool hides;		/* the child's execve is not redirected: see fz_signal_before_spawn() */
};

/* attr: NULL, or posix_spawn's. */
struct fz_spawn fz_spawn_begins(const posix_spawnattr_t *attr);
void fz_spawn_ends(struct fz_spawn spawn);

#endif
