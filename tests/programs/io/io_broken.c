/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/io/io_broken.c - a thread waits for room on a stream, and the connection ends:
 * what the call answers, whether it raises SIGPIPE, and what the next call answers.
 */
#include "sockets.h"

#include <semaphore.h>
#include <stdbool.h>
#include <sys/sendfile.h>
#include <sys/uio.h>

enum family { UNIX, TCP, FAMILIES };
enum end { PEER_CLOSES, PEER_STOPS_READING, WRITING_STOPS, ENDS };
enum way { SEND, WRITE, WRITEV, SENDMSG, SENDMMSG, SENDFILE, WAYS };

struct outcome {
	long result;
	int error, signals;
};

static char big[8 << 20];
static int file;
static volatile sig_atomic_t signals;
static sem_t begun;
static struct {
	int fd;
	size_t size;
	enum way way;
	struct outcome outcome;
} sender;

static void count(int sig)
{
	(void)sig;
	signals++;
}

static void *sends(void *arg)
{
	struct iovec iov = { big, sender.size };
	struct mmsghdr messages = { .msg_hdr = { .msg_iov = &iov, .msg_iovlen = 1 } };
	off_t offset = 0;
	long ret = -1;

	signals = 0;
	CHECK_OK(sem_post(&begun));
	errno = 0;
	switch (sender.way) {
	case SEND: ret = send(sender.fd, big, sender.size, 0); break;
	case WRITE: ret = write(sender.fd, big, sender.size); break;
	case WRITEV: ret = writev(sender.fd, &iov, 1); break;
	case SENDMSG: ret = sendmsg(sender.fd, &messages.msg_hdr, 0); break;
	case SENDMMSG: ret = sendmmsg(sender.fd, &messages, 1, 0); break;
	case SENDFILE: ret = sendfile(sender.fd, file, &offset, sender.size); break;
	case WAYS: break;
	}
	sender.outcome = (struct outcome){ ret, ret < 0 ? errno : 0, signals };
	return arg;
}

static void make_connection(enum family family, int s[2])
{
	if (family == TCP)
		tcp_pair(s);
	else
		CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
}

/* What is under way on loopback makes room at first. */
static void fill(int fd)
{
	for (int i = 0; i < 5; i++) {
		while (send(fd, big, 1 << 16, MSG_DONTWAIT) > 0)
			;
		CHECK_INT(errno, EAGAIN);
		usleep(2000);
	}
}

/* Whether the peer or this side ends it, the other descriptor stays open until the end. */
static void end_connection(enum family family, enum end end, int s[2])
{
	switch (end) {
	case PEER_STOPS_READING:
		CHECK_OK(shutdown(s[1], SHUT_RD));
		/* TCP tells the sender nothing of that. */
		if (family == UNIX)
			break;
		__attribute__((fallthrough));
	case PEER_CLOSES:
		CHECK_OK(close(s[1]));
		s[1] = -1;
		break;
	case WRITING_STOPS:
		CHECK_OK(shutdown(s[0], SHUT_WR));
		break;
	case ENDS:
		break;
	}
}

/* Returns the outcome of the call, which waits if pause is long enough; ret_next: of the next. */
static struct outcome call(enum family family, bool full, enum end end, enum way way,
			   useconds_t pause, struct outcome *ret_next)
{
	pthread_t t;
	int s[2];

	make_connection(family, s);
	if (full)
		fill(s[0]);
	sender.fd = s[0];
	sender.size = full ? 1000 : sizeof(big);
	sender.way = way;
	CHECK_OK(pthread_create(&t, NULL, sends, NULL));
	CHECK_OK(sem_wait(&begun));
	usleep(pause);
	end_connection(family, end, s);
	CHECK_OK(pthread_join(t, NULL));
	signals = 0;
	errno = 0;
	ret_next->result = send(s[0], big, 1, 0);
	ret_next->error = errno;
	ret_next->signals = signals;
	CHECK_OK(close(s[0]));
	if (s[1] >= 0)
		CHECK_OK(close(s[1]));
	return sender.outcome;
}

