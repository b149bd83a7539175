/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_BACKEND_KEPT_FD_H
#define FZ_RUNTIME_BACKEND_KEPT_FD_H

/*
 * runtime/backend/kept_fd.h - private copies: own descriptors (own_fd.h) with which a call waits while another thread
 * closes the program's number.  Any thread.
 */

#include <stdbool.h>
#include <stdint.h>

/*
 * Like fz_own_fd_copy(), for a call that waits with fd while another thread closes fd.  The program
 * can neither close nor replace the copy.  A fork's child closes its copy, and keeps no reference to the
 * file, unless a filter forbids dup3.  fz_kept_fd_drop() closes the copy.  In the runtime.
 */
int fz_kept_fd_make(int fd);
void fz_kept_fd_drop(int copy);

/* Can a private copy of fd be made?  false: not until the limit may be raised (fz_own_fd_hold_limit).  In the runtime. */
bool fz_kept_fd_has_room(int fd);

/*
 * Around fork and clone, in addition to fz_own_fd_hold_limit(), if the new process gets a copy of the memory and of the
 * table of descriptors: it can then close all private copies.  In the parent; fz_kept_fd_copying_ends() with handlers
 * barred.  fz_kept_fd_copying_begins() waits for changes of other threads that are under way, at most 0.12 s.
 */
void fz_kept_fd_copying_begins(void);
void fz_kept_fd_copying_ends(void);

/*
 * *fd is the filler: a descriptor of the library's that a child may have, too.  While a process is made, the number of
 * a private copy holds the filler if it has no file yet, or has none any more.  fd NULL, or *fd -1: there is no filler.
 * Before the second thread.
 */
void fz_kept_fd_fill_with(const _Atomic int *fd);

/* Returns the lowest copy >= first that fz_kept_fd_make() has made, or UINT_MAX.  Any thread. */
unsigned fz_kept_fd_next(unsigned first);

/* Is fd a copy that fz_kept_fd_make() has made?  Any thread; a hint while the copy is made or dropped. */
bool fz_kept_fd_is(int fd);

/*
 * Is fd open, but not a private copy, not even one that is being made or dropped?  Waits while fd is being dropped.  Also
 * true if fd is still being dropped after 0.1 to 0.2 s, or while 16 other copies are being dropped.  With handlers barred.
 */
bool fz_kept_fd_is_others(int fd);

/* In a fork's child: close all kept copies, since the waiting calls do not exist here. */
void fz_kept_fd_after_fork(void);

#endif
