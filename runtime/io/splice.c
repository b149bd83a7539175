/* SPDX-License-Identifier: MIT */
/*
 * runtime/io/splice.c - copying inside the kernel: sendfile, splice, tee, vmsplice.
 *
 * A request on the ring would occupy a worker thread.  Instead try without waiting, which also
 * lets the kernel check the arguments; then wait until the end that is not ready becomes ready.  The
 * call may still wait in the middle (for a disk, for a socket with too little room), so it is
 * announced as brief.
 */
#include "runtime/io/io_internal.h"

#include <fcntl.h>
#include <poll.h>

#include "runtime/base/sys.h"
#include "runtime/io/socket.h"

/*
 * Park until the pinned descriptor is ready for events.  Returns more than 0 then, or -errno.  Returns
 * 0 without waiting if the real call must be made: it never waits for this descriptor (a file,
 * O_NONBLOCK, the wrong end), only the real call can wait for it, or a filter forbids to wait.
 */
static int64_t await(struct fz_fiber *self, struct fz_pin *pin, short events)
{
	const int fd = fz_pin_fd(pin);
	uint32_t info;
	enum fz_fd_kind kind;
	fz_nsec deadline;
	int64_t ret;
	long flags = fz_syscall3(__NR_fcntl, fd, F_GETFL, 0);

	if (flags < 0 || flags & O_NONBLOCK || fz_fdtab_look_up(fd, &info))
		return 0;
	kind = info & FZ_FD_KIND_MASK;
	if (kind != FZ_FD_SOCKET && kind != FZ_FD_PIPE)
		return 0;
	/* If the connection of a Unix socket ends, a call that waits answers otherwise than a later call. */
	if (info & FZ_FD_UNIX && events == POLLOUT)
		return 0;
	/* poll waits for SO_RCVLOWAT bytes, but splice would take fewer. */
	if (info & FZ_FD_LOW_WATER && events == POLLIN)
		return 0;
	if ((flags & O_ACCMODE) == (events == POLLIN ? O_WRONLY : O_RDONLY))
		return 0;
	deadline = fz_fdtab_deadline(fd, info, events == POLLOUT);
	if (deadline == FZ_FD_ASK_KERNEL)
		return 0;
	/* The kernel has just been asked for O_NONBLOCK. */
	pin->hinted = fz_fdtab_wait(fd, fz_fdtab_rests(info) & FZ_FD_HAD_TIMEOUT);
	ret = fz_io_wait_ready(self, pin, events, deadline, deadline == FZ_FOREVER);
	if (ret == FZ_OP_FORBIDDEN)
		return 0;
	return ret ? ret : -EAGAIN;
}

static bool never_waits(int fd)
{
	return fz_syscall3(__NR_fcntl, fd, F_GETFL, 0) & O_NONBLOCK;
}

static bool is_reader(int fd)
{
	return (fz_syscall3(__NR_fcntl, fd, F_GETFL, 0) & O_ACCMODE) == O_RDONLY;
}

/*
 * Wait until both ends are ready.  Returns more than 0 if it is worth trying again, 0 if only the real call
 * knows what to do, or -errno.
 */
static int64_t await_both(struct fz_fiber *self, struct fz_pin *in, struct fz_pin *out)
{
	int64_t first, second;

	if (never_waits(fz_pin_fd(in)) || never_waits(fz_pin_fd(out)))
		return 0;
	first = await(self, in, POLLIN);
	if (first < 0)
		return first;
	second = await(self, out, POLLOUT);
	return second ? second : first;
}

static bool is_kind(int fd, enum fz_fd_kind kind)
{
	uint32_t info;

	return !fz_fdtab_look_up(fd, &info) && (info & FZ_FD_KIND_MASK) == kind;
}

/*
 * A pipe is about to be spliced: from then on the kernel refuses to read it without waiting.  Let the
 * next read try first, and find that out; a request on the ring would go to a worker thread.
 */
static void note_spliced(int fd)
{
	fz_fdtab_change(fd, FZ_FD_RECV_WAITED, 0);
}

