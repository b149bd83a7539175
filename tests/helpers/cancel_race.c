/* SPDX-License-Identifier: MIT */
/*
 * tests/helpers/cancel_race.c - a call completes and its thread is cancelled, at once: what was
 * taken must have been returned, what was not returned must still be there.
 *
 *	cancel_race ROUNDS SEED
 *
 * Prints for each call what was lost, and how often either side won.  Kernel threads do
 * lose here (glibc bug 12683), so this is not one of tests/programs.
 */
#include "check.h"

#include <poll.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>

static int pair[2];		/* what the thread uses, what we use */
static sem_t sem;
static _Atomic long counted;	/* by the thread, of what its calls returned */
static _Atomic int at_work;

static char in_buffer[1 << 18], out_buffer[1 << 18];	/* more than either holds */

static long do_read(void) { return read(pair[0], in_buffer, 64); }
static long do_readv(void)
{
	struct iovec iov[2] = { { in_buffer, 3 }, { in_buffer + 3, 61 } };

	return readv(pair[0], iov, 2);
}
static long do_recv(void) { return recv(pair[0], in_buffer, 64, 0); }
static long do_recv_all(void) { return recv(pair[0], in_buffer, 64, MSG_WAITALL); }
static long do_recvfrom(void)
{
	struct sockaddr_storage address;
	socklen_t size = sizeof(address);

	return recvfrom(pair[0], in_buffer, 64, 0, (struct sockaddr *)&address, &size);
}
static long do_recvmsg(void)
{
	struct iovec iov = { in_buffer, 64 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	return recvmsg(pair[0], &msg, 0);
}
static long do_eventfd(void)
{
	eventfd_t value = 0;

	return read(pair[0], &value, 8) == 8 ? (long)value : 0;
}
static long do_sem(void) { return sem_wait(&sem) == 0; }
static long do_write(void) { return write(pair[0], out_buffer, sizeof(out_buffer)); }
static long do_send(void) { return send(pair[0], out_buffer, sizeof(out_buffer), 0); }
static long do_sendmsg(void)
{
	struct iovec iov[2] = { { out_buffer, 1000 }, { out_buffer, sizeof(out_buffer) } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };

	return sendmsg(pair[0], &msg, 0);
}

static void *works(void *arg)
{
	long (*call)(void) = *(long (**)(void))arg;

	atomic_store(&at_work, 1);
	for (;;) {
		long n = call();

		/* No cancellation point here: what was returned is counted. */
		CHECK(n >= 0);
		atomic_fetch_add(&counted, n);
	}
	return NULL;
}

static void spin(uint64_t n)
{
	for (volatile uint64_t i = 0; i < n; i++)
		continue;
}

/* What is there, without waiting. */
static long take_some(int fd, size_t size)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1 ? read(fd, in_buffer, size) : 0;
}

static long drain(int fd)
{
	long total = 0, n;

	while ((n = take_some(fd, sizeof(in_buffer))) > 0)
		total += n;
	return total;
}

enum kind { PIPE, SOCKET, EVENTFD, SEM };

static void open_pair(enum kind kind, int writes)
{
	int fds[2] = { -1, -1 };

	if (kind == PIPE)
		CHECK_OK(pipe(fds));
	else if (kind == SOCKET)
		CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
	else if (kind == EVENTFD)
		fds[0] = eventfd(0, 0), fds[1] = dup(fds[0]);
	else
		CHECK_OK(sem_init(&sem, 0, 0));
	pair[0] = fds[writes && kind == PIPE];
	pair[1] = fds[!(writes && kind == PIPE)];
}

static long give(enum kind kind)
{
	if (kind == SEM)
		CHECK_OK(sem_post(&sem));
	else if (kind == EVENTFD)
		CHECK_OK(eventfd_write(pair[1], 1));
	else
		CHECK_INT(write(pair[1], "x", 1), 1);
	return 1;
}

/* We give and it takes, or it gives and we take.  Returns how much is missing. */
static long round_of(enum kind kind, int writes, long (*call)(void), uint64_t *random)
{
	long given = 0, taken = 0, left = 0, count = (long)(random_next(random) % 8) + 1;
	uint64_t before = random_next(random) % 3000, after = random_next(random) % 3000;
	pthread_t t;
	int value;

	atomic_store(&counted, 0);
	atomic_store(&at_work, 0);
	t = start(works, &call);
	while (!atomic_load(&at_work))
		sched_yield();
	if (random_next(random) % 2)
		sched_yield();
	spin(before);
	for (long i = 0; i < count; i++) {
		if (writes)
			taken += take_some(pair[1], 5000);
		else
			given += give(kind);
	}
	spin(after);
	CHECK_OK(pthread_cancel(t));
	CHECK(finish(t) == PTHREAD_CANCELED);
	if (kind == SEM) {
		CHECK_OK(sem_getvalue(&sem, &value));
		left = value;
		while (sem_trywait(&sem) == 0)
			continue;
	} else if (kind == EVENTFD) {
		eventfd_t rest = 0;

		CHECK_OK(eventfd_write(pair[1], 1));
		CHECK_OK(eventfd_read(pair[1], &rest));
		left = (long)rest - 1;
	} else {
		left = drain(writes ? pair[1] : pair[0]);
	}
	return writes ? taken + left - atomic_load(&counted) :
			given - left - atomic_load(&counted);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		enum kind kind;
		int writes;
		long (*call)(void);
	} calls[] = {
		{ "read, pipe", PIPE, 0, do_read }, { "readv, pipe", PIPE, 0, do_readv },
		{ "read, socket", SOCKET, 0, do_read }, { "readv, socket", SOCKET, 0, do_readv },
		{ "recv", SOCKET, 0, do_recv }, { "recv, all", SOCKET, 0, do_recv_all },
		{ "recvfrom", SOCKET, 0, do_recvfrom }, { "recvmsg", SOCKET, 0, do_recvmsg },
		{ "read, eventfd", EVENTFD, 0, do_eventfd }, { "sem_wait", SEM, 0, do_sem },
		{ "write, pipe", PIPE, 1, do_write }, { "write, socket", SOCKET, 1, do_write },
		{ "send", SOCKET, 1, do_send }, { "sendmsg", SOCKET, 1, do_sendmsg },
	};
	long rounds = argc > 1 ? atol(argv[1]) : 1000, all = 0;
	uint64_t random = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;

	for (size_t i = 0; i < COUNT(calls); i++) {
		long lost = 0, taken = 0;

		open_pair(calls[i].kind, calls[i].writes);
		for (long r = 0; r < rounds; r++) {
			lost += round_of(calls[i].kind, calls[i].writes, calls[i].call, &random);
			taken += atomic_load(&counted) > 0;
		}
		close(pair[0]);
		close(pair[1]);
		printf("%-14s %ld lost, %ld of %ld rounds took or gave something\n",
		       calls[i].name, lost, taken, rounds);
		all += lost;
	}
	puts(all ? "LOST" : "NOTHING LOST");
	return all != 0;
}
