/* SPDX-License-Identifier: MIT */
/*
 * preload/io/socket.c - sockets: making, connecting, sending, receiving.
 *
 * MSG_DONTWAIT, O_NONBLOCK, SO_RCVTIMEO, SO_SNDTIMEO and SO_RCVLOWAT are honoured by fz_io_*;
 * a socket made here is noted as the process's own (FZ_FD_OURS, runtime/io/fdtab.h).
 */
#include "preload/gate.h"
#include "runtime/io/fdtab.h"
#include "runtime/io/io.h"
#include "runtime/io/socket.h"

#include <sys/syscall.h>

static uint32_t socket_info(int domain, int type)
{
	return FZ_FD_SOCKET | FZ_FD_OURS | (type & SOCK_NONBLOCK ? FZ_FD_NONBLOCK : 0) |
	       ((type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)) == SOCK_STREAM ? FZ_FD_STREAM : 0) |
	       (domain == AF_UNIX ? FZ_FD_UNIX : 0);
}

FZ_EXPORT int socket(int domain, int type, int protocol)
{
	int fd;

	fz_enter(FZ_SYM_socket);
	fd = fz_real.socket(domain, type, protocol);
	if (fd >= 0)
		fz_fdtab_set(fd, socket_info(domain, type));
	return fd;
}
FZ_EXPORT_ALIAS(__socket, socket);

FZ_EXPORT int socketpair(int domain, int type, int protocol, int fds[2])
{
	int ret;

	fz_enter(FZ_SYM_socketpair);
	ret = fz_real.socketpair(domain, type, protocol, fds);
	if (ret == 0) {
		fz_fdtab_set(fds[0], socket_info(domain, type));
		fz_fdtab_set(fds[1], socket_info(domain, type));
	}
	return ret;
}

/* Does name mean a timeout? libc uses the newer numbers on CPUs where time_t was 32 bits wide. */
static bool is_timeout(int name)
{
	const int recv_new = 66, send_new = 67;

	return name == SO_RCVTIMEO || name == SO_SNDTIMEO || name == recv_new || name == send_new;
}

FZ_EXPORT int setsockopt(int fd, int level, int name, const void *value, socklen_t size)
{
	const bool timeout = level == SOL_SOCKET && is_timeout(name);
	int ret;

	fz_enter(FZ_SYM_setsockopt);
	if (timeout)
		fz_fdtab_timeout_begins(fd);
	ret = fz_real.setsockopt(fd, level, name, value, size);
	if (ret == 0 && timeout) {
		int64_t seconds;

		__builtin_memcpy(&seconds, value, sizeof(seconds));
		fz_fdtab_timeout_set(fd, seconds < 0);
	}
	if (ret == 0 && level == SOL_SOCKET && name == SO_RCVLOWAT)
		fz_fdtab_low_water_set(fd);
	return ret;
}

FZ_EXPORT int accept(int fd, __SOCKADDR_ARG addr, socklen_t *addr_len)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_accept);

	if (!self)
		return fz_real.accept(fd, addr, addr_len);
	return (int)fz_leave(fz_io_accept(self, SYS_accept, fd, addr.__sockaddr__, addr_len, 0));
}

FZ_EXPORT int accept4(int fd, __SOCKADDR_ARG addr, socklen_t *addr_len, int flags)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_accept4);

	if (!self)
		return fz_real.accept4(fd, addr, addr_len, flags);
	return (int)fz_leave(fz_io_accept(self, SYS_accept4, fd, addr.__sockaddr__, addr_len,
					  flags));
}

FZ_EXPORT int connect(int fd, __CONST_SOCKADDR_ARG addr, socklen_t addr_len)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_connect);

	if (!self)
		return fz_real.connect(fd, addr, addr_len);
	return (int)fz_leave(fz_io_connect(self, fd, addr.__sockaddr__, addr_len));
}
FZ_EXPORT_ALIAS(__connect, connect);

FZ_EXPORT ssize_t recv(int fd, void *buf, size_t n, int flags)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_recv);

	if (!self)
		return fz_real.recv(fd, buf, n, flags);
	return fz_leave(fz_io_recv(self, fd, buf, n, flags));
}

FZ_EXPORT ssize_t __recv_chk(int fd, void *buf, size_t n, size_t buflen, int flags)
{
	struct fz_fiber *self = fz_enter(FZ_SYM___recv_chk);

	if (!self || n > buflen)
		return FZ_RETURNS_HERE(fz_real.__recv_chk(fd, buf, n, buflen, flags));
	return fz_leave(fz_io_recv(self, fd, buf, n, flags));
}

FZ_EXPORT ssize_t recvfrom(int fd, void *buf, size_t n, int flags, __SOCKADDR_ARG addr,
			   socklen_t *addr_len)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_recvfrom);

	if (!self)
		return fz_real.recvfrom(fd, buf, n, flags, addr, addr_len);
	return fz_leave(fz_io_recvfrom(self, fd, buf, n, flags, addr.__sockaddr__, addr_len));
}

FZ_EXPORT ssize_t __recvfrom_chk(int fd, void *buf, size_t n, size_t buflen, int flags,
				 __SOCKADDR_ARG addr, socklen_t *addr_len)
{
	struct fz_fiber *self = fz_enter(FZ_SYM___recvfrom_chk);

	if (!self || n > buflen)
		return FZ_RETURNS_HERE(fz_real.__recvfrom_chk(fd, buf, n, buflen, flags, addr,
							      addr_len));
	return fz_leave(fz_io_recvfrom(self, fd, buf, n, flags, addr.__sockaddr__, addr_len));
}

