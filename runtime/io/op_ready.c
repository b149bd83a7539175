/* SPDX-License-Identifier: MIT */
/*
 * runtime/io/op_ready.c - requests when the backend is epoll: try without waiting, wait until the
 * descriptor is ready, try again.
 *
 * If the kernel cannot try a call without waiting, the call is made once the descriptor is ready.  If
 * another thread takes the data first, the call blocks its carrier, and the monitor preempts.  The call
 * is announced if readiness says nothing about it (connecting, files), and if it stays refused although
 * the descriptor is ready, such as a datagram to a full Unix socket.
 */
#include "runtime/io/op.h"

#include <asm/errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <sys/uio.h>

#include "runtime/backend/watch.h"
#include "runtime/base/features.h"
#include "runtime/base/sys.h"
#include "runtime/base/time.h"
#include "runtime/io/fdtab.h"
#include "runtime/io/hints.h"
#include "runtime/io/real_call.h"
#include "runtime/io/wait.h"
#include "runtime/sched/sched.h"

enum {
	FLAG_PEEK = 0x2,
	FLAG_DONTWAIT = 0x40,
	FLAG_WAITALL = 0x100,
	OPTION_LISTENS = 30,
};

/* Result of attempt(), never of fz_op_*: only the real call can tell. */
enum { MUST_ANNOUNCE = -1100 };

#define CURRENT_POSITION (~(uint64_t)0)

/* Returns the events that are ready, 0, or -errno: a filter forbids to ask. */
static long ready_now(int fd, uint32_t events)
{
	return fz_sys_poll_now(fd, (short)events);
}

static bool is_vector(const struct fz_op *op)
{
	return op->opcode == IORING_OP_READV || op->opcode == IORING_OP_WRITEV;
}

static bool writes(const struct fz_op *op)
{
	return op->opcode == IORING_OP_WRITE || op->opcode == IORING_OP_WRITEV;
}

/* The vector call for READ, READV, WRITE or WRITEV; one: room for a vector; flags as of preadv2. */
static struct fz_io_call transfer_of(const struct fz_op *op, int fd, long flags, struct iovec *one)
{
	const long iov = is_vector(op) ? (long)op->addr : (long)one, count = is_vector(op) ? op->len : 1;
	const long offset = (long)op->off;

	*one = (struct iovec){ .iov_base = (void *)(uintptr_t)op->addr, .iov_len = op->len };
	flags |= op->op_flags;
	if (flags)
		return (struct fz_io_call){ writes(op) ? __NR_pwritev2 : __NR_preadv2,
					    { fd, iov, count, offset, -(long)(op->off >> 63), flags } };
	if (op->off == CURRENT_POSITION)
		return (struct fz_io_call){ writes(op) ? __NR_writev : __NR_readv, { fd, iov, count } };
	return (struct fz_io_call){ writes(op) ? __NR_pwritev : __NR_preadv, { fd, iov, count, offset } };
}

/*
 * The system call that stands in for the request.  done: the bytes of a receive or send that are done; flags: added
 * to the request's own; one: room for a vector.  Number -1: no call stands in for it.
 */
static struct fz_io_call call_of(const struct fz_op *op, int fd, size_t done, long flags, struct iovec *one)
{
	const long addr = (long)op->addr, all = flags | (long)op->op_flags;

	switch (op->opcode) {
	case IORING_OP_ACCEPT:
		return (struct fz_io_call){ __NR_accept4, { fd, addr, (long)op->off, all } };
	case IORING_OP_CONNECT:
		return (struct fz_io_call){ __NR_connect, { fd, addr, (long)op->off } };
	case IORING_OP_READ:
	case IORING_OP_READV:
	case IORING_OP_WRITE:
	case IORING_OP_WRITEV:
		return transfer_of(op, fd, flags, one);
	case IORING_OP_RECVMSG:
	case IORING_OP_SENDMSG:
		return (struct fz_io_call){ op->opcode == IORING_OP_RECVMSG ? __NR_recvmsg : __NR_sendmsg,
					    { fd, addr, all } };
	case IORING_OP_RECV:
	case IORING_OP_SEND:
		return (struct fz_io_call){ op->opcode == IORING_OP_RECV ? __NR_recvfrom : __NR_sendto,
					    { fd, addr + (long)done, (long)(op->len - done), all } };
	default:
		return (struct fz_io_call){ .number = -1 };
	}
}

