/* SPDX-License-Identifier: MIT */
/* tests/programs/io/io_datagram.c - sockets: datagrams, messages with descriptors, a full backlog. */
#include "sockets.h"

#include <sys/uio.h>
#include <sys/un.h>

static void datagrams(void)
{
	struct sockaddr_in a_address, b_address, from;
	int a = bound_socket(SOCK_DGRAM, &a_address);
	int b = bound_socket(SOCK_DGRAM, &b_address);
	socklen_t len = sizeof(from);
	struct mmsghdr many[4];
	struct timespec ts = { 10, 0 };
	struct iovec iov[4];
	char buf[4][16];

	CHECK_KEEPS(sendto(a, "hello", 5, 0, (struct sockaddr *)&b_address,
			   sizeof(b_address)), 5);
	CHECK_KEEPS(recvfrom(b, buf[0], 16, 0, (struct sockaddr *)&from, &len), 5);
	CHECK_INT(len, sizeof(from));
	CHECK_INT(from.sin_port, a_address.sin_port);
	/* Cut off, and told how long it was. */
	CHECK_INT(sendto(a, "0123456789", 10, 0, (struct sockaddr *)&b_address,
			 sizeof(b_address)), 10);
	CHECK_KEEPS(recv(b, buf[0], 4, MSG_TRUNC), 10);
	CHECK_INT(sendto(a, "", 0, 0, (struct sockaddr *)&b_address,
			 sizeof(b_address)), 0);
	CHECK_KEEPS(recv(b, buf[0], 4, 0), 0);
	CHECK_ERR(send(a, "x", 1, 0), EDESTADDRREQ);

	CHECK_OK(connect(a, (struct sockaddr *)&b_address, sizeof(b_address)));
	memset(many, 0, sizeof(many));
	for (int i = 0; i < 4; i++) {
		iov[i].iov_base = buf[i];
		iov[i].iov_len = (size_t)i + 1;
		many[i].msg_hdr.msg_iov = &iov[i];
		many[i].msg_hdr.msg_iovlen = 1;
		memset(buf[i], 'a' + i, 16);
	}
	CHECK_KEEPS(sendmmsg(a, many, 3, 0), 3);
	CHECK_INT(many[2].msg_len, 3);
	for (int i = 0; i < 4; i++)
		iov[i].iov_len = 16;
	CHECK_KEEPS(recvmmsg(b, many, 3, 0, &ts), 3);
	CHECK_INT(many[1].msg_len, 2);
	CHECK_INT(buf[1][0], 'b');
	CHECK_ERR(recvmmsg(b, many, 4, MSG_DONTWAIT, NULL), EAGAIN);
	CHECK_INT(send(a, "x", 1, 0), 1);
	CHECK_KEEPS(recvmmsg(b, many, 4, MSG_WAITFORONE, NULL), 1);
	CHECK_INT(send(a, "x", 1, 0), 1);
	CHECK_INT(send(a, "y", 1, 0), 1);
	CHECK_KEEPS(recvmmsg(b, many, 4, MSG_DONTWAIT, NULL), 2);
	ts.tv_nsec = 1000000000;
	CHECK_ERR(recvmmsg(b, many, 4, 0, &ts), EINVAL);
	CHECK_ERR(recvmmsg(-1, many, 4, 0, &ts), EINVAL);
	CHECK_ERR(recvmmsg(-1, many, 4, 0, (void *)8), EFAULT);
	CHECK_ERR(recvmmsg(-1, many, 4, 0, NULL), EBADF);
	CHECK_KEEPS(sendmmsg(a, many, 0, 0), 0);
	close(a);
	close(b);
	puts("datagrams");
}

static in_port_t port_of(int fd)
{
	struct sockaddr_in address;
	socklen_t size = sizeof(address);

	CHECK_OK(getsockname(fd, (struct sockaddr *)&address, &size));
	return address.sin_port;
}

