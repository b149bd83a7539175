/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/io/io_hints_late.c - O_NONBLOCK and timeouts that come when a call waits already: it waits on, and gets
 * what is sent later, or sends all.  Whether the descriptor is shared before, because of the change, or not at all.
 */
#include "sockets.h"

#include <sys/ioctl.h>
#include <sys/wait.h>

enum { FCNTL, IOCTL, OPTION, BY_DUPLICATE, OPTION_BY_DUPLICATE, BY_CHILD, OPTION_BY_CHILD, BY_RECEIVER, MIXED, ELSEWHERE, CHANGES };
enum { OURS, DUPLICATED, INHERITED, BEFORES };

struct call {
	struct byte_receiver receiver;	/* for a socket */
	int fd[2], change;
	pthread_t thread;
};

static void set_nonblock(int fd)
{
	CHECK_OK(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK));
}

static void limit(int fd)
{
	set_timeout(fd, SO_RCVTIMEO, 1);
	set_timeout(fd, SO_SNDTIMEO, 1);
}

static void in_child(void (*set)(int fd), int fd)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		set(fd);
		_exit(0);
	}
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK_OK(status);
}

static void nothing(int fd)
{
	(void)fd;
}

static void on_duplicate(void (*set)(int fd), int fd)
{
	const int copy = dup(fd);

	CHECK(copy >= 0);
	set(copy);
	CHECK_OK(close(copy));
}

/*
 * Send fd to oneself, and set O_NONBLOCK on what arrives.  The message is on the stack, or (MIXED) its ancillary data is
 * not, or nothing of it.
 */
static void on_received(int how, int fd)
{
	static _Alignas(struct cmsghdr) char other[CMSG_SPACE(sizeof(fd))];
	static struct msghdr elsewhere;
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(fd))] = { 0 };
	char byte = 'x';
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_controllen = sizeof(control),
			      .msg_control = how == BY_RECEIVER ? control : other };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	int s[2], copy;

	make_pair(SOCKET, s);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	elsewhere = msg;
	CHECK_INT(sendmsg(s[1], how == ELSEWHERE ? &elsewhere : &msg, 0), 1);
	CHECK_INT(recvmsg(s[0], &msg, 0), 1);
	memcpy(&copy, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(copy));
	set_nonblock(copy);
	CHECK_OK(close(copy));
	close_pair(s);
}

static void make_change(int change, int fd)
{
	int on = 1;

	switch (change) {
	case FCNTL: set_nonblock(fd); break;
	case IOCTL: CHECK_OK(ioctl(fd, FIONBIO, &on)); break;
	case OPTION: limit(fd); break;
	case BY_DUPLICATE: on_duplicate(set_nonblock, fd); break;
	case OPTION_BY_DUPLICATE: on_duplicate(limit, fd); break;
	case BY_CHILD: in_child(set_nonblock, fd); break;
	case OPTION_BY_CHILD: in_child(limit, fd); break;
	default: on_received(change, fd); break;
	}
}

static void *reads_byte(void *arg)
{
	struct byte_receiver *r = arg;
	char c;

	r->tid = gettid();
	event_post(&r->begun);
	CHECK_INT(read(r->fd, &c, 1), 1);
	return NULL;
}

static void begin(struct call *c, enum pair_kind kind, int before)
{
	make_pair(kind, c->fd);
	if (before == DUPLICATED)
		on_duplicate(nothing, c->fd[0]);
	else if (before == INHERITED)
		in_child(nothing, c->fd[0]);
	if (kind == SOCKET) {
		c->thread = start_byte_receiver(&c->receiver, c->fd[0]);
		return;
	}
	c->receiver = (struct byte_receiver){ .begun = EVENT_INIT, .fd = c->fd[0] };
	c->thread = start(reads_byte, &c->receiver);
	event_wait(&c->receiver.begun, 1);
	await_sleep(c->receiver.tid);
}

/* A pipe has no timeout. */
static int is_possible(enum pair_kind kind, int change)
{
	return kind == SOCKET || !(change == OPTION || change == OPTION_BY_DUPLICATE || change == OPTION_BY_CHILD);
}

static void *late(void *arg)
{
	const enum pair_kind kind = (enum pair_kind)((intptr_t)arg / BEFORES);
	const int before = (int)((intptr_t)arg % BEFORES);
	struct call calls[CHANGES];

	for (int change = 0; change < CHANGES; change++) {
		if (!is_possible(kind, change))
			continue;
		begin(&calls[change], kind, before);
		make_change(change, calls[change].fd[0]);
	}
	/* For whoever would end the calls that wait. */
	usleep(500000);
	for (int change = 0; change < CHANGES; change++) {
		if (!is_possible(kind, change))
			continue;
		CHECK_INT(write(calls[change].fd[1], "x", 1), 1);
		finish(calls[change].thread);
		close_pair(calls[change].fd);
	}
	return NULL;
}

/*
 * Calls that may wait several times before they return: for the rest of what they are to receive or send; or because whoever
 * waits for room on a Unix socket looks again now and then.
 */
