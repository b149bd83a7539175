/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_BACKEND_OWN_FD_H
#define FZ_RUNTIME_BACKEND_OWN_FD_H

/*
 * runtime/backend/own_fd.h - own descriptors: the library's, out of the program's way: at high
 * numbers, close-on-exec.
 */

#include <stdbool.h>
#include <stdint.h>

/*
 * Copy fd to a number above the program's soft limit, if the hard limit allows that, so that the
 * program can have as many descriptors as before.  If the soft limit is above 15,424: to a free
 * number from 3,072 on.  Returns the copy or -errno.
 */
int fz_own_fd_copy(int fd);

/* fz_own_fd_copy(); raises: the soft limit may be raised for the copy. */
int fz_own_fd_copy_within(int fd, bool raises);

/*
 * Around a call that makes a process, by the thread that calls: the limit on descriptors is not raised meanwhile, not
 * for a moment, since the process inherits it.  Copies take numbers below the limit then.  In the parent, with handlers
 * barred (sched/own_fds.h).  Not seen: inline system calls; and system() and wordexp()
 * where libc's code is not redirected.
 */
void fz_own_fd_hold_limit(void);
void fz_own_fd_release_limit(void);
bool fz_own_fd_limit_is_held(void);

/*
 * Around what a fork's child forgets.  shares: its table of descriptors is the parent's (CLONE_FILES), so that it closes
 * nothing in between.
 */
void fz_own_fd_begin_in_child(bool shares);
void fz_own_fd_end_in_child(void);

/* Close an own descriptor; not in a child that shares its parent's. */
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
