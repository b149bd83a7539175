/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/io/io_gathered.c - receives of which only the kernel knows when they have enough: they look without taking
 * (MSG_PEEK), or take the bytes of one sender (SO_PASSCRED).  What comes for other threads meanwhile does not end them.
 */
#include "receiver.h"

#include <sys/wait.h>

enum { OTHERS = 4, WHOLE = 8 };

/* ---- what comes for others ------------------------------------------------ */

struct beside {
	struct receiver receiver;
	struct byte_receiver others[OTHERS];
	pthread_t threads[OTHERS];
	int pairs[OTHERS][2];
};

/* This thread begins to wait right after the others. */
static void *receives_beside(void *arg)
{
	struct beside *b = arg;

	for (int i = 0; i < OTHERS; i++) {
		b->others[i] = (struct byte_receiver){ .begun = EVENT_INIT, .fd = b->pairs[i][0] };
		b->threads[i] = start(receives_byte, &b->others[i]);
		event_wait(&b->others[i].begun, 1);
	}
	return receives(&b->receiver);
}

static void undisturbed(int tcp, enum way way, int flags)
{
	struct beside b = { .receiver = { .begun = EVENT_INIT, .way = way, .flags = flags, .first = 2, .n = WHOLE } };
	pthread_t t;
	int s[2];

	if (tcp)
		tcp_pair(s);
	else
		make_pair(SOCKET, s);
	for (int i = 0; i < OTHERS; i++)
		make_pair(SOCKET, b.pairs[i]);
	b.receiver.fd = s[0];
	CHECK_INT(write(s[1], "abc", 3), 3);
	t = start(receives_beside, &b);
	event_wait(&b.receiver.begun, 1);
	await_sleep(b.receiver.tid);
	for (int i = 0; i < OTHERS; i++) {
		CHECK_INT(write(b.pairs[i][1], "x", 1), 1);
		finish(b.threads[i]);
		close_pair(b.pairs[i]);
	}
	CHECK_INT(write(s[1], "defgh", WHOLE - 3), WHOLE - 3);
	finish(t);
	CHECK_INT(b.receiver.got, WHOLE);
	CHECK_OK(memcmp(b.receiver.buf, "abcdefgh", WHOLE));
	close_pair(s);
}

/* ---- looking -------------------------------------------------------------- */

/* Each look begins behind the last one (SO_PEEK_OFF), and ends at descriptors, or with what there is. */
static void looks_on(enum way way, int least)
{
	struct receiver r = { .way = way, .flags = MSG_PEEK | (least ? 0 : MSG_WAITALL), .first = 2, .n = WHOLE };
	int s[2], start_at = 0;

	make_pair(SOCKET, s);
	r.fd = s[0];
	if (least)
		CHECK_OK(setsockopt(s[0], SOL_SOCKET, SO_RCVLOWAT, &least, sizeof(least)));
	CHECK_OK(setsockopt(s[0], SOL_SOCKET, SO_PEEK_OFF, &start_at, sizeof(start_at)));
	send_descriptor(s[1], "abc");
	CHECK_INT(write(s[1], "def", 3), 3);
	CHECK_INT(receive(&r), 3);
	CHECK_OK(memcmp(r.buf, "abc", 3));
	CHECK_INT(receive(&r), 3);
	CHECK_OK(memcmp(r.buf, "def", 3));
	close_pair(s);
}

enum { LOOKS = 3 };

static void *looks_often(void *arg)
{
	struct receiver *r = arg;
	struct iovec iov = { r->buf, WHOLE };
	struct mmsghdr messages[LOOKS] = { 0 };

	for (int i = 0; i < LOOKS; i++)
		messages[i].msg_hdr = (struct msghdr){ .msg_iov = &iov, .msg_iovlen = 1 };
	r->tid = gettid();
	event_post(&r->begun);
	r->got = recvmmsg(r->fd, messages, LOOKS, MSG_PEEK | MSG_WAITALL, NULL);
	for (int i = 0; i < r->got; i++)
		CHECK_INT(messages[i].msg_len, 3);
	return NULL;
}

/* The stream ends meanwhile: each look finds the bytes. */
static void looks_at_end(void)
{
	struct receiver r = { .begun = EVENT_INIT };
	pthread_t t;
	int s[2];

	tcp_pair(s);
	r.fd = s[0];
	CHECK_INT(write(s[1], "abc", 3), 3);
	t = start(looks_often, &r);
	event_wait(&r.begun, 1);
	await_sleep(r.tid);
	CHECK_OK(shutdown(s[1], SHUT_WR));
	finish(t);
	CHECK_INT(r.got, LOOKS);
	CHECK_INT(recv(s[0], r.buf, WHOLE, 0), 3);
	close_pair(s);
}

/* ---- one sender ----------------------------------------------------------- */

static void let_child_write(int fd, const char *text)
{
	int status;
	const pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0)
		_exit(write(fd, text, strlen(text)) != (ssize_t)strlen(text));
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK_INT(status, 0);
}

enum comes { BEFORE, MEANWHILE, FROM_FIRST };

