/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_BACKEND_OWN_FD_H
#define FZ_RUNTIME_BACKEND_OWN_FD_H

/*
 * runtime/backend/own_fd.h - descriptors of ours, out of the program's way: at high
 * numbers, close-on-exec.
 */

#include <stdbool.h>
#include <stdint.h>

/*
 * A copy of fd above the program's soft limit if the hard limit has room there, so
 * that the program can have as many as before; where it can have very many, from 15,360 on,
 * where a number is free.  Returns it or -errno.
 */
int fz_own_fd_copy(int fd);

/*
 * The same for a call that waits with fd while that is closed: the program can neither close
 * nor replace the copy, and a fork's child has none.  drop closes it.  In the runtime.
 */
int fz_own_fd_keep(int fd);
void fz_own_fd_drop(int copy);

/* The lowest such copy >= first, or UINT_MAX.  Any thread. */
unsigned fz_own_fd_next_kept(unsigned first);

/* Is it one?  Any thread. */
bool fz_own_fd_is_kept(int fd);

/* In a fork's child: those who wait are not here. */
void fz_own_fd_after_fork(void);

/* fz_own_fd_copy() instead of fd; where there is no room, fd as it is. */
int fz_own_fd_raise(int fd);

/* Another number for it, because the program wants fd.  Returns it or -errno. */
int fz_own_fd_elsewhere(int fd);

#endif
