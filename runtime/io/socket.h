/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_IO_SOCKET_H
#define FZ_RUNTIME_IO_SOCKET_H

/*
 * runtime/io/socket.h - what the calls on sockets share (recv.c, send.c, connect.c), and readv and
 * writev on a socket, for runtime/io/io.c.
 */

#include "runtime/io/wait.h"

struct iovec;

enum {
	FZ_MSG_PEEK = 0x2,
	FZ_MSG_DONTWAIT = 0x40,
	FZ_MSG_WAITALL = 0x100,
	FZ_MSG_ERRQUEUE = 0x2000,
	FZ_MSG_NOSIGNAL = 0x4000,
	FZ_MSG_WAITFORONE = 0x10000,
	FZ_MSG_FASTOPEN = 0x20000000,
};

/*
 * The kernel's struct msghdr and struct mmsghdr; the second has the message's length behind the
 * header.
 */
struct fz_user_msghdr {
	void *name;
	int name_len;
	struct iovec *iov;
	size_t iov_count;
	void *control;
	size_t control_len;
	unsigned flags;
};

struct fz_message_slot {
	struct fz_user_msghdr header;
	unsigned length;
};

/*
 * May this call on a socket, with send or recv flags, wait?  Returns 1: yes, as a fiber; 0: it
 * never waits, make the real call; -EBADF.  Unless -EBADF, *ret_info is what fz_fdtab_look_up()
 * knows of fd.
 */
int fz_io_may_wait(struct fz_fiber *self, int fd, int flags, uint32_t *ret_info);

/*
 * A call that is tried without waiting and waits for readiness while it is refused.  On the stack
 * of the call.
 */
struct fz_io_attempt {
	struct fz_io_call call;		/* descriptor and flags are filled in for each attempt */
	struct fz_pin *pin;
	uint32_t info;			/* of the descriptor: from fz_io_may_wait() */
	unsigned flags_at;		/* number of the argument that is the flags */
	int flags;
	bool sends;
	bool only_tries;		/* return -EAGAIN when refused, do not wait */
	bool only_waits;		/* do not try: make the real call, announced */
	/*
	 * An earlier part is done and its count must be returned: neither cancellation nor
	 * restart.
	 */
	bool begun;
	fz_nsec deadline;
};

/*
 * Returns the deadline from SO_RCVTIMEO or SO_SNDTIMEO, counted from the first time that it is
 * asked for, and stores it in a->deadline, which is 0 before.
 */
fz_nsec fz_io_attempt_deadline(struct fz_io_attempt *a);

/*
 * Try and wait until the call is done.  Returns its result, -EAGAIN at the deadline, -EINTR, or,
 * if begun, -ECANCELED.
 */
int64_t fz_io_try_or_wait(struct fz_fiber *self, struct fz_io_attempt *a);

/* readv and writev on a socket.  0 < count <= IOV_MAX. */
int64_t fz_io_socket_readv(struct fz_fiber *self, int fd, const struct iovec *iov, int count);
int64_t fz_io_socket_writev(struct fz_fiber *self, int fd, const struct iovec *iov, int count);

#endif
