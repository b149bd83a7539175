/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SOCKETS_H
#define TESTS_SOCKETS_H

/*
 * tests/programs/sockets.h - pairs of descriptors, internet sockets on loopback at ports that nobody has,
 * and the limit on both.
 */
#include "check.h"

#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>

/* Both ends of something to talk through: 0 is read, 1 written. */
enum pair_kind { PIPE, SOCKET, KINDS };

UNUSED static void make_pair(enum pair_kind kind, int ret_fd[2])
{
	if (kind == PIPE)
		CHECK_OK(pipe(ret_fd));
	else
		CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, ret_fd));
}

UNUSED static void close_pair(const int fd[2])
{
	CHECK_OK(close(fd[0]));
	CHECK_OK(close(fd[1]));
}

/* A thread that receives a byte from fd. */
struct byte_receiver {
	struct event begun;
	pid_t tid;
	int fd;
};

UNUSED static void *receives_byte(void *arg)
{
	struct byte_receiver *r = arg;
	char c;

	r->tid = gettid();
	event_post(&r->begun);
	CHECK_INT(recv(r->fd, &c, 1, 0), 1);
	return NULL;
}

/* It waits in its call when this returns. */
UNUSED static pthread_t start_byte_receiver(struct byte_receiver *r, int fd)
{
	pthread_t t;

	*r = (struct byte_receiver){ .begun = EVENT_INIT, .fd = fd };
	t = start(receives_byte, r);
	event_wait(&r->begun, 1);
	await_sleep(r->tid);
	return t;
}

/* A thread that sends back what comes on descriptor arg, until the end of file. */
UNUSED static void *echoes_until_end(void *arg)
{
	int fd = (int)(intptr_t)arg;
	char text[64];
	ssize_t n;

	while ((n = read(fd, text, sizeof(text))) > 0)
		CHECK_INT(write(fd, text, (size_t)n), n);
	CHECK_INT(n, 0);
	CHECK_OK(close(fd));
	return NULL;
}

/* type as in socket(2).  Its address is in *ret_address. */
UNUSED static int bound_socket(int type, struct sockaddr_in *ret_address)
{
	socklen_t size = sizeof(*ret_address);
	int fd = socket(AF_INET, type, 0);

	CHECK(fd >= 0);
	memset(ret_address, 0, sizeof(*ret_address));
	ret_address->sin_family = AF_INET;
	ret_address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK_OK(bind(fd, (struct sockaddr *)ret_address, size));
	CHECK_OK(getsockname(fd, (struct sockaddr *)ret_address, &size));
	return fd;
}

UNUSED static int listening_socket(int flags, struct sockaddr_in *ret_address)
{
	int fd = bound_socket(SOCK_STREAM | flags, ret_address);

	CHECK_OK(listen(fd, 64));
	return fd;
}

UNUSED static int dial(const struct sockaddr_in *address)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	CHECK(fd >= 0);
	CHECK_KEEPS(connect(fd, (const struct sockaddr *)address, sizeof(*address)), 0);
	return fd;
}

/* The one that dialled first. */
UNUSED static void tcp_pair(int ret_fd[2])
{
	struct sockaddr_in address;
	int listener = listening_socket(0, &address);

	ret_fd[0] = dial(&address);
	ret_fd[1] = accept(listener, NULL, NULL);
	CHECK(ret_fd[1] >= 0);
	CHECK_OK(close(listener));
}

/* which: SO_RCVTIMEO or SO_SNDTIMEO. */
UNUSED static void set_timeout(int fd, int which, int ms)
{
	struct timeval tv = { ms / 1000, ms % 1000 * 1000 };

	CHECK_OK(setsockopt(fd, SOL_SOCKET, which, &tv, sizeof(tv)));
}

/* The soft limit on descriptors is `most`, or the hard limit if that is lower.  Returns both. */
UNUSED static struct rlimit limit_descriptors(rlim_t most)
{
	struct rlimit limit;

	CHECK_OK(getrlimit(RLIMIT_NOFILE, &limit));
	limit.rlim_cur = most < limit.rlim_max ? most : limit.rlim_max;
	CHECK_OK(setrlimit(RLIMIT_NOFILE, &limit));
	return limit;
}

/* Take all the numbers that are left, in fds.  Returns how many these are. */
UNUSED static int fill_descriptors(int *fds)
{
	int n = 0;

	while ((fds[n] = dup(0)) >= 0)
		n++;
	CHECK_INT(errno, EMFILE);
	return n;
}

/* Send a text with the socket itself as a descriptor (SCM_RIGHTS). */
UNUSED static void send_descriptor(int fd, const char *text)
{
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int))];
	} control = { .head = { .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS } };
	struct iovec iov = { (void *)text, strlen(text) };
	const struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
				    .msg_controllen = sizeof(control) };

	memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	CHECK_INT(sendmsg(fd, &msg, 0), (ssize_t)strlen(text));
}

#endif
