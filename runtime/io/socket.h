/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_IO_SOCKET_H
#define FZ_RUNTIME_IO_SOCKET_H

/*
 * runtime/io/socket.h - what the calls on sockets share (recv.c, send.c), readv and writev on a socket,
 * for runtime/io/io.c, and accept and connect.
 */

#include "runtime/backend/filter.h"
#include "runtime/io/fdtab.h"
#include "runtime/io/wait.h"

enum {
	FZ_MSG_OOB = 0x1,
	FZ_MSG_PEEK = 0x2,
	FZ_MSG_CTRUNC = 0x8,
	FZ_MSG_DONTWAIT = 0x40,
	FZ_MSG_WAITALL = 0x100,
	FZ_MSG_ERRQUEUE = 0x2000,
	FZ_MSG_NOSIGNAL = 0x4000,
	FZ_MSG_WAITFORONE = 0x10000,
	FZ_MSG_FASTOPEN = 0x20000000,
};

/*
 * The kernel's struct msghdr, and struct mmsghdr, which has the message's length behind the header.
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
 * May the program's system call `number` on a socket, with send or recv flags, wait?  Returns
 *	1	it may, and the calling fiber then parks
 *	0	it never waits: make the real call
 *	-EBADF
 *	FZ_OP_FORBIDDEN	a filter forbids to ask, or the call itself
 * Unless it returns -EBADF, *ret_info is what fz_fdtab_look_up() knows of fd.
 */
int fz_io_may_wait(struct fz_fiber *self, long number, int fd, int flags, uint32_t *ret_info);

/*
 * The two steps of fz_io_may_wait(), for a call that need not know of O_NONBLOCK before it is refused.
 * Only the second asks for O_NONBLOCK: by a system call, unless the descriptor is FZ_FD_OURS.
 */
int fz_io_could_wait(struct fz_fiber *self, long number, int fd, int flags, uint32_t *ret_info);
int fz_io_is_blocking(int fd, uint32_t info);

/* Make a call that never parks, or return its error.  wait: what fz_io_may_wait() has returned, not 1. */
int64_t fz_io_make_at_once(struct fz_fiber *self, int wait, const struct fz_io_call *own);

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
	/* the program has made another call: return FZ_OP_FORBIDDEN if a filter forbids this one */
	bool stands_in;
	long program;			/* number of the call that the program has made */
	bool only_waits;		/* do not try: make the real call, announced */
	/*
	 * An earlier part is done and its count must be returned, so the call neither acts on a
	 * cancellation nor is restarted.
	 */
	bool begun;
	bool refused;			/* an attempt was refused with EAGAIN: wait before the next one */
	/* a part of the program's call is done: leave the socket's error to the program's next call */
	bool rest;
	/* a part of the message is received: return -EPIPE at the mark of urgent data */
	bool inside;
	size_t room;			/* for ancillary data, in the program's message */
	struct fz_user_msghdr *message;	/* the program's, for a call that receives */
	fz_nsec deadline;
	bool checked;			/* a send on a Unix socket has asked whether it rested on what was wrong */
};

/*
 * Returns the deadline from SO_RCVTIMEO or SO_SNDTIMEO.  The timeout begins with the first call of
 * this function, which stores the deadline in a->deadline; 0 there means not asked yet.  As natively, what the program
 * sets after that does not matter.
 */
fz_nsec fz_io_attempt_deadline(struct fz_io_attempt *a);

/*
 * Try and wait until the call is done.  Returns its result, -EAGAIN at the deadline, or -EINTR after a
 * handler; with a->begun also -ECANCELED; with a->stands_in also FZ_OP_FORBIDDEN.
 */
int64_t fz_io_try_or_wait(struct fz_fiber *self, struct fz_io_attempt *a);

/*
 * For a call that receives and has received a part.  Does an error end the call?  The error stays for the program's next
 * call.
 */
bool fz_io_is_broken(const struct fz_io_attempt *a);

/* Is the mark of urgent data before the next byte?  A call that has received bytes ends there. */
bool fz_io_is_at_mark(const struct fz_io_attempt *a);

/*
 * May the library look for what ends a call, or for what is behind a descriptor, by system calls that the program does not
 * make?  A filter of the program's may end the process for these.
 */
static inline bool fz_io_may_look(void)
{
	/* relaxed: as in fz_filter_forbids(). */
	return !atomic_load_explicit(&fz_filter_is_programs, memory_order_relaxed);
}

/* Must a call that receives be recvmsg, which alone tells of descriptors?  info: of the descriptor. */
static inline bool fz_io_looks_for_descriptors(uint32_t info)
{
	return info & FZ_FD_UNIX && fz_io_may_look();
}

/* ---- by parts (message.c) --------------------------------------------------- */

struct fz_io_cursor;

/*
 * How many of all bytes that it asks for does a call wait for, which receives with these flags?  1: for any.
 * SIZE_MAX: for all.  wait: from fz_io_may_wait(); set to FZ_OP_FORBIDDEN if a filter forbids to ask, so that only the
 * kernel knows.
 */
size_t fz_io_least(int fd, uint32_t info, int flags, int *wait);

/*
 * Before the first attempt: can only the kernel gather that many, because the bytes stay where they are, or must be those
 * of one sender (SO_PASSCRED)?  msg: the program's message, or NULL; stores how much room it has for ancillary data.
 */
bool fz_io_kernel_gathers(struct fz_io_attempt *a, const struct fz_user_msghdr *msg);

/*
 * Send or receive what *c has left: wait, transfer what the stream has room or data for, and so on until `least` bytes of
 * all are done.  If some are done before, a part of the program's call is.  Returns how many are done, or -errno if none is,
 * also FZ_OP_FORBIDDEN.
 */
int64_t fz_io_by_parts(struct fz_fiber *self, struct fz_io_attempt *a, struct fz_io_cursor *c, size_t least);

/* fz_io_by_parts() after a part, by the system call that the program has made, because a filter forbids others. */
void fz_io_rest_forbidden(struct fz_fiber *self, struct fz_io_attempt *a, struct fz_io_cursor *c, size_t least);

/*
 * The first `done` bytes of the message are done: go on until `least` are.  forbidden: a filter forbids other calls than
 * the program's.  Returns the total.
 */
size_t fz_io_rest_of_message(struct fz_fiber *self, struct fz_io_attempt *a, struct fz_user_msghdr *msg,
			     size_t done, size_t least, bool forbidden);

/* read, write, readv and writev on a socket.  0 < c->count <= IOV_MAX. */
int64_t fz_io_socket_read(struct fz_fiber *self, int fd, void *buf, size_t n);
int64_t fz_io_socket_write(struct fz_fiber *self, int fd, const void *buf, size_t n);
int64_t fz_io_socket_readv(struct fz_fiber *self, int fd, const struct fz_io_cursor *c);
int64_t fz_io_socket_writev(struct fz_fiber *self, int fd, struct fz_io_cursor *c);

#endif