/*
 * After a short count, may the rest be written to this descriptor?  Not to a pipe, for which a short
 * count is right; not if a timeout may have passed; and not to a Unix socket if it or its peer is shut
 * down: another call would raise SIGPIPE, which a call that natively waits meanwhile does not.
 */
static bool takes_more(int out)
{
	uint32_t info;

	if (fz_fdtab_look_up(out, &info) || (info & FZ_FD_KIND_MASK) == FZ_FD_PIPE ||
	    info & FZ_FD_SEND_TIMEOUT)
		return false;
	/* Nothing is sent, but the kernel tells whether anything could be. */
	return !(info & FZ_FD_UNIX) ||
	       (info & FZ_FD_STREAM &&
		fz_syscall6(__NR_sendto, out, (long)"", 0, FZ_MSG_DONTWAIT | FZ_MSG_NOSIGNAL, 0,
			    0) == 0);
}

/*
 * Make the real call, whose argument n_at is the number of bytes.  A short count is final after a
 * handler; else the completion of a request of this kernel thread may have interrupted the call,
 * which then goes on.
 */
static int64_t make_whole(struct fz_fiber *self, struct fz_io_call *c, unsigned n_at, int out,
			  unsigned flags)
{
	struct fz_real_call call = fz_call_begin(self, flags | FZ_CALL_BRIEF);
	const size_t n = fz_io_clamp((size_t)c->args[n_at]);
	size_t done = 0;
	int64_t ret, outcome;

	do {
		ret = fz_io_make(c);
		if (ret > 0) {
			done += (size_t)ret;
			c->args[n_at] = (long)(n - done);
			/* Natively, splice does not wait for the pipe again once it has moved bytes. */
			if (c->number == __NR_splice)
				c->args[5] |= SPLICE_F_NONBLOCK;
			call.flags |= FZ_CALL_BEGUN;
		}
		outcome = ret > 0 && done < n && takes_more(out) ? -EINTR : ret;
	} while ((!done || !fz_call_handled(&call)) && fz_call_again(&call, outcome));
	fz_call_end(&call, ret);
	return done ? (int64_t)done : ret;
}

static int64_t sendfile_once(struct fz_fiber *self, int out, int in, int64_t *offset, size_t n)
{
	FZ_PINNED struct fz_pin pin = FZ_PIN_INIT(out);
	struct fz_io_call c;
	int64_t ret;

	/* sendfile has no flag against waiting.  Wrong arguments must not wait, hence the tests. */
	if (n > 0 && is_kind(in, FZ_FD_FILE) && !fz_io_is_ready(out, POLLOUT)) {
		fz_signal_mark(self);
		ret = await(self, &pin, POLLOUT);
		if (ret < 0)
			return ret;
	}
	c = (struct fz_io_call){ __NR_sendfile,
				 { fz_pin_fd(&pin), in, (long)offset, (long)n } };
	return make_whole(self, &c, 3, (int)c.args[0], 0);
}

int64_t fz_io_sendfile(struct fz_fiber *self, int out, int in, int64_t *offset, size_t n)
{
	return FZ_IO_CALL(sendfile_once(self, out, in, offset, n));
}

/* Make the real call, which may wait for what poll does not tell. */
static int64_t make_waiting(struct fz_fiber *self, const struct fz_io_call *c)
{
	return fz_io_make_announced(self, c,
				    FZ_CALL_GOES_ON | FZ_CALL_BRIEF | FZ_CALL_CANCELLABLE);
}

static int64_t real_splice(struct fz_fiber *self, int in, int64_t *in_offset, int out,
			   int64_t *out_offset, size_t n, unsigned flags)
{
	struct fz_io_call c = {
		__NR_splice, { in, (long)in_offset, out, (long)out_offset, (long)n, flags }
	};

	/* To a pipe, a short count is right; a socket must take all that the pipe has. */
	return is_kind(out, FZ_FD_SOCKET) ?
		       make_whole(self, &c, 4, out, FZ_CALL_GOES_ON | FZ_CALL_CANCELLABLE) :
		       make_waiting(self, &c);
}

