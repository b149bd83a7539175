/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/io/io_hints.c - O_NONBLOCK and timeouts that come by other ways than a call on
 * this descriptor: on a copy from pidfd_getfd, by a child, by the option's other number; and
 * timeouts below zero.  Each call answers EAGAIN, whenever it begins.
 */
#include "sockets.h"

#include <sys/ioctl.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/wait.h>

enum { COPY_NONBLOCK, COPY_TIMEOUT, CHILD_TIMEOUT, NEW_OPTION, NEGATIVE, WAYS };
enum { RECV_NEW = 66, SEND_NEW = 67 };

static char page[1 << 16];

static int copy_of(int fd)
{
	int self = (int)syscall(SYS_pidfd_open, getpid(), 0);
	int copy = (int)syscall(SYS_pidfd_getfd, self, fd, 0);

	CHECK(self >= 0 && copy >= 0);
	CHECK_OK(close(self));
	return copy;
}

static void set_both(int fd, int recv, int send, long seconds, long useconds)
{
	const long t[2] = { seconds, useconds };

	CHECK_OK(setsockopt(fd, SOL_SOCKET, recv, t, sizeof(t)));
	CHECK_OK(setsockopt(fd, SOL_SOCKET, send, t, sizeof(t)));
}

static void change(int fd, int way)
{
	int copy, status;
	pid_t pid;

	switch (way) {
	case COPY_NONBLOCK:
		copy = copy_of(fd);
		CHECK_OK(fcntl(copy, F_SETFL, fcntl(copy, F_GETFL) | O_NONBLOCK));
		CHECK_OK(close(copy));
		break;
	case COPY_TIMEOUT:
		copy = copy_of(fd);
		set_both(copy, SO_RCVTIMEO, SO_SNDTIMEO, 0, 20000);
		CHECK_OK(close(copy));
		break;
	case CHILD_TIMEOUT:
		pid = fork();
		if (!pid) {
			set_both(fd, SO_RCVTIMEO, SO_SNDTIMEO, 0, 20000);
			_exit(0);
		}
		CHECK_INT(waitpid(pid, &status, 0), pid);
		CHECK_OK(status);
		break;
	case NEW_OPTION:
		set_both(fd, RECV_NEW, SEND_NEW, 0, 20000);
		break;
	case NEGATIVE:
		set_both(fd, SO_RCVTIMEO, SO_SNDTIMEO, -1, 0);
		break;
	}
}

static void fill(int fd)
{
	while (send(fd, page, sizeof(page), MSG_DONTWAIT) > 0)
		continue;
	while (send(fd, page, 1, MSG_DONTWAIT) > 0)
		continue;
}

enum { READ, READV, RECV, RECVFROM, RECVMSG, RECVMMSG, WRITE, SEND, SENDMSG, SENDMMSG, CALLS };

static long make(int call, int fd)
{
	struct iovec iov = { page, 1 };
	struct mmsghdr msg = { .msg_hdr = { .msg_iov = &iov, .msg_iovlen = 1 } };
	struct sockaddr_storage from;
	socklen_t size = sizeof(from);

	switch (call) {
	case READ: return read(fd, page, 1);
	case READV: return readv(fd, &iov, 1);
	case RECV: return recv(fd, page, 1, 0);
	case RECVFROM: return recvfrom(fd, page, 1, 0, (struct sockaddr *)&from, &size);
	case RECVMSG: return recvmsg(fd, &msg.msg_hdr, 0);
	case RECVMMSG: return recvmmsg(fd, &msg, 1, 0, NULL);
	case WRITE: return write(fd, page, sizeof(page));
	case SEND: return send(fd, page, sizeof(page), 0);
	case SENDMSG: return sendmsg(fd, &msg.msg_hdr, 0);
	default: return sendmmsg(fd, &msg, 1, 0);
	}
}

static void on_sockets(int call, int way)
{
	int s[2];
	char c;

	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
	/* So that something is known of them. */
	CHECK_INT(send(s[1], "x", 1, 0), 1);
	CHECK_INT(recv(s[0], &c, 1, 0), 1);
	if (call >= WRITE)
		fill(s[0]);
	change(s[0], way);
	CHECK_ERR(make(call, s[0]), EAGAIN);
	/* And again, what there is to know being known. */
	CHECK_ERR(make(call, s[0]), EAGAIN);
	if (call < WRITE) {
		CHECK_INT(send(s[1], "y", 1, 0), 1);
		CHECK_INT(make(call, s[0]), 1);
	}
	CHECK_OK(close(s[0]));
	CHECK_OK(close(s[1]));
}

/* A timeout below zero is set on a socket of which nothing is known yet: fd itself, or a duplicate. */
static void on_new_sockets(int call, int by_duplicate)
{
	int s[2], copy;

	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
	if (call >= WRITE)
		fill(s[1]);
	copy = dup(s[1]);
	CHECK(copy >= 0);
	change(by_duplicate ? copy : s[1], NEGATIVE);
	CHECK_ERR(make(call, copy), EAGAIN);
	CHECK_ERR(make(call, s[1]), EAGAIN);
	CHECK_OK(close(copy));
	CHECK_OK(close(s[0]));
	CHECK_OK(close(s[1]));
}

