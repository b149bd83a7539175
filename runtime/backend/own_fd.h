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

/*
 * Like fz_own_fd_copy(), for a call that waits with fd while another thread closes fd: the program
 * can neither close nor replace the copy, and a fork's child has none, or one that is a filler instead.
 * fz_own_fd_drop() closes it.  In the runtime.
 */
int fz_own_fd_keep(int fd);
void fz_own_fd_drop(int copy);

/* Returns false if fd cannot be kept until the limit may be raised (fz_own_fd_hold_limit).  In the runtime. */
bool fz_own_fd_has_room(int fd);

/*
 * Around a call that makes a process, by the thread that calls: the limit on descriptors is not raised meanwhile, not
 * for a moment, since the process inherits it.  Copies take numbers below the limit then.  In the parent, with handlers
 * barred (sched/own_fds.h).  Not seen: inline system calls; and system() and wordexp()
 * where libc's code is not redirected.
 */
void fz_own_fd_hold_limit(void);
void fz_own_fd_release_limit(void);

/*
 * Besides, around fork and clone, if the process gets a copy of the memory and of the table of descriptors: it closes all
 * copies.  In the parent; the second with handlers barred.  Neither waits for longer than changes of other threads take
 * that are under way, and than 0.12 s.
 */
void fz_own_fd_copying_begins(void);
void fz_own_fd_copying_ends(void);

/*
 * fd is a descriptor of the library's that a child may have, too, and that stands for a copy where that has no
 * file yet, or no more.  -1: there is none.  Before the second thread.
 */
void fz_own_fd_fill_with(const _Atomic int *fd);

/* Returns the lowest copy >= first that fz_own_fd_keep() has made, or UINT_MAX.  Any thread. */
unsigned fz_own_fd_next_kept(unsigned first);

/* Is fd a copy that fz_own_fd_keep() has made?  Any thread; a hint while the copy is made or dropped. */
bool fz_own_fd_is_kept(int fd);

/*
 * Is fd open, and no such copy, not even one that is being made?  One that is just being dropped may count as another's, for an
 * instant.  With handlers barred.
 */
bool fz_own_fd_is_others(int fd);

/*
 * Around what a fork's child forgets: close all kept copies, since the waiting calls do not exist here.  shares: its
 * table of descriptors is the parent's (CLONE_FILES), so that it closes nothing in between.
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
