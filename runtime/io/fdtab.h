/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_IO_FDTAB_H
#define FZ_RUNTIME_IO_FDTAB_H

/*
 * runtime/io/fdtab.h - what we remember of descriptors, to ask the kernel less.
 *
 * Hints, one word each.  OURS means that the open file was made by this process
 * and its descriptor was never duplicated, inherited or passed on: then nobody
 * can have changed its O_NONBLOCK but through us.  For all others O_NONBLOCK is
 * asked for each time that a call could wait.
 */

#include "runtime/base/base.h"

enum fz_fd_kind {
	FZ_FD_UNKNOWN,
	FZ_FD_SOCKET,
	FZ_FD_PIPE,
	FZ_FD_FILE,		/* regular: never waits, blocks for the disk at most */
	FZ_FD_ANONYMOUS,	/* eventfd, timerfd, signalfd, inotify ...: poll tells all */
	FZ_FD_OTHER,		/* terminals, devices: only the real call knows */
	FZ_FD_KIND_MASK = 7,
};

enum {
	FZ_FD_OURS = 8,
	FZ_FD_NONBLOCK = 16,		/* valid with OURS */
	FZ_FD_RECV_TIMEOUT = 32,	/* SO_RCVTIMEO may be set */
	FZ_FD_SEND_TIMEOUT = 64,
	FZ_FD_RECV_WAITED = 128,	/* the last read of the pipe had to wait */
	FZ_FD_DIRECT = 256,		/* file: O_DIRECT */
	FZ_FD_SYNC = 512,		/* file: O_SYNC or O_DSYNC */
	FZ_FD_APPEND = 1024,		/* file: O_APPEND */
	FZ_FD_SLOW_WRITE = 2048,	/* file: the last write took long */
	FZ_FD_SLOW_SYNC = 4096,		/* file: so did the last fsync */
	FZ_FD_RING_REFUSED = 8192,	/* file: the last transfer could not go by the ring */
	FZ_FD_FIFO = 16384,		/* pipe: cannot be read without waiting (RWF_NOWAIT) */
	FZ_FD_WATCHED = 32768,		/* an epoll instance may have it */
	FZ_FD_STREAM = 65536,		/* socket: SOCK_STREAM */
};

/* Reserve the table.  Before that, and beyond its end, all is unknown. */
void fz_fdtab_init(void);

uint32_t fz_fdtab_get(int fd);
void fz_fdtab_set(int fd, uint32_t info);
void fz_fdtab_change(int fd, uint32_t clear, uint32_t set);

/* Both ends included; last may be UINT_MAX. */
void fz_fdtab_forget_range(unsigned first, unsigned last);

/* get, after asking the kernel if nothing is known.  -EBADF for a closed one. */
int fz_fdtab_look_up(int fd, uint32_t *ret_info);

/* O_NONBLOCK, from memory if that is safe.  Returns 0, 1 or -EBADF. */
int fz_fdtab_nonblocking(int fd, uint32_t info);

/* O_NONBLOCK was changed through us. */
void fz_fdtab_note_nonblocking(int fd, bool on);

/* A descriptor is duplicated or leaves the process: not OURS any more. */
void fz_fdtab_share(int fd);
void fz_fdtab_share_all(void);

/*
 * The program has set a timeout on fd.  Duplicates of it have the timeout too,
 * so from now on all sockets that may be duplicates are asked for theirs.
 */
void fz_fdtab_timeout_set(int fd);

/* Deadline from SO_RCVTIMEO or SO_SNDTIMEO; FZ_FOREVER if there is none. */
fz_nsec fz_fdtab_deadline(int fd, uint32_t info, bool sending);

#endif
