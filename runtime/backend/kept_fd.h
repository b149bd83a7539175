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
 * Like fz_own_fd_copy(), for a call that waits with fd while another thread closes fd: the program
 * can neither close nor replace the copy, and a fork's child has none, or one that is a filler instead.
 * fz_kept_fd_drop() closes it.  In the runtime.
 */
int fz_kept_fd_make(int fd);
void fz_kept_fd_drop(int copy);

/* Returns false if fd cannot be kept until the limit may be raised (fz_own_fd_hold_limit).  In the runtime. */
bool fz_kept_fd_has_room(int fd);

/*
 * Besides fz_own_fd_hold_limit(), around fork and clone, if the process gets a copy of the memory and of the table of
 * descriptors: it closes all copies.  In the parent; the second with handlers barred.  Neither waits for longer than
 * changes of other threads take that are under way, and than 0.12 s.
 */
void fz_kept_fd_copying_begins(void);
void fz_kept_fd_copying_ends(void);

/*
 * fd is a descriptor of the library's that a child may have, too, and that stands for a copy where that has no
 * file yet, or no more.  -1: there is none.  Before the second thread.
 */
void fz_kept_fd_fill_with(const _Atomic int *fd);

/* Returns the lowest copy >= first that fz_kept_fd_make() has made, or UINT_MAX.  Any thread. */
unsigned fz_kept_fd_next(unsigned first);

/* Is fd a copy that fz_kept_fd_make() has made?  Any thread; a hint while the copy is made or dropped. */
bool fz_kept_fd_is(int fd);

/*
 * Is fd open, and no such copy, not even one that is being made or dropped?  While this very number is being dropped it
 * waits; after 0.1 to 0.2 s, and where 16 others are being dropped, the number counts as another's.  With handlers barred.
 */
bool fz_kept_fd_is_others(int fd);

/* In a fork's child: close all kept copies, since the waiting calls do not exist here. */
void fz_kept_fd_after_fork(void);

#endif
