/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_PROCESS_EXEC_WATCH_H
#define FZ_PRELOAD_PROCESS_EXEC_WATCH_H

/*
 * preload/process/exec_watch.h - a fiber waits until its child executes or exits, as the parent of
 * vfork does. The kernel's own wait (CLONE_VFORK) suspends the kernel thread so deeply that
 * its requests are not completed either, and the child may wait for a thread whose request that is.
 *
 * The child owns a robust futex, in a page that it shares with its parent. The kernel marks the futex
 * when the child gives up its memory, by exec or at its end, however it ends.
 *
 *	watch = fz_exec_watch_begin(self, &flags)
 *	pid = a clone with these flags
 *	the child: fz_exec_watch_in_child(watch)
 *	the parent: fz_exec_watch_end(watch, self, pid)
 *
 * The fiber's handlers wait until the end, as natively.
 */

#include "preload/gate.h"

struct fz_exec_watch;

/*
 * The call has CLONE_VFORK in *flags. Take it out and block the signals of self; or, where that cannot
 * be (self is NULL or no fiber, flags is NULL), return NULL: the kernel's wait is announced.
 */
struct fz_exec_watch *fz_exec_watch_begin(struct fz_fiber *self, uint64_t *flags);

/* The child's signal mask becomes what its parent's was. */
void fz_exec_watch_in_child(struct fz_exec_watch *watch);

/* Waits, if pid is positive. */
void fz_exec_watch_end(struct fz_exec_watch *watch, struct fz_fiber *self, pid_t pid);

#endif