static long make(const struct fz_op *op, int fd, size_t done, long flags)
{
	struct iovec one;
	const struct fz_io_call call = call_of(op, fd, done, flags, &one);

	return fz_io_make(&call);
}

/* Has a filter answered ret to the call in place of the request, which call_of() returns? */
static bool is_denied(const struct fz_op *op, long flags, long ret)
{
	struct iovec one;
	const struct fz_io_call call = call_of(op, -1, 0, flags, &one);
	const bool message = call.number == __NR_recvmsg || call.number == __NR_sendmsg;

	if (ret >= 0 || ret <= FZ_OP_TIMEOUT || call.number == -1)
		return false;
	/* All but the addresses and lengths, of which the kernel must see none. */
	return fz_sys_is_denied(ret, call.number, 0, message ? call.args[2] : 0, call.args[3], call.args[4],
				call.args[5]);
}

static uint32_t wanted_events(const struct fz_op *op)
{
	switch (op->opcode) {
	case IORING_OP_POLL_ADD:
		return op->op_flags;
	case IORING_OP_SEND:
	case IORING_OP_SENDMSG:
	case IORING_OP_WRITE:
	case IORING_OP_WRITEV:
		return POLLOUT;
	default:
		return POLLIN;
	}
}

static long try_transfer(const struct fz_op *op, int fd)
{
	long ret = -EOPNOTSUPP;

	if (fz_feature_allowed(FZ_FEATURE_RWF_NOWAIT))
		ret = make(op, fd, 0, RWF_NOWAIT);
	/* A kernel before 4.14, and some kinds of file, cannot try without waiting. */
	if (ret != -EOPNOTSUPP && ret != -ENOSYS) {
		if (!is_denied(op, RWF_NOWAIT, ret))
			return ret;
		fz_feature_lose(FZ_FEATURE_RWF_NOWAIT);
	}
	ret = ready_now(fd, wanted_events(op));
	if (ret < 0)
		return FZ_OP_FORBIDDEN;
	if (ret > 0)
		return make(op, fd, 0, 0);
	/* On the wrong end of a pipe a transfer is an error at once; one of 0 bytes shows that. */
	ret = fz_syscall3(writes(op) ? __NR_write : __NR_read, fd, 0, 0);
	return ret < 0 ? ret : -EAGAIN;
}

/*
 * Has the process used up its descriptor numbers?  Natively accept reserves a number before it waits,
 * and fails with EMFILE at once.  The test is accept on our epoll instance: that always fails, but with
 * EMFILE only if no number is free, because the kernel looks at the kind of file later.  A kernel
 * before 5.6 looks at the kind first, so there the test finds nothing, and accept waits.
 */
static bool lacks_number(void)
{
	const struct fz_epoll *e = &fz_sched.processors[0].backend.epoll;

	/* relaxed: as in fz_epoll_active(). */
	return fz_syscall4(__NR_accept4, atomic_load_explicit(&e->fd, memory_order_relaxed), 0, 0,
			   0) == -EMFILE;
}

/*
 * Make the call without waiting.  *done counts the bytes that MSG_WAITALL has gathered so far.
 * Returns -EAGAIN if the call would have to wait, MUST_ANNOUNCE if it cannot be tried,
 * FZ_OP_FORBIDDEN if a filter forbids to ask for readiness.
 */