enum { WHOLE, ON_STREAM, DATAGRAM, ON_TCP, LONG_CALLS };

static char much[1 << 20];

struct long_call {
	int call, fd[2];
	struct event begun;
	pid_t tid;
	pthread_t thread;
};

static void *makes_long_call(void *arg)
{
	struct long_call *c = arg;
	char text[2];

	c->tid = gettid();
	event_post(&c->begun);
	switch (c->call) {
	case WHOLE: CHECK_INT(recv(c->fd[0], text, 2, MSG_WAITALL), 2); break;
	case ON_TCP: CHECK_INT(send(c->fd[0], much, sizeof(much), 0), sizeof(much)); break;
	default: CHECK_INT(send(c->fd[0], "x", 1, 0), 1); break;
	}
	return NULL;
}

static void begin_long_call(struct long_call *c, int call)
{
	const int bytes = 1 << 16;

	*c = (struct long_call){ .call = call, .begun = EVENT_INIT };
	if (call == ON_TCP) {
		tcp_pair(c->fd);
		CHECK_OK(setsockopt(c->fd[0], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes)));
		CHECK_OK(setsockopt(c->fd[1], SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes)));
	} else {
		CHECK_OK(socketpair(AF_UNIX, call == DATAGRAM ? SOCK_DGRAM : SOCK_STREAM, 0, c->fd));
	}
	while ((call == ON_STREAM || call == DATAGRAM) && send(c->fd[0], "x", 1, MSG_DONTWAIT) == 1)
		continue;
	c->thread = start(makes_long_call, c);
	event_wait(&c->begun, 1);
	await_sleep(c->tid);
}

static void let_some_through(const struct long_call *c)
{
	if (c->call == WHOLE)
		CHECK_INT(send(c->fd[1], "x", 1, 0), 1);
	else if (c->call == ON_TCP)
		CHECK(recv(c->fd[1], much, 20000, 0) > 0);
}

static void end_long_call(struct long_call *c)
{
	char text[1 << 12];

	if (c->call == WHOLE) {
		CHECK_INT(send(c->fd[1], "x", 1, 0), 1);
	} else if (c->call == ON_TCP) {
		/* Until all is sent; the rest stays. */
		while (pthread_tryjoin_np(c->thread, NULL)) {
			recv(c->fd[1], text, sizeof(text), MSG_DONTWAIT);
			sched_yield();
		}
	} else {
		while (recv(c->fd[1], text, sizeof(text), MSG_DONTWAIT) > 0)
			continue;
	}
	if (c->call != ON_TCP)
		finish(c->thread);
	close_pair(c->fd);
}

static void late_for_long_calls(int change)
{
	struct long_call calls[LONG_CALLS];

	for (int call = 0; call < LONG_CALLS; call++)
		begin_long_call(&calls[call], call);
	for (int call = 0; call < LONG_CALLS; call++) {
		make_change(change, calls[call].fd[0]);
		let_some_through(&calls[call]);
	}
	/* For calls that look again, and once more for what a fork may bring to light. */
	usleep(200000);
	in_child(nothing, calls[0].fd[0]);
	usleep(200000);
	for (int call = 0; call < LONG_CALLS; call++)
		end_long_call(&calls[call]);
}

static void *accepts(void *arg)
{
	struct byte_receiver *r = arg;
	int fd;

	r->tid = gettid();
	event_post(&r->begun);
	fd = accept(r->fd, NULL, NULL);
	CHECK(fd >= 0);
	CHECK_OK(close(fd));
	return NULL;
}

/* One process waits for a connection, in the first thread or in another; then another process sets O_NONBLOCK. */
static void in_processes(int by_thread)
{
	struct sockaddr_in address;
	struct byte_receiver r = { .begun = EVENT_INIT, .fd = listening_socket(0, &address) };
	int p[2], status, s;
	pid_t pid;
	char c;

	CHECK_OK(pipe(p));
	pid = fork();
	if (!pid) {
		if (by_thread) {
			pthread_t t = start(accepts, &r);

			event_wait(&r.begun, 1);
			await_sleep(r.tid);
			CHECK_INT(write(p[1], "x", 1), 1);
			finish(t);
		} else {
			CHECK_INT(write(p[1], "x", 1), 1);
			accepts(&r);
		}
		_exit(0);
	}
	CHECK_INT(read(p[0], &c, 1), 1);
	await_sleep(pid);
	in_child(set_nonblock, r.fd);
	usleep(500000);
	s = socket(AF_INET, SOCK_STREAM, 0);
	CHECK_OK(connect(s, (struct sockaddr *)&address, sizeof(address)));
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK_OK(status);
	CHECK_OK(close(s));
	CHECK_OK(close(r.fd));
	close_pair(p);
}

int main(void)
{
	/* One after the other: a fork shares all descriptors. */
	for (intptr_t i = 0; i < KINDS * BEFORES; i++)
		finish(start(late, (void *)i));
	for (int change = 0; change < CHANGES; change++)
		late_for_long_calls(change);
	for (int by_thread = 0; by_thread < 2; by_thread++)
		in_processes(by_thread);
	return success();
}
