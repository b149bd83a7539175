/* SPDX-License-Identifier: MIT */
/*
 * runtime/io/connect.c - accept and connect.
 */
#include "runtime/io/io_internal.h"

#include <fcntl.h>
#include <poll.h>

#include "runtime/backend/backend.h"
#include "runtime/base/time.h"
#include "runtime/io/socket.h"

enum {
	LEVEL_SOCKET = 1,
	OPTION_ERROR = 4,
};

int fz_io_accept(struct fz_fiber *self, long number, int fd, void *addr, uint32_t *addr_len,
		 int flags)
{
	const struct fz_io_call own = { number, { fd, (long)addr, (long)addr_len, flags } };
	uint32_t info, inherited;
	int wait = fz_io_may_wait(self, number, fd, 0, &info);
	int64_t ret;

	if (wait == -EBADF)
		return wait;
	if (wait > 0) {
		struct fz_op op = {
			.opcode = IORING_OP_ACCEPT,
			.hinted = true,
			.fd = fd,
			.addr = (uintptr_t)addr,
			.off = (uintptr_t)addr_len,
			.op_flags = (uint32_t)flags,
		};
		fz_nsec deadline = fz_fdtab_deadline(fd, info, false);

		if (deadline == FZ_FD_ASK_KERNEL) {
			ret = fz_io_make_own(self, &own, fd, true);
		} else {
			ret = fz_io_run(self, &op, deadline, -EAGAIN, deadline == FZ_FOREVER);
			if (ret == FZ_OP_FORBIDDEN)
				ret = fz_io_make_own(self, &own, fd, deadline == FZ_FOREVER);
		}
	} else {
		ret = fz_io_make_at_once(self, wait, &own);
	}
	if (ret >= 0) {
		/* The kernel copies the listener's kind and timeouts to the accepted socket. */
		inherited = info & (FZ_FD_RECV_TIMEOUT | FZ_FD_SEND_TIMEOUT | FZ_FD_STREAM |
				    FZ_FD_UNIX);
		fz_fdtab_set((int)ret, FZ_FD_SOCKET | FZ_FD_OURS | inherited |
					       (flags & O_NONBLOCK ? FZ_FD_NONBLOCK : 0));
	}
	return (int)ret;
}

/* A connection attempt is under way: wait for its end.  Returns 0 or -errno. */
static int await_connection(struct fz_fiber *self, struct fz_pin *pin, fz_nsec deadline)
{
	int error = 0;
	uint32_t size = sizeof(error);
	int64_t ret;

	fz_signal_mark(self);
	ret = fz_io_wait_ready(self, pin, POLLOUT, deadline, false);
	/* FZ_OP_FORBIDDEN, too: the program may wait for the end of the attempt by poll. */
	if (ret == FZ_OP_FORBIDDEN)
		ret = 0;
	if (ret <= 0)
		return ret ? (int)ret : -EINPROGRESS;
	ret = fz_syscall5(__NR_getsockopt, fz_pin_fd(pin), LEVEL_SOCKET, OPTION_ERROR,
			  (long)&error, (long)&size);
	return ret ? (int)ret : -error;
}

static int connect_at_once(struct fz_fiber *self, int fd, const void *addr, uint32_t addr_len,
			   fz_nsec deadline)
{
	struct fz_real_call call = fz_call_begin(self, FZ_CALL_CANCELLABLE | FZ_CALL_BRIEF);
	int64_t ret;

	do {
		ret = fz_syscall3(__NR_connect, fd, (long)addr, addr_len);
		/* Each attempt has the whole timeout (SO_SNDTIMEO): make none past the deadline. */
		if (ret == -EINTR && !fz_call_handled(&call) && fz_now() >= deadline)
			ret = -EAGAIN;
	} while (fz_call_again(&call, ret));
	fz_call_end(&call, ret);
	return (int)ret;
}

int fz_io_connect(struct fz_fiber *self, int fd, const void *addr, uint32_t addr_len)
{
	FZ_PINNED struct fz_pin pin = FZ_PIN_INIT(fd);
	struct fz_op op = {
		.opcode = IORING_OP_CONNECT,
		.hinted = true,
		.fd = fd,
		.pin = &pin,
		.addr = (uintptr_t)addr,
		.off = addr_len,
	};
	fz_nsec deadline;
	uint32_t info;
	bool restart;
	int64_t ret;
	int wait = fz_io_may_wait(self, __NR_connect, fd, 0, &info);

	if (wait == -EBADF)
		return wait;
	deadline = fz_fdtab_deadline(fd, info, true);
	restart = deadline == FZ_FOREVER;
	/*
	 * A Unix socket waits only for room in the listener's queue, and no poll tells when there
	 * is some: make the real call; if it waits, the monitor preempts.
	 */
	if (wait <= 0 || deadline == FZ_FD_ASK_KERNEL || addr_len < sizeof(uint16_t) ||
	    fz_sys_is_unix(fd) != 0)
		return connect_at_once(self, fd, addr, addr_len, deadline);
	for (;;) {
		ret = fz_io_run(self, &op, deadline, -EINPROGRESS, restart);
		if (ret == FZ_OP_FORBIDDEN)
			return connect_at_once(self, fd, addr, addr_len, deadline);
		/* An attempt was under way before, as after a handler with SA_RESTART. */
		if (ret != -EALREADY)
			break;
		ret = await_connection(self, &pin, deadline);
		if (ret != -EINTR || !restart || !fz_signal_restarts(self))
			return (int)ret;
		fz_pin_release(&pin);
	}
	/*
	 * After a failure the ring leaves the socket half connected, unlike the system call:
	 * dissolve that.
	 */
	if (fz_backend_kind() == FZ_BACKEND_RING && ret < 0 && ret != -EINPROGRESS &&
	    ret != -EINTR && ret != -EISCONN && ret != -EBADF && ret != -EFAULT &&
	    ret != -EINVAL) {
		const uint16_t unspecified[8] = { 0 };

		fz_syscall3(__NR_connect, fz_pin_fd(&pin), (long)unspecified, sizeof(unspecified));
	}
	return (int)ret;
}
