/* SPDX-License-Identifier: MIT */
#ifndef TESTS_RECEIVER_H
#define TESTS_RECEIVER_H

/* tests/programs/receiver.h - a thread that receives from a stream, by each of the calls for that. */
#include "sockets.h"

#include <sys/uio.h>

enum { MOST = 100 };
enum way { READ, RECV, READV, RECVMSG, RECVFROM, RECVMMSG, WAYS };

struct receiver {
	struct event begun;
	pid_t tid;
	enum way way;
	int fd, flags;
	size_t first, n;	/* room in the first part, and in all */
	ssize_t got;
	int error, ended;
	char buf[MOST];
};

UNUSED static ssize_t receive(struct receiver *r)
{
	struct iovec iov[2] = { { r->buf, r->first }, { r->buf + r->first, r->n - r->first } };
	struct mmsghdr messages = { .msg_hdr = { .msg_iov = iov, .msg_iovlen = 2 } };
	struct sockaddr_storage address;
	socklen_t size = sizeof(address);
	int count;

	switch (r->way) {
	case READ: return read(r->fd, r->buf, r->n);
	case RECV: return recv(r->fd, r->buf, r->n, r->flags);
	case READV: return readv(r->fd, iov, 2);
	case RECVMSG: return recvmsg(r->fd, &messages.msg_hdr, r->flags);
	case RECVFROM: return recvfrom(r->fd, r->buf, r->n, r->flags, (struct sockaddr *)&address, &size);
	case RECVMMSG:
		count = recvmmsg(r->fd, &messages, 1, r->flags, NULL);
		CHECK(count <= 1);
		return count == 1 ? (ssize_t)messages.msg_len : count;
	case WAYS: break;
	}
	return -1;
}

UNUSED static void *receives(void *arg)
{
	struct receiver *r = arg;

	r->tid = gettid();
	event_post(&r->begun);
	r->got = receive(r);
	r->error = errno;
	__atomic_store_n(&r->ended, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* It waits in its call when this returns, if that has to wait. */
UNUSED static pthread_t start_receiver(struct receiver *r)
{
	pthread_t t;

	r->begun = (struct event)EVENT_INIT;
	r->ended = 0;
	t = start(receives, r);
	event_wait(&r->begun, 1);
	await_sleep(r->tid);
	return t;
}

#endif