static long attempt(const struct fz_op *op, int fd, size_t *done)
{
	long flags = (long)op->op_flags, ret;

	switch (op->opcode) {
	case IORING_OP_POLL_ADD:
		ret = ready_now(fd, op->op_flags);
		return ret > 0 ? ret : ret ? FZ_OP_FORBIDDEN : -EAGAIN;
	case IORING_OP_ACCEPT:
		/* Wrong flags, and a socket that does not listen, are an error at once. */
		if (!(flags & ~(O_NONBLOCK | O_CLOEXEC)) && (ret = ready_now(fd, POLLIN)) <= 0) {
			const int listens = fz_sys_socket_option(fd, OPTION_LISTENS);

			if (ret < 0 || (listens < 0 && listens != -EBADF && listens != -ENOTSOCK))
				return FZ_OP_FORBIDDEN;
			if (listens > 0)
				return lacks_number() ? -EMFILE : -EAGAIN;
		}
		return make(op, fd, 0, 0);
	case IORING_OP_READ:
	case IORING_OP_READV:
	case IORING_OP_WRITE:
	case IORING_OP_WRITEV:
		return try_transfer(op, fd);
	case IORING_OP_RECVMSG:
	case IORING_OP_SENDMSG:
		/* Only the kernel can gather MSG_WAITALL across vectors. */
		if (flags & FLAG_WAITALL)
			return MUST_ANNOUNCE;
		return make(op, fd, 0, FLAG_DONTWAIT);
	case IORING_OP_RECV:
	case IORING_OP_SEND:
		break;
	default:
		return MUST_ANNOUNCE;
	}
	for (;;) {
		ret = make(op, fd, *done, FLAG_DONTWAIT);
		if (ret <= 0 && *done)
			return ret == -EAGAIN ? ret : (long)*done;
		if (ret <= 0 || !(flags & FLAG_WAITALL) || *done + (size_t)ret == op->len)
			return ret < 0 ? ret : (long)*done + ret;
		/* A message has bounds: a second attempt must not join two messages. */
		if (op->opcode == IORING_OP_RECV && !*done && !fz_sys_is_stream(fd))
			return ret;
		/* Peeked bytes stay in the socket, so waiting for readiness would not wait. */
		if (flags & FLAG_PEEK)
			return MUST_ANNOUNCE;
		*done += (size_t)ret;
	}
}

static long real_call(const struct fz_op *op, int fd, size_t done)
{
	struct iovec one;
	const struct fz_io_call call = call_of(op, fd, done, 0, &one);
	long ret;

	/* It comes here if the rings have just been given up. */
	if (call.number == -1)
		return FZ_OP_FORBIDDEN;
	ret = fz_io_make(&call);
	return ret < 0 ? ret : (long)done + ret;
}

/*
 * Wait until the first of n watches fires.  pin: of the only watch, or NULL.  hinted: as in struct
 * fz_op.  Returns 0, FZ_OP_*, or -errno if a descriptor cannot be waited for.
 */
static int await(struct fz_fiber *self, struct fz_watch *watches, unsigned n,
		 struct fz_pin *pin, fz_nsec deadline, unsigned flags, uint32_t hinted)
{
	enum fz_why why = FZ_WHY_DONE;
	struct fz_ticket ticket;
	bool last[n];
	int err = 0;

	fz_enter_runtime(self);
	if (FZ_UNLIKELY(fz_op_is_ended(self, flags))) {
		fz_leave_runtime(self);
		return FZ_OP_SIGNAL;
	}
	if (hinted)
		fz_hints_begin(self, hinted);
	ticket = fz_wait_arm(self, flags);
	if (pin)
		fz_pin_begin(pin, ticket, true);
	for (unsigned i = 0; i < n && !err; i++) {
		struct fz_epoll *e = fz_backend_epoll(&fz_processor_of(self)->backend);
		/* relaxed: only this fiber knows the watch until it is linked. */
		const int fd = atomic_load_explicit(&watches[i].fd, memory_order_relaxed);

		err = fz_watch_start(e, &watches[i], ticket);
		if (!err)
			fz_fdtab_change(fd, 0, FZ_FD_WATCHED);
		/*
		 * EPERM: a regular file, for which poll has the wanted event always or never.  It
		 * needs no watch.
		 */
		if (err == -EPERM && !watches[i].exclusive && !fz_epoll_is_denied(err))
			err = 0;
	}
	if (err)
		fz_wait_disarm(self);
	else
		why = fz_park(self, deadline);
	/* Unlink before handlers run: a handler may leave the call by siglongjmp. */
	for (unsigned i = 0; i < n; i++)
		last[i] = fz_watch_end(&watches[i]);
	for (unsigned i = 0; i < n; i++)
		if (FZ_UNLIKELY(last[i]))
			/* relaxed: it is not linked. */
			fz_pin_close_copy(self, atomic_load_explicit(&watches[i].fd, memory_order_relaxed));
	if (pin)
		fz_pin_end(pin, why);
	fz_hints_end(self);
	fz_leave_after(self, why);
	return err ? err : fz_op_outcome(why);
}

bool fz_op_is_refused(int fd, uint32_t events, unsigned *count)
{
	/* With so many refusals in a row it is unlikely that faster threads took the data each time. */
	enum { REFUSALS = 16 };
	long ready;

	if (++*count < REFUSALS)
		return false;
	ready = ready_now(fd, events);
	if (ready < 0)
		return true;
	if (ready)
		return *count >= 2 * REFUSALS;
	*count = 1;
	return false;
}

