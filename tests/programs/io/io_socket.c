/* SPDX-License-Identifier: MIT */
/* tests/programs/io/io_socket.c - sockets: flags, errors, streams, SIGPIPE. */
#include "sockets.h"

#include <poll.h>
#include <sys/uio.h>

static void *volatile bad = (void *)1;
static struct event ready = EVENT_INIT;
static __thread int pipes_here;

struct late {
	int fd;
	const char *first, *second;
};

static void *send_late(void *arg)
{
	struct late *late = arg;

	settle();
	CHECK_INT(send(late->fd, late->first, strlen(late->first), 0),
		  strlen(late->first));
	settle();
	if (late->second)
		CHECK_INT(send(late->fd, late->second, strlen(late->second), 0),
			  strlen(late->second));
	return NULL;
}

static void flags(int in, int out)
{
	struct late late = { out, "abcd", "efgh" };
	char buf[64];
	pthread_t t;

	CHECK_ERR(recv(in, buf, 64, MSG_DONTWAIT), EAGAIN);
	CHECK_ERR(recv(in, buf, 64, MSG_DONTWAIT | MSG_PEEK), EAGAIN);
	t = start(send_late, &late);
	CHECK_KEEPS(recv(in, buf, 8, MSG_WAITALL), 8);
	CHECK_OK(memcmp(buf, "abcdefgh", 8));
	finish(t);
	late.second = NULL;
	t = start(send_late, &late);
	CHECK_KEEPS(recv(in, buf, 64, MSG_PEEK), 4);
	CHECK_KEEPS(recv(in, buf, 64, MSG_PEEK), 4);
	CHECK_KEEPS(recv(in, buf, 2, 0), 2);
	CHECK_KEEPS(recv(in, buf, 64, MSG_DONTWAIT), 2);
	finish(t);
	CHECK_KEEPS(send(out, buf, 0, 0), 0);
	CHECK_INT(send(out, "x", 1, MSG_NOSIGNAL), 1);
	CHECK_ERR(recv(in, bad, 1, 0), EFAULT);
	CHECK_KEEPS(recv(in, buf, 64, 0), 1);
	CHECK_ERR(send(out, bad, 1, 0), EFAULT);
	/* WAITALL ends at the end of file. */
	CHECK_INT(send(out, "end", 3, 0), 3);
	CHECK_OK(shutdown(out, SHUT_WR));
	CHECK_KEEPS(recv(in, buf, 64, MSG_WAITALL), 3);
	CHECK_KEEPS(recv(in, buf, 64, 0), 0);
	CHECK_KEEPS(recv(in, buf, 64, MSG_DONTWAIT), 0);
	close(in);
	close(out);
}

/* What is looked at is not taken: it comes once, however many pieces it arrives in. */
static void whole_peek(void)
{
	struct late late;
	struct iovec iov[2];
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };
	char buf[64];
	pthread_t t;
	int fd[2];

	tcp_pair(fd);
	late = (struct late){ fd[1], "abcd", "efgh" };
	t = start(send_late, &late);
	CHECK_KEEPS(recv(fd[0], buf, 8, MSG_PEEK | MSG_WAITALL), 8);
	CHECK_OK(memcmp(buf, "abcdefgh", 8));
	finish(t);
	CHECK_KEEPS(recv(fd[0], buf, 64, 0), 8);
	t = start(send_late, &late);
	iov[0] = (struct iovec){ buf, 3 };
	iov[1] = (struct iovec){ buf + 3, 5 };
	memset(buf, 0, 8);
	CHECK_KEEPS(recvmsg(fd[0], &msg, MSG_PEEK | MSG_WAITALL), 8);
	CHECK_OK(memcmp(buf, "abcdefgh", 8));
	finish(t);
	set_timeout(fd[0], SO_RCVTIMEO, 20);
	CHECK_KEEPS(recv(fd[0], buf, 64, MSG_PEEK | MSG_WAITALL), 8);
	CHECK_KEEPS(recv(fd[0], buf, 64, 0), 8);
	CHECK_ERR(recv(fd[0], buf, 64, MSG_PEEK | MSG_WAITALL), EAGAIN);
	close(fd[0]);
	close(fd[1]);
	puts("whole_peek");
}

