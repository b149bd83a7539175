/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/io/io_parts.c - calls that move bytes in several parts: what has come counts when the rest
 * completes it, when the time is over, at a handler and at the end of the connection, and nothing that happens
 * besides makes a call that sends end early.
 */
#include "receiver.h"

#include <linux/net_tstamp.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/uio.h>

enum { LEAST = 30, MUCH = 8 << 20, EARLIER = 1000 };
enum sending { WRITE, SEND, WRITEV, SENDMSG, SENDTO, SENDMMSG, FAST_OPEN, SENDINGS };

static const char *const names[WAYS] = { "read", "recv", "readv", "recvmsg", "recvfrom", "recvmmsg" };
static const char *const sending_names[SENDINGS] = {
	"write", "send", "writev", "sendmsg", "sendto", "sendmmsg", "sendto, MSG_FASTOPEN"
};

static const char bytes[] = "0123456789abcdefghijklmnopqrstuvwxyz";
static char much[MUCH], received[MUCH];

/* How long something is looked for: in vain only where there is a fault. */
static const long long patience = 20000 * MS;

/* ---- receiving ------------------------------------------------------------- */

static int has_ended(const struct receiver *r)
{
	return __atomic_load_n(&r->ended, __ATOMIC_ACQUIRE);
}

static void check_got(const char *what, const struct receiver *r, ssize_t want)
{
	if (r->got != want || memcmp(r->buf, bytes, (size_t)want) != 0)
		fail(__FILE__, __LINE__, "%s, %s, flags %x: %zd, errno %d, not %zd\n", what, names[r->way],
		     (unsigned)r->flags, r->got, r->error, want);
}

static void finish_receiver(const char *what, struct receiver *r, pthread_t t, ssize_t want)
{
	const long long end = now(CLOCK_MONOTONIC) + patience;

	while (!has_ended(r)) {
		if (now(CLOCK_MONOTONIC) > end)
			fail(__FILE__, __LINE__, "%s, %s, flags %x: no end\n", what, names[r->way], (unsigned)r->flags);
		usleep(1000);
	}
	finish(t);
	check_got(what, r, want);
}

/* All that has been sent through fd has come at the other end, where it need not have been taken. */
static void await_come(int fd)
{
	const long long end = now(CLOCK_MONOTONIC) + patience;
	int unacknowledged;

	do {
		CHECK(now(CLOCK_MONOTONIC) < end);
		usleep(200);
		CHECK_OK(ioctl(fd, SIOCOUTQ, &unacknowledged));
	} while (unacknowledged);
}

static void send_bytes(int fd, size_t from, size_t n)
{
	CHECK_INT(send(fd, bytes + from, n, 0), n);
}

/* 0 receives, and only when so much is there. */
static void low_water_pair(int s[2], int least)
{
	tcp_pair(s);
	CHECK_OK(setsockopt(s[0], SOL_SOCKET, SO_RCVLOWAT, &least, sizeof(least)));
}

/*
 * The first byte is there, the others come at once, and nothing after them.  Who has taken the first one waits
 * for less than the low water from then on, in the middle of the first buffer.
 */
static void completed(enum way way, int flags)
{
	struct receiver r = { .way = way, .flags = flags, .first = 22, .n = 34 };
	pthread_t t;
	int s[2];

	low_water_pair(s, LEAST);
	r.fd = s[0];
	send_bytes(s[1], 0, 1);
	await_come(s[1]);
	t = start_receiver(&r);
	send_bytes(s[1], 1, 33);
	finish_receiver("1 + 33 bytes", &r, t, 34);
	close_pair(s);
}

/* ---- less than the low water ----------------------------------------------- */

/* The receiver, and 10 bytes before it waits or after. */
static pthread_t start_before(struct receiver *r, int to, int there)
{
	pthread_t t;

	if (there) {
		send_bytes(to, 0, 10);
		await_come(to);
	}
	t = start_receiver(r);
	if (!there) {
		send_bytes(to, 0, 10);
		await_come(to);
	}
	return t;
}

