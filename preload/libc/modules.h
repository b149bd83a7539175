/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_LIBC_MODULES_H
#define FZ_PRELOAD_LIBC_MODULES_H

/*
 * preload/libc/modules.h - the loader's list of modules with thread-local variables.
 *
 * The list is read under the lock that libc's pthread_create takes to read it. No thread holds that
 * lock while it runs code of the program. dl_iterate_phdr holds another lock while it runs callbacks
 * of the program: a new thread that used it would wait for a callback, and that callback may wait for
 * the new thread.
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
 * Call these two only if fz_modules_known(). From any thread, outside the runtime. fz_modules_lock() may
 * park, also inside a gate of preload/process/fork_gate.h. The lock is recursive, as in libc. If the
 * program has its own allocator, do not allocate with the lock held: the allocator may wait for a
 * thread that waits for the lock.
 */
void fz_modules_lock(void);
void fz_modules_unlock(void);

bool fz_modules_known(void);

/* Does the caller hold the lock? False if the lock is not known. */
bool fz_modules_locked(void);

/*
 * The caller is about to wait for the mutex m. dlclose takes the lock of this list, and directly after
 * it the lock that dl_iterate_phdr holds while it runs callbacks, which may wait for anything. If m is
 * that second lock and the caller holds the first one, this unlocks the first one and returns true: the
 * caller must take it again (fz_modules_lock) once it has m.
 */
bool fz_modules_let_go(const void *m);

/* How many modules have been loaded so far; without the lock, a hint. */
unsigned long long fz_modules_loads(void);

/* A module with thread-local variables; a slot without a module has map NULL. libc's layout. */
struct fz_tls_slot {
	size_t generation;		/* differs if a later module has the same map */
	const struct link_map *map;
};

/* Call visit for each slot of the list. With the lock held. */
void fz_modules_each_slot(void (*visit)(const struct fz_tls_slot *slot, void *arg), void *arg);

/*
 * The calling thread's block of the module in this slot; NULL if the thread has none yet. *ret_fixed: the
 * block is at a fixed distance from the thread pointer.
 */
char *fz_modules_tls_block(const struct fz_tls_slot *slot, bool *ret_fixed);

/*
 * Does a module need executable stacks? With the lock held. If not: *ret_all is false if a module is
 * being loaded or unloaded, and *ret_walk is true if a module can only be looked at by dl_iterate_phdr.
 */
bool fz_modules_need_executable_stacks(bool *ret_all, bool *ret_walk);

#endif