static void on_listener(int way)
{
	struct sockaddr_in address;
	int l = listening_socket(0, &address);

	change(l, way);
	CHECK_ERR(accept(l, NULL, NULL), EAGAIN);
	CHECK_ERR(accept4(l, NULL, NULL, SOCK_CLOEXEC), EAGAIN);
	CHECK_OK(close(l));
}

static void on_pipe(int writing)
{
	int p[2];
	char c;

	CHECK_OK(pipe(p));
	for (int i = 0; i < 2; i++) {
		CHECK_INT(write(p[1], "x", 1), 1);
		CHECK_INT(read(p[0], &c, 1), 1);
	}
	change(p[writing], COPY_NONBLOCK);
	if (writing) {
		/* A part, since it cannot wait. */
		static char much[1 << 20];

		CHECK(write(p[1], much, sizeof(much)) > 0);
		while (write(p[1], much, 1) > 0)
			continue;
		CHECK_INT(errno, EAGAIN);
	} else {
		CHECK_ERR(read(p[0], &c, 1), EAGAIN);
	}
	CHECK_OK(close(p[0]));
	CHECK_OK(close(p[1]));
}

static void *of_one_call(void *arg)
{
	const int call = (int)(intptr_t)arg;

	for (int way = 0; way < WAYS; way++)
		on_sockets(call, way);
	for (int by_duplicate = 0; by_duplicate < 2; by_duplicate++)
		on_new_sockets(call, by_duplicate);
	return NULL;
}

static void *waits(void *arg)
{
	char c;

	CHECK_INT(read(*(int *)arg, &c, 1), 0);
	return arg;
}

/* Beside many threads that wait, which rest on hints, too. */
static void among_many(void)
{
	enum { MANY = 2500 };
	static pthread_t t[MANY];
	int p[2];

	CHECK_OK(pipe(p));
	for (int i = 0; i < MANY; i++)
		t[i] = start(waits, &p[0]);
	on_sockets(READ, COPY_NONBLOCK);
	on_listener(NEW_OPTION);
	CHECK_OK(close(p[1]));
	for (int i = 0; i < MANY; i++)
		finish(t[i]);
}

struct held {
	int call, ends[2];
	struct event begun;
	pid_t tid;
};

static void *gets_one(void *arg)
{
	struct held *h = arg;

	h->tid = gettid();
	event_post(&h->begun);
	CHECK_INT(make(h->call, h->ends[0]), 1);
	return NULL;
}

/*
 * Calls whose descriptor has been closed, and whose number names another file, wait on with their
 * own, whatever is found out about other descriptors meanwhile, and whatever the other file has.
 */
static void beside_closed(void)
{
	enum { HELD = 12 };
	static struct held held[HELD], other[HELD];
	pthread_t t[HELD];

	for (int i = 0; i < HELD; i++) {
		held[i].call = READ + i % (WRITE - READ);
		held[i].begun = (struct event)EVENT_INIT;
		CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, held[i].ends));
		CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, other[i].ends));
		if (i % 3 == 1)
			CHECK_OK(fcntl(other[i].ends[0], F_SETFL, O_NONBLOCK));
		else if (i % 3 == 2)
			set_both(other[i].ends[0], SO_RCVTIMEO, SO_SNDTIMEO, 0, 20000);
		t[i] = start(gets_one, &held[i]);
	}
	for (int i = 0; i < HELD; i++) {
		event_wait(&held[i].begun, 1);
		await_sleep(held[i].tid);
	}
	for (int i = 0; i < HELD; i++)
		CHECK_INT(dup2(other[i].ends[0], held[i].ends[0]), held[i].ends[0]);
	for (int i = 0; i < 3; i++) {
		on_sockets(READ, COPY_TIMEOUT);
		usleep(100000);
	}
	for (int i = 0; i < HELD; i++) {
		CHECK_INT(write(held[i].ends[1], "x", 1), 1);
		finish(t[i]);
		for (int k = 0; k < 2; k++) {
			CHECK_OK(close(held[i].ends[k]));
			CHECK_OK(close(other[i].ends[k]));
		}
	}
}

enum { OPTION_ELSEWHERE, FORK, DUPLICATE, CLEARED, CLEARED_BY_IOCTL, FORGETTINGS };

static void *reads_limited(void *arg)
{
	struct held *h = arg;

	change(h->ends[0], h->call == OPTION_ELSEWHERE ? CHILD_TIMEOUT : COPY_NONBLOCK);
	h->tid = gettid();
	event_post(&h->begun);
	CHECK_ERR(make(READ, h->ends[0]), EAGAIN);
	return NULL;
}

