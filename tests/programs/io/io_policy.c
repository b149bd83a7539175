/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/io/io_policy.c - calls that wait for several bytes or events, of which some are there.  That another thread
 * sets the scheduling policy of the one that waits is no interruption for it.
 */
#include "receiver.h"

#include <linux/aio_abi.h>
#include <poll.h>
#include <sched.h>
#include <time.h>

enum { WHOLE = 8 };

static void change_policy(pthread_t t)
{
	const struct sched_param none = { 0 }, least = { 1 };
	/* Not everybody may do this. */
	const int err = pthread_setschedparam(t, SCHED_RR, &least);

	CHECK(err == 0 || err == EPERM);
	settle();
	CHECK_OK(pthread_setschedparam(t, SCHED_OTHER, &none));
	settle();
}

/* ---- bytes ---------------------------------------------------------------- */

/* The room that a message has comes back after each attempt: for the time of arrival, and for no address. */
static ssize_t look_at_message(struct receiver *r)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(struct timeval))];
	struct sockaddr_storage address;
	struct iovec iov[2] = { { r->buf, r->first }, { r->buf + r->first, r->n - r->first } };
	struct msghdr msg = { .msg_name = &address, .msg_namelen = sizeof(address), .msg_iov = iov, .msg_iovlen = 2,
			      .msg_control = control, .msg_controllen = sizeof(control) };
	const ssize_t ret = recvmsg(r->fd, &msg, r->flags);
	const struct cmsghdr *h = CMSG_FIRSTHDR(&msg);

	CHECK_INT(msg.msg_namelen, 0);
	CHECK(h && h->cmsg_level == SOL_SOCKET && h->cmsg_type == SO_TIMESTAMP);
	CHECK_INT(msg.msg_flags & MSG_CTRUNC, 0);
	return ret;
}

static void *looks_at_message(void *arg)
{
	struct receiver *r = arg;

	r->tid = gettid();
	event_post(&r->begun);
	r->got = look_at_message(r);
	return NULL;
}

static void look(enum way way, int least)
{
	struct receiver r = { .begun = EVENT_INIT, .way = way, .first = 2, .n = WHOLE,
			      .flags = MSG_PEEK | (least ? 0 : MSG_WAITALL) };
	const int on = 1;
	pthread_t t;
	int s[2];

	tcp_pair(s);
	r.fd = s[0];
	if (least)
		CHECK_OK(setsockopt(s[0], SOL_SOCKET, SO_RCVLOWAT, &least, sizeof(least)));
	if (way == WAYS)
		CHECK_OK(setsockopt(s[0], SOL_SOCKET, SO_TIMESTAMP, &on, sizeof(on)));
	CHECK_INT(write(s[1], "abc", 3), 3);
	t = start(way == WAYS ? looks_at_message : receives, &r);
	event_wait(&r.begun, 1);
	await_sleep(r.tid);
	change_policy(t);
	CHECK_INT(write(s[1], "defgh", WHOLE - 3), WHOLE - 3);
	finish(t);
	CHECK_INT(r.got, WHOLE);
	CHECK_OK(memcmp(r.buf, "abcdefgh", WHOLE));
	CHECK_INT(recv(s[0], r.buf, MOST, 0), WHOLE);
	/* What is there when no more comes is the call's result. */
	CHECK_INT(write(s[1], "abc", 3), 3);
	CHECK_OK(shutdown(s[1], SHUT_WR));
	CHECK_INT(recv(s[0], r.buf, WHOLE, MSG_PEEK | MSG_WAITALL), 3);
	close_pair(s);
}

/* ---- events --------------------------------------------------------------- */

struct getter {
	struct event begun;
	pid_t tid;
	aio_context_t context;
	long number, wanted, got;
	struct timespec *limit;
	struct io_event events[2];
};

static void *gets_events(void *arg)
{
	struct getter *g = arg;

	g->tid = gettid();
	event_post(&g->begun);
	g->got = syscall(g->number, g->context, g->wanted, 2L, g->events, g->limit, NULL);
	return NULL;
}

static void submit_poll(aio_context_t context, int fd)
{
	struct iocb request = { .aio_data = (uint64_t)fd, .aio_lio_opcode = IOCB_CMD_POLL, .aio_fildes = (uint32_t)fd,
				.aio_buf = POLLIN };
	struct iocb *requests[] = { &request };

	CHECK_INT(syscall(SYS_io_submit, context, 1L, requests), 1);
}

/* The second event comes after the policy has changed, or, with a limit, not at all. */
static void get(long number, struct timespec *limit)
{
	struct getter g = { .begun = EVENT_INIT, .number = number, .wanted = 2, .limit = limit };
	pthread_t t;
	int s[2][2];

	CHECK_OK(syscall(SYS_io_setup, 2, &g.context));
	for (int i = 0; i < 2; i++) {
		make_pair(SOCKET, s[i]);
		submit_poll(g.context, s[i][0]);
	}
	CHECK_INT(write(s[0][1], "x", 1), 1);
	t = start(gets_events, &g);
	event_wait(&g.begun, 1);
	await_sleep(g.tid);
	change_policy(t);
	if (!limit)
		CHECK_INT(write(s[1][1], "x", 1), 1);
	finish(t);
	CHECK_INT(g.got, limit ? 1 : 2);
	for (int i = 0; i < g.got; i++)
		CHECK_INT(g.events[i].data, s[i][0]);
	CHECK_OK(syscall(SYS_io_destroy, g.context));
	close_pair(s[0]);
	close_pair(s[1]);
}

int main(void)
{
	struct timespec limit = { .tv_nsec = 20000000 };

	for (int way = 0; way <= WAYS; way++)
		if (way != READ && way != READV)
			look((enum way)way, 0);
	look(RECV, WHOLE);
	puts("bytes");
	get(SYS_io_getevents, NULL);
	get(SYS_io_getevents, &limit);
	get(SYS_io_pgetevents, NULL);
	get(SYS_io_pgetevents, &limit);
	return success();
}