static int64_t splice_once(struct fz_fiber *self, int in, int64_t *in_offset, int out,
			   int64_t *out_offset, size_t n, unsigned flags)
{
	FZ_PINNED struct fz_pin source = FZ_PIN_INIT(in), target = FZ_PIN_INIT(out);

	fz_io_test_cancel(self);
	fz_signal_mark(self);
	note_spliced(in);
	for (;;) {
		int64_t ret;

		/* TCP ignores SPLICE_F_NONBLOCK and looks at O_NONBLOCK only. */
		if (!(flags & SPLICE_F_NONBLOCK) && n > 0 && is_kind(in, FZ_FD_SOCKET) &&
		    is_kind(out, FZ_FD_PIPE)) {
			ret = await(self, &source, POLLIN);
			if (ret < 0)
				return ret;
			in = fz_pin_fd(&source);
		}
		ret = real_splice(self, in, in_offset, out, out_offset, n,
				  flags | SPLICE_F_NONBLOCK);
		if (ret != -EAGAIN || flags & SPLICE_F_NONBLOCK)
			return ret;
		ret = await_both(self, &source, &target);
		in = fz_pin_fd(&source);
		out = fz_pin_fd(&target);
		if (ret == 0)
			return real_splice(self, in, in_offset, out, out_offset, n, flags);
		if (ret < 0)
			return ret;
	}
}

int64_t fz_io_splice(struct fz_fiber *self, int in, int64_t *in_offset, int out,
		     int64_t *out_offset, size_t n, unsigned flags)
{
	return FZ_IO_CALL(splice_once(self, in, in_offset, out, out_offset, n, flags));
}

static int64_t tee_once(struct fz_fiber *self, int in, int out, size_t n, unsigned flags)
{
	FZ_PINNED struct fz_pin source = FZ_PIN_INIT(in), target = FZ_PIN_INIT(out);
	struct fz_io_call c = { __NR_tee, { 0, 0, (long)n } };
	int64_t ret;

	fz_io_test_cancel(self);
	fz_signal_mark(self);
	do {
		c.args[0] = in;
		c.args[1] = out;
		c.args[3] = flags | SPLICE_F_NONBLOCK;
		ret = fz_io_make(&c);
		if (ret != -EAGAIN || flags & SPLICE_F_NONBLOCK)
			return ret;
		ret = await_both(self, &source, &target);
		in = fz_pin_fd(&source);
		out = fz_pin_fd(&target);
	} while (ret > 0);
	c.args[0] = in;
	c.args[1] = out;
	c.args[3] = flags;
	return ret ? ret : make_waiting(self, &c);
}

int64_t fz_io_tee(struct fz_fiber *self, int in, int out, size_t n, unsigned flags)
{
	return FZ_IO_CALL(tee_once(self, in, out, n, flags));
}

static int64_t vmsplice_once(struct fz_fiber *self, int fd, const struct iovec *iov, size_t count,
			     unsigned flags)
{
	FZ_PINNED struct fz_pin pin = FZ_PIN_INIT(fd);
	struct fz_io_call c = { __NR_vmsplice, { 0, (long)iov, (long)count } };
	int64_t ret;

	fz_io_test_cancel(self);
	fz_signal_mark(self);
	note_spliced(fd);
	do {
		c.args[0] = fd;
		c.args[3] = flags | SPLICE_F_NONBLOCK;
		ret = fz_io_make(&c);
		if (ret != -EAGAIN || flags & SPLICE_F_NONBLOCK)
			return ret;
		ret = never_waits(fd) ? 0 : await(self, &pin, is_reader(fd) ? POLLIN : POLLOUT);
		fd = fz_pin_fd(&pin);
	} while (ret > 0);
	c.args[0] = fd;
	c.args[3] = flags;
	return ret ? ret : make_waiting(self, &c);
}

int64_t fz_io_vmsplice(struct fz_fiber *self, int fd, const struct iovec *iov, size_t count,
		       unsigned flags)
{
	return FZ_IO_CALL(vmsplice_once(self, fd, iov, count, flags));
}
