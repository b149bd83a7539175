/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_IO_IO_INTERNAL_H
#define FZ_RUNTIME_IO_IO_INTERNAL_H

/*
 * runtime/io/io_internal.h - what the files that implement runtime/io/io.h share.
 */

#include <asm/errno.h>
#include <limits.h>
#include <sys/uio.h>

#include "runtime/base/sys.h"
#include "runtime/io/fdtab.h"
#include "runtime/io/io.h"
#include "runtime/io/wait.h"

struct pollfd;

/* The kernel's MAX_RW_COUNT: one call never transfers more bytes. */
#define FZ_IO_MAX ((size_t)0x7ffff000)

static inline uint32_t fz_io_clamp(size_t n)
{
	return (uint32_t)(n < FZ_IO_MAX ? n : FZ_IO_MAX);
}

/*
 * Does the kernel answer at once, whatever the descriptor is, because n is 0, or because some of the
 * n bytes are beyond the program's addresses?  A request is cut down to FZ_IO_MAX bytes, so the ring
 * might not see those.
 */
static inline bool fz_io_is_refused_size(const void *p, size_t n)
{
	/* Stacks are near the end of the program's half of the addresses. */
	const uintptr_t end = (uintptr_t)1 << (64 - __builtin_clzl((uintptr_t)&end));

	return n == 0 || (n > FZ_IO_MAX && (n >= end || (uintptr_t)p >= end - n));
}

/*
 * Does the kernel answer at once, because the array is empty or wrong?  An array of one element must
 * be readable, because the library reads the element and passes it on as a plain buffer, cut down to
 * FZ_IO_MAX.  A longer array is read by the kernel.
 */
static inline bool fz_io_bad_vector(const struct iovec *iov, int count)
{
	return count <= 0 || count > IOV_MAX ||
	       (count == 1 &&
		(!fz_sys_readable(&iov->iov_base) || !fz_sys_readable(&iov->iov_len) ||
		 (ssize_t)iov->iov_len < 0));
}

/* Returns how many bytes of the array one call transfers. */
static inline size_t fz_io_total(const struct iovec *iov, size_t count)
{
	size_t total = 0;

	for (size_t i = 0; i < count && total < FZ_IO_MAX; i++)
		total += fz_io_clamp(iov[i].iov_len);
	return fz_io_clamp(total);
}

/* A read or write of the program's, and how far it has come.  On the stack of the call. */
struct fz_io_cursor {
	const struct fz_io_call *own;	/* what the program has called */
	/* the elements that are left; a single buffer is an array of one */
	const struct iovec *iov;
	int count;
	size_t skip;		/* bytes of iov[0] that are done */
	size_t done;		/* bytes of all that are done */
};

static inline void fz_io_cursor_advance(struct fz_io_cursor *c, size_t n)
{
	c->done += n;
	while (c->count && n >= c->iov->iov_len - c->skip) {
		n -= c->iov->iov_len - c->skip;
		c->skip = 0;
		c->iov++;
		c->count--;
	}
	c->skip += n;
	if (FZ_UNLIKELY(c->done >= FZ_IO_MAX))
		c->count = 0;
}

/* The rest of the first element, which is not empty; all parts together are no more than the kernel transfers in one call. */
static inline void fz_io_cursor_element(const struct fz_io_cursor *c, struct iovec *ret_part)
{
	const size_t room = FZ_IO_MAX - c->done;

	ret_part->iov_base = (char *)c->iov->iov_base + c->skip;
	ret_part->iov_len = c->iov->iov_len - c->skip < room ? c->iov->iov_len - c->skip : room;
}

/*
 * Returns what to transfer next: all remaining elements, or the rest of one in *ret_part; *ret_count elements.  All parts
 * together are no more than the kernel transfers in one call.
 */
static inline const struct iovec *fz_io_cursor_rest(const struct fz_io_cursor *c, struct iovec *ret_part,
						    int *ret_count)
{
	*ret_count = c->count;
	if (!c->skip && (!c->done || fz_io_total(c->iov, (size_t)c->count) <= FZ_IO_MAX - c->done))
		return c->iov;
	*ret_count = 1;
	fz_io_cursor_element(c, ret_part);
	return ret_part;
}

/*
 * Returns the program's call for what is left, on descriptor fd.  The call may point to *ret_part.
 */
