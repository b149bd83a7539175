/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_LIBC_MODULES_H
#define FZ_PRELOAD_LIBC_MODULES_H

/*
 * preload/libc/modules.h - the loader's list of modules with thread-local variables, as libc's
 * pthread_create reads it: under the one lock of the loader that no thread holds while it runs
 * code of the program. dl_iterate_phdr holds another lock during its callbacks, so a thread that
 * walked the list by it in order to begin would wait for a callback that may wait for the thread.
 */

#include <link.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * Find the lock by an experiment. By the main thread, before there are fibers. If this libc has no
 * such lock, or another layout, fz_modules_known() stays false.
 */
void fz_modules_learn(void);

/*
 * Only if the lock is known. Any thread, outside the runtime. May park, also inside a gate of
 * preload/process/fork_gate.h. Recursive, as in libc. With the lock held, call nothing that may call
 * the allocator if that is the program's: what its code waits for is unknown.
 */
void fz_modules_lock(void);
void fz_modules_unlock(void);

bool fz_modules_known(void);

/* Does the caller hold the lock? False if it is not known. */
bool fz_modules_locked(void);

/*
 * The caller is about to wait for m. dlclose waits for walks with the lock held, and their callbacks
 * may wait for anything; it takes the two locks one directly after the other. So this unlocks the
 * modules if m is the lock of walks, and returns true: the caller locks them again behind m.
 */
bool fz_modules_let_go(const void *m);

/* How many modules have been loaded so far; without the lock, a hint. */
unsigned long long fz_modules_loads(void);

/* A module with thread-local variables; a slot without a module has map NULL. libc's layout. */
struct fz_tls_slot {
	size_t generation;		/* with map: which module, also if the address is used again */
	const struct link_map *map;
};

/* With the lock held. */
void fz_modules_each_slot(void (*visit)(const struct fz_tls_slot *slot, void *arg), void *arg);

/*
 * The calling thread's block of the module in this slot; NULL if it has none yet. *ret_fixed: it is
 * at a fixed distance from the thread pointer.
 */
char *fz_modules_tls_block(const struct fz_tls_slot *slot, bool *ret_fixed);

/*
 * Does a module need executable stacks? With the lock held. *ret_all: none is being loaded. *ret_walk:
 * one must be looked at in a walk.
 */
bool fz_modules_need_executable_stacks(bool *ret_all, bool *ret_walk);

#endif