/* The bytes are there, or come while the call waits: a longer timeout if they have come too late. */
static void timed_out(enum way way, int flags, int there)
{
	struct receiver r = { .way = way, .flags = flags, .first = 50, .n = MOST };
	pthread_t t;
	int s[2];

	for (int ms = 100; ms <= 10000; ms *= 10) {
		low_water_pair(s, LEAST);
		r.fd = s[0];
		set_timeout(s[0], SO_RCVTIMEO, ms);
		t = start_before(&r, s[1], there);
		finish(t);
		close_pair(s);
		if (there || r.got >= 0 || r.error != EAGAIN)
			break;
	}
	check_got(there ? "timeout, 10 bytes there" : "timeout, 10 bytes while it waits", &r, 10);
}

static void nothing(int signal)
{
	(void)signal;
}

/* With SA_RESTART too: what has been received is the result, and nothing is left to restart. */
static void interrupted(enum way way, int flags, int sa_flags)
{
	const struct sigaction action = { .sa_handler = nothing, .sa_flags = sa_flags };
	struct receiver r = { .way = way, .flags = flags, .first = 50, .n = MOST };
	pthread_t t;
	int s[2];

	CHECK_OK(sigaction(SIGUSR1, &action, NULL));
	low_water_pair(s, LEAST);
	r.fd = s[0];
	t = start_before(&r, s[1], 1);
	/* Only one, when it is sure that the thread waits: a call that goes on would end at the next. */
	await_others();
	CHECK_OK(pthread_kill(t, SIGUSR1));
	finish_receiver(sa_flags ? "handler, SA_RESTART" : "handler", &r, t, 10);
	close_pair(s);
}

static void below_low_water(enum way way, int flags)
{
	timed_out(way, flags, 0);
	if (way == RECV || way == RECVMMSG) {
		timed_out(way, flags, 1);
		interrupted(way, flags, way == RECV ? 0 : SA_RESTART);
	}
}

/* ---- the other side closes with unread bytes ------------------------------- */

/* The call that has bytes takes the error with it. */
static void broken(enum way way, int flags)
{
	struct receiver r = { .way = way, .flags = flags, .first = 2, .n = 10 };
	int s[2], least = 10;
	pthread_t t;

	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
	r.fd = s[0];
	if (!flags)
		CHECK_OK(setsockopt(s[0], SOL_SOCKET, SO_RCVLOWAT, &least, sizeof(least)));
	CHECK_INT(write(s[0], "unread", 6), 6);
	send_bytes(s[1], 0, 5);
	t = start_receiver(&r);
	CHECK_OK(close(s[1]));
	finish_receiver("closed with unread bytes", &r, t, 5);
	CHECK_INT(recv(s[0], r.buf, 10, 0), 0);
	CHECK_OK(close(s[0]));
}

static void *all_received(void *arg)
{
	static void (*const cases[])(enum way, int) = { completed, below_low_water, broken };

	for (int i = 0; i < (int)COUNT(cases); i++) {
		for (int way = 0; way < WAYS; way++) {
			cases[i]((enum way)way, 0);
			if (way != READ && way != READV)
				cases[i]((enum way)way, MSG_WAITALL);
		}
		printf("received %d\n", i + 1);
	}
	return arg;
}

/* ---- sending --------------------------------------------------------------- */

struct sender {
	struct event begun;
	pid_t tid;
	enum sending sending;
	int fd;
	struct sockaddr_in address;
	ssize_t sent;
	int error;
};

/* A connection and much data in one call. */
static ssize_t send_fast(const struct sender *s)
{
	const struct sockaddr *address = (const struct sockaddr *)&s->address;
	ssize_t n = sendto(s->fd, much, MUCH, MSG_FASTOPEN, address, sizeof(s->address));

	if (n >= 0 || errno != EOPNOTSUPP)
		return n;
	/* The machine's settings forbid it. */
	CHECK_OK(connect(s->fd, address, sizeof(s->address)));
	return send(s->fd, much, MUCH, 0);
}

static ssize_t send_much(const struct sender *s)
{
	struct iovec iov[2] = { { much, MUCH / 3 }, { much + MUCH / 3, MUCH - MUCH / 3 } };
	struct mmsghdr messages = { .msg_hdr = { .msg_iov = iov, .msg_iovlen = 2 } };
	int count;

	switch (s->sending) {
	case WRITE: return write(s->fd, much, MUCH);
	case SEND: return send(s->fd, much, MUCH, 0);
	case WRITEV: return writev(s->fd, iov, 2);
	case SENDMSG: return sendmsg(s->fd, &messages.msg_hdr, 0);
	case SENDTO: return sendto(s->fd, much, MUCH, 0, NULL, 0);
	case SENDMMSG:
		count = sendmmsg(s->fd, &messages, 1, 0);
		return count == 1 ? (ssize_t)messages.msg_len : count;
	case FAST_OPEN: return send_fast(s);
	case SENDINGS: break;
	}
	return -1;
}