/* Only streams bring pieces together. */
static void records(void)
{
	struct iovec iov;
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	char buf[64];
	int fd[2];

	CHECK_OK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fd));
	for (int i = 0; i < 2; i++) {
		CHECK_INT(send(fd[1], "hello", 5, 0), 5);
		CHECK_INT(send(fd[1], "world!", 6, 0), 6);
	}
	iov = (struct iovec){ buf, sizeof(buf) };
	CHECK_KEEPS(recv(fd[0], buf, 64, MSG_WAITALL | MSG_PEEK), 5);
	CHECK_KEEPS(recv(fd[0], buf, 64, MSG_WAITALL), 5);
	CHECK_KEEPS(recv(fd[0], buf, 64, MSG_WAITALL), 6);
	CHECK_KEEPS(recvmsg(fd[0], &msg, MSG_WAITALL), 5);
	CHECK_KEEPS(recvmsg(fd[0], &msg, MSG_WAITALL), 6);
	CHECK_OK(memcmp(buf, "world!", 6));
	close(fd[0]);
	close(fd[1]);
	puts("records");
}

/* read() and write() answer these themselves, recv() and send() ask the socket. */
static void lengths(void)
{
	static volatile size_t huge = SIZE_MAX;
	struct iovec none[2] = { { NULL, 0 }, { NULL, 0 } };
	char buf[4];
	int fd[2];

	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, fd));
	CHECK_KEEPS(read(fd[0], buf, 0), 0);
	CHECK_KEEPS(readv(fd[0], none, 2), 0);
	CHECK_ERR(read(fd[0], buf, huge), EFAULT);
	CHECK_ERR(write(fd[0], buf, huge), EFAULT);
	CHECK_INT(send(fd[1], "abc", 3, 0), 3);
	CHECK_ERR(read(fd[0], buf, huge / 2), EFAULT);
	CHECK_KEEPS(read(fd[0], buf, 4), 3);
	close(fd[0]);
	close(fd[1]);
	fd[0] = socket(AF_INET, SOCK_STREAM, 0);
	CHECK_KEEPS(read(fd[0], buf, 0), 0);
	CHECK_ERR(recv(fd[0], buf, 0, 0), ENOTCONN);
	close(fd[0]);
	puts("lengths");
}

static void *shut(void *arg)
{
	settle();
	CHECK_OK(shutdown((int)(intptr_t)arg, SHUT_RDWR));
	return NULL;
}

static void shutdown_wakes(void)
{
	struct sockaddr_in address;
	int fd[2], listener;
	pthread_t t;
	char c;

	tcp_pair(fd);
	t = start(shut, (void *)(intptr_t)fd[0]);
	CHECK_KEEPS(recv(fd[0], &c, 1, 0), 0);
	finish(t);
	CHECK_KEEPS(read(fd[1], &c, 1), 0);
	close(fd[0]);
	close(fd[1]);
	listener = listening_socket(0, &address);
	t = start(shut, (void *)(intptr_t)listener);
	CHECK_ERR(accept(listener, NULL, NULL), EINVAL);
	finish(t);
	close(listener);
	puts("shutdown");
}

