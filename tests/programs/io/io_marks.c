/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/io/io_marks.c - a receive that waits for more bytes than have come ends at the mark of urgent data, and after
 * bytes with descriptors, whether the mark is there before the call or comes while it waits.
 */
#include "sockets.h"

#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/un.h>

enum { MOST = 100 };
enum way { RECV, READ, RECVMSG, RECVFROM, RECVMMSG, CONTROL, WAYS };

static const char *const names[WAYS] = { "recv", "read", "recvmsg", "recvfrom", "recvmmsg", "recvmsg with ancillary data" };

struct receiver {
	struct event begun;
	pid_t tid;
	enum way way;
	int fd;
	int passed;		/* descriptors that have come */
	char buf[MOST];
};

/* Close the descriptors that have come. */
static int close_passed(struct msghdr *msg)
{
	int fd, count = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		CHECK_INT(c->cmsg_type, SCM_RIGHTS);
		memcpy(&fd, CMSG_DATA(c), sizeof(fd));
		CHECK_OK(close(fd));
		count++;
	}
	return count;
}

static ssize_t receive(struct receiver *r)
{
	struct iovec iov[2] = { { r->buf, 2 }, { r->buf + 2, MOST - 2 } };
	_Alignas(struct cmsghdr) char control[256];
	struct mmsghdr messages = { .msg_hdr = { .msg_iov = iov, .msg_iovlen = 2 } };
	struct sockaddr_storage address;
	socklen_t size = sizeof(address);
	ssize_t ret;

	memset(r->buf, 0, sizeof(r->buf));
	r->passed = 0;
	switch (r->way) {
	case RECV: return recv(r->fd, r->buf, MOST, MSG_WAITALL);
	case READ: return read(r->fd, r->buf, MOST);
	case RECVMSG: return recvmsg(r->fd, &messages.msg_hdr, MSG_WAITALL);
	case RECVFROM:
		ret = recvfrom(r->fd, r->buf, MOST, MSG_WAITALL, (struct sockaddr *)&address, &size);
		/* The sender has no name. */
		CHECK_INT(size, 0);
		return ret;
	case RECVMMSG:
		CHECK_INT(recvmmsg(r->fd, &messages, 1, MSG_WAITALL, NULL), 1);
		return messages.msg_len;
	case CONTROL:
		messages.msg_hdr.msg_control = control;
		messages.msg_hdr.msg_controllen = sizeof(control);
		ret = recvmsg(r->fd, &messages.msg_hdr, MSG_WAITALL);
		r->passed = close_passed(&messages.msg_hdr);
		return ret;
	case WAYS: break;
	}
	return -1;
}

static void *receives(void *arg)
{
	struct receiver *r = arg;

	r->tid = gettid();
	event_post(&r->begun);
	return (void *)receive(r);
}

static pthread_t start_receiver(struct receiver *r)
{
	pthread_t t;

	r->begun = (struct event)EVENT_INIT;
	t = start(receives, r);
	event_wait(&r->begun, 1);
	await_sleep(r->tid);
	return t;
}

static void check_got(const struct receiver *r, ssize_t got, const char *expected)
{
	if (got != (ssize_t)strlen(expected) || memcmp(r->buf, expected, (size_t)got) != 0)
		fail(__FILE__, __LINE__, "%s: %zd bytes %.100s, not %s\n", names[r->way], got, r->buf, expected);
}

/* ---- urgent data ----------------------------------------------------------- */

static void send_urgent(int fd, const char *before, char urgent, const char *after)
{
	CHECK_INT(write(fd, before, strlen(before)), (ssize_t)strlen(before));
	CHECK_INT(send(fd, &urgent, 1, MSG_OOB), 1);
	CHECK_INT(write(fd, after, strlen(after)), (ssize_t)strlen(after));
}

static void await_unread(int fd, int count)
{
	int there;

	do
		CHECK_OK(ioctl(fd, FIONREAD, &there));
	while (there < count);
}

/* Bytes come on both sides of the mark. */
static void urgent(enum way way, int is_inline)
{
	struct receiver r = { .way = way };
	char c;
	int s[2], all = MOST;
	pthread_t t;

	tcp_pair(s);
	r.fd = s[0];
	CHECK_OK(setsockopt(s[0], SOL_SOCKET, SO_OOBINLINE, &is_inline, sizeof(is_inline)));
	if (way == READ)
		CHECK_OK(setsockopt(s[0], SOL_SOCKET, SO_RCVLOWAT, &all, sizeof(all)));
	/* The mark is there. */
	send_urgent(s[1], "abc", '!', "def");
	await_unread(s[0], 3);
	check_got(&r, receive(&r), "abc");
	if (!is_inline)
		CHECK_INT(recv(s[0], &c, 1, MSG_OOB), 1);
	CHECK_INT(recv(s[0], r.buf, MOST, MSG_DONTWAIT), 3 + is_inline);
	/* It comes, and nothing behind it.  With SO_RCVLOWAT, TCP wakes nobody for it. */
	if (way != READ) {
		CHECK_INT(write(s[1], "ghi", 3), 3);
		t = start_receiver(&r);
		send_urgent(s[1], "jkl", '!', "");
		check_got(&r, (ssize_t)finish(t), "ghijkl");
		CHECK_INT(write(s[1], "mno", 3), 3);
		if (!is_inline)
			CHECK_INT(recv(s[0], &c, 1, MSG_OOB), 1);
		CHECK_INT(recv(s[0], r.buf, 3 + (size_t)is_inline, MSG_WAITALL), 3 + is_inline);
	}
	/* It comes first, while nothing has come: it is passed by. */
	t = start_receiver(&r);
	send_urgent(s[1], "", '!', "pqr");
	CHECK_OK(shutdown(s[1], SHUT_WR));
	check_got(&r, (ssize_t)finish(t), is_inline ? "!pqr" : "pqr");
	CHECK_OK(close(s[0]));
	CHECK_OK(close(s[1]));
}