static void *sends_much(void *arg)
{
	struct sender *s = arg;

	s->tid = gettid();
	event_post(&s->begun);
	s->sent = send_much(s);
	s->error = errno;
	CHECK_OK(shutdown(s->fd, SHUT_WR));
	return NULL;
}

/* All of it comes through fd, after some earlier bytes. */
static void check_sent(const struct sender *s, pthread_t t, int fd)
{
	size_t got = read_all(fd, received, MUCH);

	finish(t);
	if (s->sent != MUCH || got != MUCH)
		fail(__FILE__, __LINE__, "%s: %zd bytes sent, errno %d, %zu received\n",
		     sending_names[s->sending], s->sent, s->error, got);
	CHECK_OK(memcmp(received, much, MUCH));
}

/* An earlier send puts something in the error queue of fd: that it has been copied, or when it was. */
static void queue_error(int fd, int zero_copy)
{
	const int on = 1, stamps = SOF_TIMESTAMPING_TX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE;
	struct pollfd p = { .fd = fd };

	if (zero_copy)
		CHECK_OK(setsockopt(fd, SOL_SOCKET, SO_ZEROCOPY, &on, sizeof(on)));
	else
		CHECK_OK(setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &stamps, sizeof(stamps)));
	CHECK_INT(send(fd, much, EARLIER, zero_copy ? MSG_ZEROCOPY : 0), EARLIER);
	CHECK_INT(poll(&p, 1, (int)(patience / MS)), 1);
	CHECK_INT(p.revents, POLLERR);
}

/* Who reads begins when the call waits for room. */
static void sent_besides_error(enum sending sending, int zero_copy)
{
	struct sender s = { .begun = EVENT_INIT, .sending = sending };
	pthread_t t;
	int p[2];

	tcp_pair(p);
	s.fd = p[1];
	queue_error(p[1], zero_copy);
	t = start(sends_much, &s);
	event_wait(&s.begun, 1);
	await_sleep(s.tid);
	settle();
	CHECK_INT(read_all(p[0], received, EARLIER), EARLIER);
	check_sent(&s, t, p[0]);
	close_pair(p);
}

static int is_sent;

/* Others' calls begin and end all the time. */
static void *sleeps_and_talks(void *arg)
{
	int fd = (int)(intptr_t)arg;
	char c = 'x';

	while (!__atomic_load_n(&is_sent, __ATOMIC_ACQUIRE)) {
		usleep(1000);
		CHECK_INT(write(fd, &c, 1), 1);
		CHECK_INT(read(fd, &c, 1), 1);
	}
	CHECK_OK(close(fd));
	return NULL;
}

static void sent_with_connection(void)
{
	struct sender s = { .begun = EVENT_INIT, .sending = FAST_OPEN, .fd = socket(AF_INET, SOCK_STREAM, 0) };
	int listener = listening_socket(0, &s.address), p[2], fd;
	pthread_t t, talker, echo;

	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, p));
	talker = start(sleeps_and_talks, (void *)(intptr_t)p[0]);
	echo = start(echoes_until_end, (void *)(intptr_t)p[1]);
	t = start(sends_much, &s);
	event_wait(&s.begun, 1);
	fd = accept(listener, NULL, NULL);
	CHECK(fd >= 0);
	await_sleep(s.tid);
	for (int i = 0; i < 10; i++)
		settle();
	check_sent(&s, t, fd);
	__atomic_store_n(&is_sent, 1, __ATOMIC_RELEASE);
	finish(talker);
	finish(echo);
	CHECK_OK(close(s.fd));
	CHECK_OK(close(fd));
	CHECK_OK(close(listener));
}

static void *all_sent(void *arg)
{
	for (int sending = 0; sending < FAST_OPEN; sending++) {
		sent_besides_error((enum sending)sending, 0);
		sent_besides_error((enum sending)sending, 1);
	}
	puts("besides the error queue");
	sent_with_connection();
	puts("with the connection");
	return arg;
}

int main(void)
{
	for (int i = 0; i < MUCH; i++)
		much[i] = (char)(i % 251);
	finish(start(all_received, NULL));
	finish(start(all_sent, NULL));
	return success();
}