FZ_EXPORT ssize_t recvmsg(int fd, struct msghdr *msg, int flags)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_recvmsg);

	if (!self)
		return fz_real.recvmsg(fd, msg, flags);
	return fz_leave(fz_io_recvmsg(self, fd, msg, flags));
}

FZ_EXPORT int recvmmsg(int fd, struct mmsghdr *vec, unsigned n, int flags,
		       struct timespec *timeout)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_recvmmsg);

	if (!self)
		return fz_real.recvmmsg(fd, vec, n, flags, timeout);
	return (int)fz_leave(fz_io_recvmmsg(self, fd, vec, n, flags, timeout));
}

FZ_EXPORT ssize_t send(int fd, const void *buf, size_t n, int flags)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_send);

	if (!self)
		return fz_real.send(fd, buf, n, flags);
	return fz_leave(fz_io_send(self, fd, buf, n, flags));
}
FZ_EXPORT_ALIAS(__send, send);

FZ_EXPORT ssize_t sendto(int fd, const void *buf, size_t n, int flags,
			 __CONST_SOCKADDR_ARG addr, socklen_t addr_len)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_sendto);

	if (!self)
		return fz_real.sendto(fd, buf, n, flags, addr, addr_len);
	return fz_leave(fz_io_sendto(self, fd, buf, n, flags, addr.__sockaddr__, addr_len));
}

enum { PAGE = 4096 };

/* Are the n bytes at p in the frames of the caller's callers? */
static bool is_on_stack(const void *p, size_t n)
{
	const uintptr_t here = (uintptr_t)__builtin_frame_address(0), at = (uintptr_t)p;
	const struct fz_fiber_mem *mem = &fz_self()->mem;
	/* Of a stack that is not the fiber's own, this page is known to be there. */
	const uintptr_t end = here - (uintptr_t)mem->stack < mem->stack_size ?
				      (uintptr_t)mem->stack + mem->stack_size : (here | (PAGE - 1)) + 1;

	return at >= here && at < end && n <= end - at;
}

/* Can the kernel read the n bytes at p, at least 8?  Asks, once for each page. */
static bool is_readable(const void *p, size_t n)
{
	const uintptr_t at = (uintptr_t)p, first = (at | (PAGE - 1)) + 1;

	if (!fz_sys_readable(p))
		return false;
	for (uintptr_t page = first; page > at && page - at < n; page += PAGE)
		if (!fz_sys_readable((const void *)page))
			return false;
	return true;
}

/* Note the descriptors in the message, whose ancillary data can be read. */
static void share_passed(const struct msghdr *msg)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR((struct msghdr *)msg, c)) {
		const int *fds = (const int *)(const void *)CMSG_DATA(c);
		const size_t left = (size_t)((const char *)msg->msg_control + msg->msg_controllen - (const char *)c);

		if (c->cmsg_len < CMSG_LEN(0) || c->cmsg_len > left)
			return;
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < (c->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++)
			fz_fdtab_share(fds[i]);
	}
}

/* Only a Unix socket passes descriptors.  A fiber looks up what the socket is, as the call does, too. */
static bool may_pass(const struct fz_fiber *self, int fd)
{
	uint32_t info = fz_fdtab_get(fd);

	if (!fz_io_may_look())
		return false;
	if (self && !(info & FZ_FD_KIND_MASK) && fz_fdtab_name(fd))
		fz_fdtab_look_up(fd, &info);
	return info & FZ_FD_UNIX;
}

/*
 * Descriptors in a message leave the process, and other processes may change their flags as soon as they have them.
 * So it is best noted before the message is sent, but what the program passes may not be readable.  On the stack, where
 * most messages are, it is.  For ancillary data elsewhere, which few messages have, a fiber asks the kernel.  To ask
 * about each message that is elsewhere would cost too much: what such a message passes is noted when it has been sent.
 * Returns false for that.
 */
static bool note_before(const struct fz_fiber *self, const struct msghdr *msg)
{
	enum { MOST = 1 << 20 };

	if (!is_on_stack(msg, sizeof(*msg)))
		return false;
	if (!msg->msg_control || msg->msg_controllen < sizeof(struct cmsghdr))
		return true;
	if (msg->msg_controllen > MOST || !(is_on_stack(msg->msg_control, msg->msg_controllen) ||
					    (self && is_readable(msg->msg_control, msg->msg_controllen))))
		return false;
	share_passed(msg);
	return true;
}

FZ_EXPORT ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_sendmsg);
	const bool noted = may_pass(self, fd) && note_before(self, msg);
	ssize_t ret;

	if (!self)
		ret = fz_real.sendmsg(fd, msg, flags);
	else
		ret = fz_leave(fz_io_sendmsg(self, fd, msg, flags));
	if (ret >= 0 && !noted && msg->msg_control)
		share_passed(msg);
	return ret;
}

FZ_EXPORT int sendmmsg(int fd, struct mmsghdr *vec, unsigned n, int flags)
{
	enum { MOST = 1024 };	/* that the kernel sends in one call */
	struct fz_fiber *self = fz_enter(FZ_SYM_sendmmsg);
	bool noted = may_pass(self, fd);
	int ret;

	for (unsigned i = 0; i < n && i < MOST && noted; i++)
		noted = note_before(self, &vec[i].msg_hdr);
	if (!self)
		ret = fz_real.sendmmsg(fd, vec, n, flags);
	else
		ret = (int)fz_leave(fz_io_sendmmsg(self, fd, vec, n, flags));
	for (int i = 0; i < ret && !noted; i++)
		if (vec[i].msg_hdr.msg_control)
			share_passed(&vec[i].msg_hdr);
	return ret;
}