static void errors(void)
{
	struct sockaddr_in address;
	int fd, listener, file = temp_file(), pair[2], error;
	socklen_t len = sizeof(error);
	struct msghdr msg = { 0 };
	struct pollfd p;
	char c;

	CHECK_ERR(recv(-1, &c, 1, 0), EBADF);
	CHECK_ERR(send(-1, &c, 1, 0), EBADF);
	CHECK_ERR(recv(file, &c, 1, 0), ENOTSOCK);
	CHECK_ERR(send(file, &c, 1, 0), ENOTSOCK);
	CHECK_ERR(recvmsg(file, &msg, 0), ENOTSOCK);
	CHECK_ERR(sendmsg(-1, &msg, 0), EBADF);
	CHECK_ERR(accept(file, NULL, NULL), ENOTSOCK);
	CHECK_ERR(accept(-1, NULL, NULL), EBADF);
	close(file);
	listener = listening_socket(0, &address);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	CHECK_ERR(accept(fd, NULL, NULL), EINVAL);
	CHECK_ERR(accept4(listener, NULL, NULL, 0x40000000), EINVAL);
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	CHECK_ERR(accept(pair[0], NULL, NULL), EINVAL);
	close(pair[0]);
	close(pair[1]);
	tcp_pair(pair);
	CHECK_ERR(accept(pair[0], NULL, NULL), EINVAL);
	close(pair[0]);
	close(pair[1]);
	CHECK_OK(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair));
	CHECK_ERR(accept(pair[0], NULL, NULL), EOPNOTSUPP);
	close(pair[0]);
	close(pair[1]);
	CHECK_ERR(recv(fd, &c, 1, 0), ENOTCONN);
	CHECK_ERR(send(fd, &c, 1, MSG_NOSIGNAL), EPIPE);
	CHECK_ERR(connect(fd, (struct sockaddr *)&address, 3), EINVAL);
	CHECK_ERR(connect(fd, bad, sizeof(address)), EFAULT);
	CHECK_OK(connect(fd, (struct sockaddr *)&address, sizeof(address)));
	CHECK_ERR(connect(fd, (struct sockaddr *)&address, sizeof(address)),
		  EISCONN);
	close(fd);
	close(listener);
	/* Nobody listens there any more. */
	fd = socket(AF_INET, SOCK_STREAM, 0);
	CHECK_ERR(connect(fd, (struct sockaddr *)&address, sizeof(address)),
		  ECONNREFUSED);
	close(fd);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 &&
	    errno == EINPROGRESS) {
		p = (struct pollfd){ fd, POLLOUT, 0 };
		CHECK_INT(poll(&p, 1, 10000), 1);
		CHECK_OK(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len));
		CHECK_INT(error, ECONNREFUSED);
	} else {
		CHECK_INT(errno, ECONNREFUSED);
	}
	close(fd);
	puts("errors");
}

static void nonblocking(void)
{
	struct sockaddr_in address, peer;
	int listener = listening_socket(SOCK_NONBLOCK, &address);
	int fd, got, error = 1;
	socklen_t len = sizeof(error), peer_len = sizeof(peer);
	struct pollfd p;
	char c;

	CHECK_ERR(accept(listener, NULL, NULL), EAGAIN);
	CHECK_ERR(accept4(listener, NULL, NULL, SOCK_CLOEXEC), EAGAIN);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)))
		CHECK_INT(errno, EINPROGRESS);
	p = (struct pollfd){ fd, POLLOUT, 0 };
	CHECK_INT(poll(&p, 1, 10000), 1);
	CHECK_OK(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len));
	CHECK_OK(error);
	p = (struct pollfd){ listener, POLLIN, 0 };
	CHECK_INT(poll(&p, 1, 10000), 1);
	got = accept4(listener, (struct sockaddr *)&peer, &peer_len,
		      SOCK_NONBLOCK | SOCK_CLOEXEC);
	CHECK(got >= 0);
	CHECK_INT(peer_len, sizeof(peer));
	CHECK_INT(ntohl(peer.sin_addr.s_addr), INADDR_LOOPBACK);
	CHECK_INT(fcntl(got, F_GETFD), FD_CLOEXEC);
	CHECK(fcntl(got, F_GETFL) & O_NONBLOCK);
	CHECK_ERR(recv(got, &c, 1, 0), EAGAIN);
	CHECK_ERR(read(fd, &c, 1), EAGAIN);
	close(got);
	close(fd);
	/* accept does not pass O_NONBLOCK on. */
	fd = socket(AF_INET, SOCK_STREAM, 0);
	CHECK_OK(connect(fd, (struct sockaddr *)&address, sizeof(address)));
	CHECK_INT(poll(&p, 1, 10000), 1);
	got = accept(listener, NULL, NULL);
	CHECK(got >= 0);
	CHECK(!(fcntl(got, F_GETFL) & O_NONBLOCK));
	CHECK_OK(fcntl(got, F_GETFD));
	close(got);
	close(fd);
	close(listener);
	puts("non-blocking");
}