/* ---- descriptors ----------------------------------------------------------- */

static void descriptors(enum way way)
{
	struct receiver r = { .way = way };
	int s[2], all = MOST;
	pthread_t t;

	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
	r.fd = s[0];
	if (way == READ)
		CHECK_OK(setsockopt(s[0], SOL_SOCKET, SO_RCVLOWAT, &all, sizeof(all)));
	/* They are there. */
	send_descriptor(s[1], "abc");
	CHECK_INT(write(s[1], "def", 3), 3);
	check_got(&r, receive(&r), "abc");
	CHECK_INT(r.passed, way == CONTROL);
	CHECK_INT(recv(s[0], r.buf, MOST, MSG_DONTWAIT), 3);
	/* They are there, after other bytes. */
	CHECK_INT(write(s[1], "abc", 3), 3);
	send_descriptor(s[1], "def");
	send_descriptor(s[1], "ghi");
	check_got(&r, receive(&r), "abcdef");
	CHECK_INT(r.passed, way == CONTROL);
	CHECK_INT(recv(s[0], r.buf, MOST, MSG_DONTWAIT), 3);
	/* They come. */
	CHECK_INT(write(s[1], "abc", 3), 3);
	t = start_receiver(&r);
	CHECK_INT(write(s[1], "def", 3), 3);
	await_sleep(r.tid);
	send_descriptor(s[1], "ghi");
	CHECK_INT(write(s[1], "jkl", 3), 3);
	check_got(&r, (ssize_t)finish(t), "abcdefghi");
	CHECK_INT(r.passed, way == CONTROL);
	CHECK_INT(recv(s[0], r.buf, MOST, MSG_DONTWAIT), 3);
	/* They come first. */
	t = start_receiver(&r);
	send_descriptor(s[1], "abc");
	check_got(&r, (ssize_t)finish(t), "abc");
	CHECK_INT(r.passed, way == CONTROL);
	/* None comes: room for them ends no call. */
	CHECK_INT(write(s[1], "abc", 3), 3);
	t = start_receiver(&r);
	CHECK_INT(write(s[1], "def", 3), 3);
	await_sleep(r.tid);
	CHECK_OK(shutdown(s[1], SHUT_WR));
	check_got(&r, (ssize_t)finish(t), "abcdef");
	CHECK_INT(r.passed, 0);
	CHECK_OK(close(s[0]));
	CHECK_OK(close(s[1]));
}

/* The sender has a name that the kernel has chosen, longer than there is room for. */
static void named(void)
{
	struct sockaddr_un listening = { .sun_family = AF_UNIX }, name = listening, from;
	socklen_t size = sizeof(listening), *fixed;
	int listener = socket(AF_UNIX, SOCK_STREAM, 0), s[2];
	char buf[MOST];

	CHECK_OK(bind(listener, (struct sockaddr *)&listening, sizeof(sa_family_t)));
	CHECK_OK(listen(listener, 1));
	CHECK_OK(getsockname(listener, (struct sockaddr *)&listening, &size));
	s[1] = socket(AF_UNIX, SOCK_STREAM, 0);
	CHECK_OK(bind(s[1], (struct sockaddr *)&name, sizeof(sa_family_t)));
	CHECK_OK(connect(s[1], (struct sockaddr *)&listening, size));
	s[0] = accept(listener, NULL, NULL);
	CHECK(s[0] >= 0);
	size = sizeof(name);
	CHECK_OK(getsockname(s[1], (struct sockaddr *)&name, &size));
	CHECK_INT(write(s[1], "abc", 3), 3);
	CHECK_OK(shutdown(s[1], SHUT_WR));
	memset(&from, 'x', sizeof(from));
	size = 4;
	CHECK_INT(recvfrom(s[0], buf, MOST, MSG_WAITALL, (struct sockaddr *)&from, &size), 3);
	CHECK_INT(size, sizeof(sa_family_t) + 6);
	CHECK_OK(memcmp(&from, &name, 4));
	CHECK_INT(from.sun_path[2], 'x');
	/* The length is in memory that may only be read. */
	fixed = mmap(NULL, sizeof(*fixed), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(fixed != MAP_FAILED);
	CHECK_ERR(recvfrom(s[0], buf, MOST, MSG_WAITALL, (struct sockaddr *)&from, fixed), EFAULT);
	CHECK_OK(munmap(fixed, sizeof(*fixed)));
	CHECK_OK(close(listener));
	CHECK_OK(close(s[0]));
	CHECK_OK(close(s[1]));
}

static void *all(void *arg)
{
	for (int way = 0; way < WAYS; way++) {
		urgent((enum way)way, 0);
		urgent((enum way)way, 1);
		descriptors((enum way)way);
	}
	named();
	return arg;
}

int main(void)
{
	finish(start(all, NULL));
	puts("thread");
	all(NULL);
	return success();
}