/* While a call waits that must not wait for ever, something else is done because of which its hint may be forgotten. */
static void while_it_waits(int how)
{
	struct held h = { .call = how, .begun = EVENT_INIT };
	int other[2], status, copy, off = 0;
	pthread_t t;
	pid_t pid;

	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, h.ends));
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, other));
	t = start(reads_limited, &h);
	event_wait(&h.begun, 1);
	await_sleep(h.tid);
	switch (how) {
	case OPTION_ELSEWHERE:
		set_both(other[0], SO_RCVTIMEO, SO_SNDTIMEO, 1, 0);
		break;
	case FORK:
		pid = fork();
		if (!pid)
			_exit(0);
		CHECK_INT(waitpid(pid, &status, 0), pid);
		CHECK_OK(status);
		break;
	case DUPLICATE:
		copy = dup(h.ends[0]);
		CHECK_OK(close(copy));
		break;
	case CLEARED:
		CHECK_OK(fcntl(h.ends[0], F_SETFL, fcntl(h.ends[0], F_GETFL) & ~O_NONBLOCK));
		break;
	case CLEARED_BY_IOCTL:
		CHECK_OK(ioctl(h.ends[0], FIONBIO, &off));
		break;
	}
	finish(t);
	for (int i = 0; i < 2; i++) {
		CHECK_OK(close(h.ends[i]));
		CHECK_OK(close(other[i]));
	}
}

/*
 * There is room for one message of this size.  A timeout comes unseen while a call waits to send the first of two: it is that
 * of the second one.
 */
static size_t most;

static void *sends_two(void *arg)
{
	struct held *h = arg;
	struct iovec iov = { page, most };
	struct mmsghdr two[2] = {
		{ .msg_hdr = { .msg_iov = &iov, .msg_iovlen = 1 } },
		{ .msg_hdr = { .msg_iov = &iov, .msg_iovlen = 1 } },
	};

	h->tid = gettid();
	event_post(&h->begun);
	CHECK_INT(sendmmsg(h->ends[0], two, 2, 0), 1);
	return NULL;
}

static void between_messages(void)
{
	enum { OVERHEAD = 32 };		/* of the kernel's test whether a message is too long */
	struct held h = { .begun = EVENT_INIT };
	int room = 1;
	socklen_t size = sizeof(room);
	pthread_t t;

	CHECK_OK(socketpair(AF_UNIX, SOCK_DGRAM, 0, h.ends));
	CHECK_OK(setsockopt(h.ends[0], SOL_SOCKET, SO_SNDBUF, &room, size));
	CHECK_OK(getsockopt(h.ends[0], SOL_SOCKET, SO_SNDBUF, &room, &size));
	most = (size_t)room - OVERHEAD;
	CHECK(most <= sizeof(page));
	CHECK_INT(send(h.ends[0], page, most, 0), most);
	t = start(sends_two, &h);
	event_wait(&h.begun, 1);
	await_sleep(h.tid);
	/* So that who looks again now and then has looked. */
	usleep(300000);
	change(h.ends[0], COPY_TIMEOUT);
	CHECK_INT(recv(h.ends[1], page, most, 0), most);
	finish(t);
	CHECK_OK(close(h.ends[0]));
	CHECK_OK(close(h.ends[1]));
}

static void *reads_late(void *arg)
{
	const struct itimerspec a_second = { .it_value = { .tv_sec = 1 } };
	const int timer = timerfd_create(CLOCK_MONOTONIC, 0);
	uint64_t expired;
	char c;
	int s[2];

	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
	change(s[0], COPY_TIMEOUT);
	CHECK_OK(timerfd_settime(timer, 0, &a_second, NULL));
	CHECK_INT(read_raw(timer, &expired, sizeof(expired)), sizeof(expired));
	CHECK_ERR(recv(s[0], &c, 1, 0), EAGAIN);
	CHECK_OK(close(timer));
	CHECK_OK(close(s[0]));
	CHECK_OK(close(s[1]));
	return arg;
}

/*
 * The call begins when its thread has been away for long, in a system call of its own, and all others wait: whoever
 * looks after threads that wait has seen all of them, and may rest.
 */
static void after_rest(void)
{
	int p[2];
	pthread_t waiting, late;

	CHECK_OK(pipe(p));
	waiting = start(waits, &p[0]);
	late = start(reads_late, NULL);
	finish(late);
	CHECK_OK(close(p[1]));
	finish(waiting);
	CHECK_OK(close(p[0]));
}

int main(void)
{
	pthread_t t[CALLS];

	/* First: when a stale hint has been found, all waits are looked at for a while. */
	for (int how = 0; how < FORGETTINGS; how++) {
		while_it_waits(how);
		usleep(400000);
	}
	between_messages();
	for (int call = 0; call < CALLS; call++)
		t[call] = start(of_one_call, (void *)(intptr_t)call);
	for (int way = 0; way < WAYS; way++)
		on_listener(way);
	for (int writing = 0; writing < 2; writing++)
		on_pipe(writing);
	for (int call = 0; call < CALLS; call++)
		finish(t[call]);
	among_many();
	beside_closed();
	after_rest();
	return success();
}