/*
 * Bytes of a process, and then those of a second: both there, or the second's while the call waits; or more of the first's,
 * for which it waits, too.
 */
static void one_sender(enum way way, enum comes comes)
{
	struct receiver r = { .way = way, .flags = way == READ || way == READV ? 0 : MSG_WAITALL, .first = 2, .n = WHOLE };
	const int on = 1, all = WHOLE;
	pthread_t t;
	int s[2];

	make_pair(SOCKET, s);
	r.fd = s[0];
	CHECK_OK(setsockopt(s[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)));
	if (!r.flags)
		CHECK_OK(setsockopt(s[0], SOL_SOCKET, SO_RCVLOWAT, &all, sizeof(all)));
	CHECK_INT(write(s[1], "abc", 3), 3);
	if (comes == BEFORE)
		let_child_write(s[1], "def");
	t = start_receiver(&r);
	if (comes == FROM_FIRST) {
		settle();
		CHECK_INT(write(s[1], "abcde", WHOLE - 3), WHOLE - 3);
		finish(t);
		CHECK_INT(r.got, WHOLE);
		CHECK_OK(memcmp(r.buf, "abcabcde", WHOLE));
		close_pair(s);
		return;
	}
	if (comes == MEANWHILE)
		let_child_write(s[1], "def");
	finish(t);
	CHECK_INT(r.got, 3);
	CHECK_INT(recv(s[0], r.buf, WHOLE, MSG_DONTWAIT), 3);
	CHECK_OK(memcmp(r.buf, "def", 3));
	close_pair(s);
}

struct credentials {
	struct event begun;
	pid_t tid;
	int fd, flags, uses_recvmmsg, descriptors;
};

static void *receives_credentials(void *arg)
{
	struct credentials *c = arg;
	_Alignas(struct cmsghdr) char control[256];
	char byte;
	struct iovec iov = { &byte, 1 };
	struct mmsghdr message = { .msg_hdr = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
						.msg_controllen = sizeof(control) } };
	struct msghdr *msg = &message.msg_hdr;
	struct ucred sender = { -1, (uid_t)-1, (gid_t)-1 };
	int heads = 0, fd;

	c->tid = gettid();
	event_post(&c->begun);
	CHECK_INT(c->uses_recvmmsg ? recvmmsg(c->fd, &message, 1, c->flags, NULL) : recvmsg(c->fd, msg, c->flags), 1);
	for (struct cmsghdr *h = CMSG_FIRSTHDR(msg); h; h = CMSG_NXTHDR(msg, h), heads++) {
		CHECK_INT(h->cmsg_level, SOL_SOCKET);
		if (h->cmsg_type == SCM_CREDENTIALS) {
			memcpy(&sender, CMSG_DATA(h), sizeof(sender));
		} else {
			CHECK_INT(h->cmsg_type, SCM_RIGHTS);
			memcpy(&fd, CMSG_DATA(h), sizeof(fd));
			CHECK_OK(close(fd));
		}
	}
	CHECK_INT(heads, 1 + c->descriptors);
	CHECK_INT(sender.pid, getpid());
	CHECK_INT(sender.uid, getuid());
	CHECK_INT(sender.gid, getgid());
	return NULL;
}

/* A message comes while the call waits: its sender's credentials, and nobody's else. */
static void credentials(int type, int flags, int uses_recvmmsg)
{
	const int on = 1;
	pthread_t t;
	int s[2];

	CHECK_OK(socketpair(AF_UNIX, type, 0, s));
	CHECK_OK(setsockopt(s[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)));
	for (int i = 0; i < 2; i++) {
		struct credentials c = { .begun = EVENT_INIT, .fd = s[0], .flags = flags,
					 .uses_recvmmsg = uses_recvmmsg, .descriptors = i };

		t = start(receives_credentials, &c);
		event_wait(&c.begun, 1);
		await_sleep(c.tid);
		if (i)
			send_descriptor(s[1], "x");
		else
			CHECK_INT(write(s[1], "x", 1), 1);
		finish(t);
	}
	close_pair(s);
}

static void *all(void *arg)
{
	for (int way = 0; way < WAYS; way++) {
		for (int comes = BEFORE; comes <= FROM_FIRST; comes++)
			one_sender((enum way)way, (enum comes)comes);
		if (way == READ || way == READV)
			continue;
		undisturbed(1, (enum way)way, MSG_PEEK | MSG_WAITALL);
		/* A Unix socket has no queue of errors, and waits for data. */
		undisturbed(0, (enum way)way, MSG_ERRQUEUE | MSG_WAITALL);
		looks_on((enum way)way, 0);
		looks_on((enum way)way, WHOLE);
	}
	for (int type = SOCK_STREAM; type <= SOCK_DGRAM; type++) {
		credentials(type, 0, 0);
		credentials(type, MSG_WAITALL, 0);
		credentials(type, MSG_ERRQUEUE, 0);
		credentials(type, 0, 1);
	}
	credentials(SOCK_SEQPACKET, 0, 0);
	looks_at_end();
	return arg;
}

int main(void)
{
	finish(start(all, NULL));
	puts("thread");
	all(NULL);
	return success();
}
