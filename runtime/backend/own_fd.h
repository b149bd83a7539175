/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_BACKEND_OWN_FD_H
#define FZ_RUNTIME_BACKEND_OWN_FD_H

/*
 * runtime/backend/own_fd.h - own descriptors: descriptors of the library, at high numbers, where the
 * program has none, and close-on-exec.
 */

#include <stdbool.h>
#include <stdint.h>

/*
 * Copy fd to a number above the program's soft limit, if the hard limit allows that, so that the
 * program can have as many descriptors as before.  If the soft limit is above 15,424: to a free
 * number from 3,072 on.  Returns the copy or -errno.
 */
int fz_own_fd_copy(int fd);

/* Like fz_own_fd_copy(); raises: the soft limit may be raised for a moment. */
int fz_own_fd_copy_within(int fd, bool raises);

/*
 * Around a call that makes a process, by the calling thread: the soft limit on descriptors is not raised meanwhile, not
 * even for a moment, because the new process inherits it.  Copies then get numbers below the limit.  In the parent, with
 * handlers barred (sched/own_fds.h).  The library cannot call this for inline system calls, nor for system() and wordexp()
 * if libc's code is not redirected.
 */
void fz_own_fd_hold_limit(void);
void fz_own_fd_release_limit(void);
bool fz_own_fd_limit_is_held(void);

/*
 * In a fork's child, before and after it gives up what it has of the parent's.  shares: the child shares its table of
 * descriptors with the parent (CLONE_FILES), so fz_own_fd_close() closes nothing in between.
 */
void fz_own_fd_begin_in_child(bool shares);
void fz_own_fd_end_in_child(void);

/* Close an own descriptor.  No effect in a child that shares its parent's table (fz_own_fd_begin_in_child()). */
void fz_own_fd_close(int fd);

/*
 * Move fd to a high number: copy it with fz_own_fd_copy() and close fd.  Returns the copy; fd
 * itself if no number is free.
 */
int fz_own_fd_raise(int fd);

/* Copy fd to another number, because the program wants fd.  Returns the copy or -errno. */
int fz_own_fd_elsewhere(int fd);

/*
 * How many of `wanted` new descriptors may the library open?  At most a quarter of the numbers that
 * are still free for the program, up to the hard limit, because the program may raise its soft limit.
 */
uint32_t fz_own_fd_allowed(uint32_t wanted);

#endif