/*
 * Make the real call, announced.  flags: FZ_CALL_*.  Returns FZ_OP_SIGNAL after a handler: the
 * caller knows whether the call goes on.
 */
static long make_announced(struct fz_fiber *self, const struct fz_op *op, int fd, size_t done,
			   fz_nsec deadline, unsigned flags)
{
	struct fz_real_call call = fz_call_begin(self, flags);
	long ret;

	do {
		ret = flags & FZ_CALL_GOES_ON && fz_call_handled(&call) ?
			      -EINTR : real_call(op, fd, done);
		/* The kernel starts the timeout anew for each attempt: make none past the deadline. */
		if (ret == -EINTR && !fz_call_handled(&call) && fz_now() >= deadline)
			ret = FZ_OP_TIMEOUT;
	} while (fz_call_again(&call, ret));
	fz_call_end(&call, ret);
	return ret == -EINTR ? FZ_OP_SIGNAL : ret;
}

int fz_op_ready_wait(struct fz_fiber *self, const struct fz_op *op, fz_nsec deadline,
		     unsigned flags)
{
	FZ_PINNED struct fz_pin own = FZ_PIN_INIT(op->fd);
	struct fz_pin *pin = fz_op_pin(op, &own);
	struct fz_watch w;
	unsigned refusals = 0;
	size_t done = 0;
	bool fired = false;
	long ret;
	int fd;

	for (;;) {
		fd = fz_pin_fd(pin);
		ret = attempt(op, fd, &done);
		/*
		 * A filter forbids poll, so believe what epoll reported.  If another thread has taken the
		 * event, the caller tries in vain and waits again.
		 */
		if (ret == FZ_OP_FORBIDDEN && op->opcode == IORING_OP_POLL_ADD)
			ret = fired ? (long)op->op_flags : -EAGAIN;
		if (ret != -EAGAIN || (op->opcode == IORING_OP_SEND && op->op_flags & FLAG_DONTWAIT))
			break;
		if (fz_op_is_refused(fd, wanted_events(op), &refusals)) {
			ret = MUST_ANNOUNCE;
			break;
		}
		fz_watch_init(&w, fd, wanted_events(op), op->opcode != IORING_OP_POLL_ADD);
		fz_waits_for(self, FZ_FOR_REQUEST, op);
		ret = await(self, &w, 1, pin, deadline, flags, op->hinted);
		fired = ret == 0;
		if (fired)
			continue;
		/* The descriptor was closed since the attempt; go on with the copy. */
		if (ret == -EBADF && fd != fz_pin_fd(pin))
			continue;
		/* The file cannot be waited for, or there is no room for another watch. */
		if (ret > FZ_OP_TIMEOUT && ret != -EBADF)
			ret = MUST_ANNOUNCE;
		break;
	}
	/* Answer like the ring; the caller then makes poll's real call. */
	if (ret == MUST_ANNOUNCE && op->opcode == IORING_OP_POLL_ADD)
		ret = -EINVAL;
	if (ret == MUST_ANNOUNCE)
		ret = make_announced(self, op, fz_pin_fd(pin), done, deadline,
				     (flags & FZ_WAIT_SIGNAL ? FZ_CALL_GOES_ON : 0) |
					     (flags & FZ_WAIT_CANCEL ? FZ_CALL_CANCELLABLE : 0) |
					     (done ? FZ_CALL_BEGUN : 0));
	if (FZ_UNLIKELY(!done && is_denied(op, 0, ret)))
		return FZ_OP_FORBIDDEN;
	return ret < 0 && done ? (int)done : (int)ret;
}

int fz_op_ready_poll(struct fz_fiber *self, const struct pollfd *fds, unsigned n,
		     fz_nsec deadline, unsigned flags)
{
	const struct fz_ready ready = { fds, n };
	struct fz_watch watches[n];
	int ret;

	for (unsigned i = 0; i < n; i++)
		fz_watch_init(&watches[i], fds[i].fd, (uint16_t)fds[i].events, false);
	fz_waits_for(self, FZ_FOR_READY, &ready);
	ret = await(self, watches, n, NULL, deadline, flags, 0);
	/* EBADF: a descriptor was closed meanwhile.  The caller calls poll, which reports that. */
	if (ret == 0 || ret == -EBADF)
		return 1;
	return ret <= FZ_OP_TIMEOUT ? ret : -EINVAL;
}