struct fz_io_call fz_io_cursor_call(const struct fz_io_cursor *c, int fd, struct iovec *ret_part);

/*
 * Does the answer to RWF_NOWAIT say that the kernel cannot try this kind of file without waiting?
 */
static inline bool fz_io_cannot_try(int64_t ret)
{
	return ret == -EOPNOTSUPP || ret == -ENOSYS;
}

/* Is fd ready for events now, or is there an error?  Then the real call does not wait. */
static inline bool fz_io_is_ready(int fd, short events)
{
	return fz_sys_poll_now(fd, events) != 0;
}

/* Does the array ask for 0 bytes, or can it not be read?  Then the kernel answers at once. */
bool fz_io_asks_for_nothing(const struct iovec *iov, int count);

/*
 * Read or write what is left without waiting, at offset or at FZ_IO_CURPOS; check the result with
 * fz_io_cannot_try().
 */
int64_t fz_io_try(bool writing, int fd, const struct fz_io_cursor *c, int64_t offset);

/* Make the program's call for what is left, announced.  ready: fd is ready, so the call is announced as brief. */
int64_t fz_io_real_transfer(struct fz_fiber *self, int fd, const struct fz_io_cursor *c,
			    bool ready);

/*
 * Transfers to and from files.  info: from fz_fdtab_look_up(), of kind FZ_FD_FILE.  offset may be
 * FZ_IO_CURPOS.
 */
int64_t fz_io_file_read(struct fz_fiber *self, int fd, uint32_t info, struct fz_io_cursor *c,
			int64_t offset);
/* flags: RWF_*. */
int64_t fz_io_file_write(struct fz_fiber *self, int fd, uint32_t info,
			 const struct fz_io_cursor *c, int64_t offset, int flags);

/*
 * Transfers to and from pipes and FIFOs without O_NONBLOCK.  info: from fz_fdtab_look_up(), of
 * kind FZ_FD_PIPE.
 */
int64_t fz_io_pipe_read(struct fz_fiber *self, int fd, uint32_t info,
			const struct fz_io_cursor *c);
int64_t fz_io_pipe_write(struct fz_fiber *self, int fd, uint32_t info, struct fz_io_cursor *c);

/*
 * Repeat the program's call until nothing is left: a write, a recv with MSG_WAITALL, or a read from
 * an endless device.  The calls are announced, or announced as brief.  After a short count the next
 * call follows, unless a handler has run.  The end of a stream, or an error, ends it.
 */
int64_t fz_io_make_whole(struct fz_fiber *self, int fd, struct fz_io_cursor *c, bool brief);

/* ---- poll and select (poll.c) --------------------------------------------- */

/* How many descriptors a fiber waits for by requests; for more, the kernel's own poll costs less. */
enum { FZ_IO_MAX_POLLS = 64 };

/*
 * A call that waits for several descriptors, for fz_io_wait_many(): poll or select.  On the stack of
 * the call; the functions find the rest of it by fz_container_of().
 */
struct fz_io_many {
	/* Make the call without waiting.  Returns a number, 0 if nothing is ready, or -errno. */
	int (*look)(struct fz_fiber *self, struct fz_io_many *m);
	/* Make the call announced: it waits in the kernel. */
	int (*announced)(struct fz_fiber *self, struct fz_io_many *m, fz_nsec deadline);
	/*
	 * Call fz_io_want() for each descriptor, after look() has found nothing ready.  Returns false if
	 * these are too many.
	 */
	bool (*gather)(struct fz_io_many *m);
	/* The call can be made only once, because what it has overwritten cannot be restored. */
	bool once;
	long poll_number;		/* of the call that asks for hang-ups: poll or ppoll */
	/* What to wait for: empty before gather().  On the stack of fz_io_wait_many(). */
	struct pollfd *wanted;
	unsigned count;
};

/* Returns false if there is no room. */
bool fz_io_want(struct fz_io_many *m, int fd, short events);

/*
 * Make the call: look; then wait for one request per descriptor, until the first is ready; then look
 * again.  mask: the signal mask while it waits, or NULL.  If it need not wait, the mask is not set:
 * signals that the mask would accept stay pending, as natively.
 */
int fz_io_wait_many(struct fz_fiber *self, struct fz_io_many *m, fz_nsec deadline,
		    const uint64_t *mask);

#endif