static void on_pipe(int sig)
{
	(void)sig;
	pipes_here++;
}

/* SIGPIPE is for the thread that wrote. */
static void *broken_pipe(void *arg)
{
	struct iovec iov = { "x", 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	int p[2], s[2], want = 0;

	CHECK_OK(pipe(p));
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
	close(p[0]);
	close(s[0]);
	CHECK_ERR(write(p[1], "x", 1), EPIPE);
	CHECK_INT(pipes_here, ++want);
	CHECK_ERR(writev(p[1], &iov, 1), EPIPE);
	CHECK_INT(pipes_here, ++want);
	CHECK_ERR(write(s[1], "x", 1), EPIPE);
	CHECK_INT(pipes_here, ++want);
	CHECK_ERR(send(s[1], "x", 1, 0), EPIPE);
	CHECK_INT(pipes_here, ++want);
	CHECK_ERR(sendmsg(s[1], &msg, 0), EPIPE);
	CHECK_INT(pipes_here, ++want);
	CHECK_ERR(send(s[1], "x", 1, MSG_NOSIGNAL), EPIPE);
	CHECK_ERR(sendmsg(s[1], &msg, MSG_NOSIGNAL), EPIPE);
	CHECK_INT(pipes_here, want);
	close(p[1]);
	close(s[1]);
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
	CHECK_OK(shutdown(s[0], SHUT_WR));
	CHECK_ERR(send(s[0], "x", 1, 0), EPIPE);
	CHECK_INT(pipes_here, ++want);
	close(s[0]);
	close(s[1]);
	return arg;
}

static int meeting;

static void *accepts_one(void *arg)
{
	char c;
	int fd;

	event_post(&ready);
	fd = accept(meeting, NULL, NULL);
	CHECK(fd >= 0);
	CHECK_INT(read(fd, &c, 1), 1);
	CHECK_INT(write(fd, &c, 1), 1);
	close(fd);
	return arg;
}

static void *connects_one(void *arg)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	char c = 'q';

	CHECK_OK(connect(fd, arg, sizeof(struct sockaddr_in)));
	CHECK_INT(write(fd, &c, 1), 1);
	CHECK_INT(read(fd, &c, 1), 1);
	CHECK_INT(read(fd, &c, 1), 0);
	close(fd);
	return NULL;
}

/* Several threads in accept on one listener. */
static void crowd(void)
{
	struct sockaddr_in address;
	pthread_t t[20];

	meeting = listening_socket(0, &address);
	ready.count = 0;
	for (int i = 0; i < 10; i++)
		t[i] = start(accepts_one, NULL);
	event_wait(&ready, 10);
	for (int i = 10; i < 20; i++)
		t[i] = start(connects_one, &address);
	for (int i = 0; i < 20; i++)
		finish(t[i]);
	close(meeting);
	puts("crowd");
}

static void *run(void *arg)
{
	int fd[2];

	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, fd));
	flags(fd[0], fd[1]);
	tcp_pair(fd);
	flags(fd[0], fd[1]);
	puts("flags");
	shutdown_wakes();
	whole_peek();
	records();
	lengths();
	errors();
	nonblocking();
	return arg;
}

int main(void)
{
	struct sigaction action = { .sa_handler = on_pipe };
	pthread_t t[6];

	CHECK_OK(sigaction(SIGPIPE, &action, NULL));
	run(NULL);
	finish(start(run, NULL));
	for (int i = 0; i < 6; i++)
		t[i] = start(broken_pipe, NULL);
	for (int i = 0; i < 6; i++)
		finish(t[i]);
	CHECK_INT(pipes_here, 0);
	broken_pipe(NULL);
	puts("broken pipe");
	crowd();
	return success();
}