/* A connect that fails leaves the socket what it had. */
static void connections(void)
{
	struct sockaddr_in peer_address, wrong[2], got;
	int peer = bound_socket(SOCK_DGRAM, &peer_address), fd = socket(AF_INET, SOCK_DGRAM, 0);
	socklen_t size = sizeof(got);
	in_port_t port;
	char c;

	for (int i = 0; i < 2; i++)
		wrong[i] = peer_address;
	/* All of this host's network, which needs SO_BROADCAST; and another family. */
	wrong[0].sin_addr.s_addr = htonl(0x7fffffff);
	wrong[1].sin_family = AF_INET6;
	CHECK_INT(sendto(fd, "x", 1, 0, (struct sockaddr *)&peer_address, sizeof(peer_address)), 1);
	CHECK_INT(recv(peer, &c, 1, 0), 1);
	port = port_of(fd);
	for (int connected = 0; connected < 2; connected++) {
		CHECK_ERR(connect(fd, (struct sockaddr *)&wrong[0], sizeof(wrong[0])), EACCES);
		CHECK_INT(port_of(fd), port);
		CHECK_ERR(connect(fd, (struct sockaddr *)&wrong[1], sizeof(wrong[1])), EAFNOSUPPORT);
		CHECK_INT(port_of(fd), port);
		if (!connected)
			CHECK_KEEPS(connect(fd, (struct sockaddr *)&peer_address,
					    sizeof(peer_address)), 0);
	}
	CHECK_OK(getpeername(fd, (struct sockaddr *)&got, &size));
	CHECK_INT(got.sin_port, peer_address.sin_port);
	CHECK_INT(send(fd, "x", 1, 0), 1);
	CHECK_INT(recv(peer, &c, 1, 0), 1);
	CHECK_OK(close(fd));
	CHECK_OK(close(peer));
	puts("connections");
}

static void messages(void)
{
	union {
		char space[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	int s[2], p[2], passed;
	struct iovec out[2] = { { "head", 4 }, { "body", 4 } };
	char a[3], b[16], c;
	struct iovec in[2] = { { a, 3 }, { b, 16 } };
	struct msghdr msg = { 0 };
	struct cmsghdr *header;

	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
	CHECK_OK(pipe(p));
	memset(&control, 0, sizeof(control));
	msg.msg_iov = out;
	msg.msg_iovlen = 2;
	msg.msg_control = control.space;
	msg.msg_controllen = sizeof(control.space);
	header = CMSG_FIRSTHDR(&msg);
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &p[0], sizeof(int));
	CHECK_KEEPS(sendmsg(s[0], &msg, 0), 8);

	memset(&msg, 0, sizeof(msg));
	msg.msg_iov = in;
	msg.msg_iovlen = 2;
	msg.msg_control = control.space;
	msg.msg_controllen = sizeof(control.space);
	CHECK_KEEPS(recvmsg(s[1], &msg, MSG_CMSG_CLOEXEC), 8);
	CHECK_OK(memcmp(a, "hea", 3) | memcmp(b, "dbody", 5));
	header = CMSG_FIRSTHDR(&msg);
	CHECK(header != NULL);
	CHECK_INT(header->cmsg_type, SCM_RIGHTS);
	memcpy(&passed, CMSG_DATA(header), sizeof(int));
	CHECK(passed != p[0]);
	CHECK_INT(fcntl(passed, F_GETFD), FD_CLOEXEC);
	CHECK_INT(msg.msg_controllen, CMSG_SPACE(sizeof(int)));
	CHECK_INT(write(p[1], "!", 1), 1);
	CHECK_INT(read(passed, &c, 1), 1);
	for (int i = 0; i < 2; i++) {
		close(s[i]);
		close(p[i]);
	}
	close(passed);
	puts("messages");
}

/* A full backlog: UNIX connect waits, or not, or for a while. */
static void unix_sockets(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int listener = socket(AF_UNIX, SOCK_STREAM, 0), fd[8], n = 0, last, err;
	socklen_t len = sizeof(address);

	/* Autobind: a name that nobody has. */
	CHECK_OK(bind(listener, (struct sockaddr *)&address, sizeof(sa_family_t)));
	CHECK_OK(getsockname(listener, (struct sockaddr *)&address, &len));
	CHECK_OK(listen(listener, 1));
	for (;;) {
		fd[n] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
		if (connect(fd[n], (struct sockaddr *)&address, len))
			break;
		CHECK(++n < 7);
	}
	err = errno;
	CHECK_INT(err, EAGAIN);
	close(fd[n]);
	last = socket(AF_UNIX, SOCK_STREAM, 0);
	set_timeout(last, SO_SNDTIMEO, 10);
	CHECK_ERR(connect(last, (struct sockaddr *)&address, len), EAGAIN);
	CHECK_INT(close(accept(listener, NULL, NULL)), 0);
	CHECK_OK(connect(last, (struct sockaddr *)&address, len));
	close(last);
	while (n--)
		close(fd[n]);
	close(listener);
	puts("unix");
}

static void *run(void *arg)
{
	datagrams();
	connections();
	messages();
	unix_sockets();
	return arg;
}

int main(void)
{
	run(NULL);
	finish(start(run, NULL));
	return success();
}