static void check(enum family family, bool full, enum end end, enum way way)
{
	struct outcome got, next;

	/* The call may not have begun when the connection ends: then what a late call gets. */
	for (useconds_t pause = 10000; pause < 20000000; pause *= 4) {
		got = call(family, full, end, way, pause, &next);
		if (got.result > 0 ? !full : !(got.error == EPIPE && got.signals))
			break;
		/* Where some was sent, there was still room, whatever fill() found. */
		if (family == TCP && end == WRITING_STOPS && !(full && got.result > 0))
			break;
	}
	printf("%s, %s, end %d, way %d: %s, error %d, %d signals; next: %ld, error %d, %d signals\n",
	       family == UNIX ? "Unix" : "TCP", full ? "full" : "in part", end, way,
	       got.result > 0 ? "some" : "none", got.error, got.signals, next.result, next.error,
	       next.signals);
}

enum { MESSAGES = 1000 };

/* A thread that has SIGPIPE not blocked, and must not get another's. */
static void *looks(void *arg)
{
	event_wait(arg, 1);
	usleep(100);
	return NULL;
}

/* The peer has closed, but only the first messages tell the kernel so: the others are not sent, and one of them raises SIGPIPE. */
static void *breaks_amid(void *arg)
{
	static struct mmsghdr messages[MESSAGES];
	struct iovec iov = { big, 1 };
	sigset_t broken, before, pending;

	CHECK_OK(sigemptyset(&broken) | sigaddset(&broken, SIGPIPE));
	for (int i = 0; i < MESSAGES; i++)
		messages[i].msg_hdr = (struct msghdr){ .msg_iov = &iov, .msg_iovlen = 1 };
	for (int k = 0; k < 8; k++) {
		const bool blocked = k & 1, nonblocking = k & 2;
		const int flags = k & 4 ? MSG_NOSIGNAL : 0;
		struct event over = EVENT_INIT;
		pthread_t other = start(looks, &over);
		int s[2], sent;

		tcp_pair(s);
		CHECK_OK(fcntl(s[0], F_SETFL, nonblocking ? O_NONBLOCK : 0));
		if (blocked)
			CHECK_OK(pthread_sigmask(SIG_BLOCK, &broken, &before));
		CHECK_OK(close(s[1]));
		signals = 0;
		/* All of them, if the answer to the first one takes long. */
		do
			sent = sendmmsg(s[0], messages, MESSAGES, flags);
		while (sent == MESSAGES);
		CHECK(sent > 0 || errno == EPIPE);
		event_post(&over);
		finish(other);
		CHECK_OK(sigpending(&pending));
		CHECK_INT(signals, !blocked && !flags);
		CHECK_INT(sigismember(&pending, SIGPIPE), blocked && !flags);
		if (blocked) {
			CHECK_INT(sigtimedwait(&broken, NULL, &(struct timespec){ 0 }), flags ? -1 : SIGPIPE);
			CHECK_OK(pthread_sigmask(SIG_SETMASK, &before, NULL));
		}
		CHECK_ERR(send(s[0], big, 1, MSG_NOSIGNAL), EPIPE);
		CHECK_INT(signals, !blocked && !flags);
		CHECK_OK(close(s[0]));
	}
	return arg;
}

int main(void)
{
	file = temp_file();
	CHECK_OK(ftruncate(file, sizeof(big)));
	CHECK_OK(sem_init(&begun, 0, 0));
	CHECK(signal(SIGPIPE, count) != SIG_ERR);
	for (int family = 0; family < FAMILIES; family++)
		for (int full = 0; full < 2; full++)
			for (int end = 0; end < ENDS; end++)
				/* sendfile sends by parts of its own: what is natively left varies. */
				for (int way = 0; way < (full ? WAYS : SENDFILE); way++)
					check((enum family)family, full, (enum end)end,
					      (enum way)way);
	finish(start(breaks_amid, NULL));
	return success();
}
