/* SPDX-License-Identifier: MIT */
#ifndef RUNGS_IO_H
#define RUNGS_IO_H

/*
 * tests/helpers/rungs_io.h - the part of all_rungs.c about descriptors: sockets, readiness, files.  To be
 * included by it alone.
 */

#include "rungs.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum { PEERS = 3, CHUNK = 200000 };

static unsigned checksum(const unsigned char *bytes, size_t n)
{
	unsigned sum = 1;

	while (n--)
		sum = sum * 31 + *bytes++;
	return sum;
}

static struct sockaddr_in address;
static int listener;

static void *serve(void *arg)
{
	static char bytes[PEERS][CHUNK];
	char *mine = bytes[(intptr_t)arg];
	int fd = accept(listener, NULL, NULL);
	size_t n;

	CHECK(fd >= 0);
	settle();
	CHECK_INT(send(fd, "!", 1, 0), 1);
	n = read_all(fd, mine, CHUNK);
	write_all(fd, mine, n);
	CHECK_OK(close(fd));
	return NULL;
}

static void *ask(void *arg)
{
	static unsigned char bytes[PEERS][CHUNK];
	unsigned char *mine = bytes[(intptr_t)arg];
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	struct timeval limit = { .tv_sec = 30 };
	struct msghdr greeting = { .msg_iov = &(struct iovec){ mine, 1 }, .msg_iovlen = 1 };

	CHECK(fd >= 0);
	CHECK_OK(connect(fd, (struct sockaddr *)&address, sizeof(address)));
	CHECK_INT(recvmsg(fd, &greeting, 0), 1);
	for (size_t i = 0; i < CHUNK; i++)
		mine[i] = (unsigned char)(i * (size_t)((intptr_t)arg + 3) >> 3);
	CHECK_OK(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)));
	write_all(fd, mine, CHUNK);
	memset(mine, 0, CHUNK);
	CHECK_INT(read_all(fd, mine, CHUNK), CHUNK);
	CHECK_OK(close(fd));
	return (void *)(uintptr_t)checksum(mine, CHUNK);
}

static void sockets(void)
{
	socklen_t size = sizeof(address);
	pthread_t servers[PEERS], clients[PEERS];
	unsigned sum = 0;

	listener = socket(AF_INET, SOCK_STREAM, 0);
	address.sin_family = AF_INET;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK_OK(bind(listener, (struct sockaddr *)&address, sizeof(address)));
	CHECK_OK(listen(listener, PEERS));
	CHECK_OK(getsockname(listener, (struct sockaddr *)&address, &size));
	for (intptr_t i = 0; i < PEERS; i++)
		servers[i] = begin(serve, (void *)i);
	settle();
	for (intptr_t i = 0; i < PEERS; i++)
		clients[i] = begin(ask, (void *)i);
	for (int i = 0; i < PEERS; i++) {
		sum += (unsigned)(uintptr_t)finish(clients[i]);
		finish(servers[i]);
	}
	CHECK_OK(close(listener));
	printf("sockets %08x\n", sum);
}

static void *wait_for_both(void *arg)
{
	struct pollfd p[2] = { { .fd = first[0], .events = POLLIN }, { .fd = second[0], .events = POLLIN } };
	struct timeval limit = { .tv_usec = 2000 };
	struct epoll_event event = { .events = EPOLLIN };
	int epoll = epoll_create1(0);
	fd_set set;
	char c, unused;
	const struct iovec parts[2] = { { &c, 1 }, { &unused, 1 } };

	FD_ZERO(&set);
	FD_SET(first[0], &set);
	CHECK_OK(select(first[0] + 1, &set, NULL, NULL, &limit));
	CHECK_OK(poll(p, 2, 1));
	event_post(&turn);
	CHECK(poll(p, 2, -1) > 0);
	CHECK_OK(epoll_ctl(epoll, EPOLL_CTL_ADD, first[0], &event));
	CHECK_INT(epoll_wait(epoll, &event, 1, -1), 1);
	CHECK_INT(read(first[0], &c, 1), 1);
	event_post(&turn);
	CHECK_INT(readv(second[0], parts, 2), 1);
	CHECK_OK(close(epoll));
	return arg;
}

/* A read that the library does not see. */
static void *read_unseen(void *arg)
{
	char c;

	CHECK_INT(read_raw(second[0], &c, 1), 1);
	return arg;
}

static void readiness(void)
{
	pthread_t t = begin(wait_for_both, NULL);

	event_wait(&turn, 2);
	settle();
	CHECK_INT(write(first[1], "a", 1), 1);
	event_wait(&turn, 3);
	settle();
	CHECK_INT(write(second[1], "b", 1), 1);
	finish(t);
	t = begin(read_unseen, NULL);
	settle();
	CHECK_INT(write(second[1], "c", 1), 1);
	finish(t);
	puts("readiness");
}

static void *use_file(void *arg)
{
	int fd = *(int *)arg, other = open("/proc/self/comm", O_RDONLY);
	char text[64];
	const struct iovec parts[2] = { { text, 4 }, { text + 4, 6 } };

	CHECK(other >= 0);
	CHECK(read(other, text, sizeof(text)) > 0);
	CHECK_OK(close(other));
	CHECK_OK(flock(fd, LOCK_EX));
	write_all(fd, "0123456789", 10);
	CHECK_OK(fsync(fd));
	CHECK_INT(pread(fd, text, 10, 0), 10);
	CHECK_INT(pwrite(fd, text, 10, 0), 10);
	/* Where the kernel refuses a request, the library makes the next one only for the call after the next. */
	for (int i = 0; i < 2; i++)
		CHECK_INT(pwritev(fd, parts, 2, 0), 10);
	CHECK_OK(flock(fd, LOCK_UN));
	return NULL;
}

static void files(void)
{
	pthread_t t[3];
	int fd = temp_file();

	for (int i = 0; i < 3; i++)
		t[i] = begin(use_file, &fd);
	for (int i = 0; i < 3; i++)
		finish(t[i]);
	printf("files %ld\n", (long)lseek(fd, 0, SEEK_END));
	CHECK_OK(close(fd));
	/* As a daemon does: what the library has there moves. */
	CHECK_INT(dup2(1, 100), 100);
	for (fd = 64; fd < 1024; fd++)
		close(fd);
}

#endif
