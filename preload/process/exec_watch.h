/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_PROCESS_EXEC_WATCH_H
#define FZ_PRELOAD_PROCESS_EXEC_WATCH_H

/*
 * preload/process/exec_watch.h - a fiber waits until its child executes or exits, as the parent of
 * vfork does. The kernel's own wait (CLONE_VFORK) suspends the kernel thread so deeply that io_uring
 * does not complete the requests which that kernel thread has submitted; the child may wait for a
 * thread that waits for such a request.
 *
 * The child owns a robust futex, in a page that it shares with its parent. The kernel marks the futex
 * when the child gives up its memory, by exec or at its end, however it ends.
 *
 *	watch = fz_exec_watch_begin(self, &flags)
 *	pid = a clone with these flags
 *	the child: fz_exec_watch_in_child(watch)
 *	the parent: fz_exec_watch_end(watch, self, pid)
 *
 * In between, signal handlers of the fiber do not run, as natively.
 */

#include "preload/gate.h"

struct fz_exec_watch;

/*
 * Remove CLONE_VFORK from *flags, block the signals of the fiber self, and return a watch. Returns NULL, and
 * leaves *flags as it is, if the kernel's own wait must do: self is NULL or no fiber, flags is NULL, or a
 * watch cannot be made. The wait of a fiber is then announced.
 */
struct fz_exec_watch *fz_exec_watch_begin(struct fz_fiber *self, uint64_t *flags);

/* Called by the child: own the futex, and take the signal mask that the parent had. watch may be NULL. */
void fz_exec_watch_in_child(struct fz_exec_watch *watch);

/*
 * Called by the parent: wait for the child if pid is positive, free the watch and restore the fiber's
 * signal mask. watch may be NULL.
 */
void fz_exec_watch_end(struct fz_exec_watch *watch, struct fz_fiber *self, pid_t pid);

#endif
