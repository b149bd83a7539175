/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/signal/signal_masked_once.c - a signal that only the mask of ppoll, pselect or
 * epoll_pwait lets in ends the call, whenever it comes: before, while the call looks at many
 * descriptors, or together with data that somebody else takes.  It is sent once.
 */
#include "check.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/stat.h>

enum { ROUNDS = 150, MANY = 100, WAYS = 6 };

static int fifo, many, copies[MANY], orders[2], answers[2];
static _Atomic int begun, handled;
static sigset_t inside;

static void count(int sig)
{
	(void)sig;
	handled++;
}

static int poll_in(const int *fds, int n)
{
	struct pollfd p[MANY];

	for (int i = 0; i < n; i++)
		p[i] = (struct pollfd){ fds[i], POLLIN, 0 };
	return ppoll(p, (nfds_t)n, NULL, &inside);
}

static int select_in(const int *fds, int n)
{
	fd_set set;

	FD_ZERO(&set);
	for (int i = 0; i < n; i++)
		FD_SET(fds[i], &set);
	return pselect(fds[n - 1] + 1, &set, NULL, NULL, NULL, &inside);
}

static int wait_in(int round)
{
	struct epoll_event e;

	switch (round % WAYS) {
	case 0: return poll_in(&fifo, 1);
	case 1: return select_in(&fifo, 1);
	case 2: return poll_in(copies, MANY);
	case 3: return select_in(copies, MANY);
	case 4: return epoll_pwait(many, &e, 1, -1, &inside);
	default: return poll_in(NULL, 0);
	}
}

static void *waits(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		begun = i + 1;
		/* What is there goes away again. */
		while (wait_in(i) > 0)
			CHECK_INT(handled, i);
		CHECK_INT(errno, EINTR);
		CHECK_INT(handled, i + 1);
	}
	return arg;
}

/* Another process writes and takes it back. */
static void disturb(void)
{
	char c;

	while (read(orders[0], &c, 1) == 1) {
		CHECK_INT(write(fifo, &c, 1), 1);
		CHECK_INT(read(fifo, &c, 1), 1);
		CHECK_INT(write(answers[1], &c, 1), 1);
	}
	_exit(0);
}

static void set_up(void)
{
	char name[] = "/tmp/signal_masked_once.XXXXXX", path[64];
	struct epoll_event e = { .events = EPOLLIN };

	CHECK(mkdtemp(name) != NULL);
	snprintf(path, sizeof(path), "%s/fifo", name);
	CHECK_OK(mkfifo(path, 0600));
	fifo = open(path, O_RDWR);
	CHECK(fifo >= 0);
	CHECK_OK(unlink(path));
	CHECK_OK(rmdir(name));
	many = epoll_create1(0);
	for (int i = 0; i < MANY; i++) {
		copies[i] = dup(fifo);
		CHECK_OK(epoll_ctl(many, EPOLL_CTL_ADD, copies[i], &e));
	}
	CHECK_OK(pipe(orders));
	CHECK_OK(pipe(answers));
}

int main(void)
{
	struct sigaction sa = { .sa_handler = count };
	sigset_t usr1;
	pthread_t t;
	char c = 'x';

	set_up();
	if (!fork()) {
		CHECK_OK(close(orders[1]));
		disturb();
	}
	CHECK_OK(sigaction(SIGUSR1, &sa, NULL));
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	CHECK_OK(pthread_sigmask(SIG_BLOCK, &usr1, &inside));
	t = start(waits, NULL);
	for (int i = 0; i < ROUNDS; i++) {
		while (begun <= i)
			sched_yield();
		if (i / WAYS % 2)
			usleep(200);
		for (int k = 0; k < 5; k++) {
			CHECK_INT(write(orders[1], &c, 1), 1);
			if (k == i / WAYS % 5)
				CHECK_OK(pthread_kill(t, SIGUSR1));
			CHECK_INT(read(answers[0], &c, 1), 1);
		}
	}
	finish(t);
	return success();
}
