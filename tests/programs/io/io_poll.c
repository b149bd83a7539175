/* SPDX-License-Identifier: MIT */
/* tests/programs/io/io_poll.c - poll and ppoll. */
#include "check.h"

#include <limits.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

static struct pollfd *volatile bad = (struct pollfd *)1;
static volatile nfds_t too_many = INT_MAX;
static struct event ready = EVENT_INIT;
static volatile sig_atomic_t handled;

static void timeouts(void)
{
	struct timespec ts;
	struct pollfd p;
	long long t0;
	int fd[2];

	CHECK_OK(pipe(fd));
	p = (struct pollfd){ fd[0], POLLIN, 99 };
	CHECK_KEEPS(poll(&p, 1, 0), 0);
	CHECK_INT(p.revents, 0);
	for (int ms = 0; ms <= 20; ms += 10) {
		t0 = now(CLOCK_MONOTONIC);
		CHECK_KEEPS(poll(&p, 1, ms), 0);
		CHECK(now(CLOCK_MONOTONIC) >= t0 + ms * MS);
		t0 = now(CLOCK_MONOTONIC);
		CHECK_KEEPS(poll(NULL, 0, ms), 0);
		CHECK(now(CLOCK_MONOTONIC) >= t0 + ms * MS);
		t0 = now(CLOCK_MONOTONIC);
		ts = to_timespec(ms * MS);
		CHECK_KEEPS(ppoll(&p, 1, &ts, NULL), 0);
		CHECK(now(CLOCK_MONOTONIC) >= t0 + ms * MS);
		/* libc's ppoll leaves the timeout as it was. */
		CHECK_INT(ts.tv_nsec, ms * MS);
		CHECK_KEEPS(ppoll(NULL, 0, &ts, NULL), 0);
	}
	ts.tv_nsec = 1000000000;
	CHECK_ERR(ppoll(&p, 1, &ts, NULL), EINVAL);
	ts.tv_nsec = 0;
	ts.tv_sec = -1;
	CHECK_ERR(ppoll(&p, 1, &ts, NULL), EINVAL);
	CHECK_ERR(poll(bad, 1, 0), EFAULT);
	CHECK_ERR(poll(&p, too_many, 0), EINVAL);
	close(fd[0]);
	close(fd[1]);
	puts("timeouts");
}

static void events(void)
{
	int a[2], b[2], s[2], file = temp_file();
	struct pollfd p[6];
	char c;

	CHECK_OK(pipe(a));
	CHECK_OK(pipe(b));
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
	p[0] = (struct pollfd){ a[0], POLLIN, 0 };
	p[1] = (struct pollfd){ a[1], POLLOUT, 0 };
	p[2] = (struct pollfd){ -1, POLLIN, 77 };
	p[3] = (struct pollfd){ 9999, POLLIN, 0 };
	p[4] = (struct pollfd){ file, POLLIN | POLLOUT, 0 };
	p[5] = (struct pollfd){ s[0], POLLIN | POLLOUT, 0 };
	CHECK_KEEPS(poll(p, 6, -1), 4);
	CHECK_INT(p[0].revents, 0);
	CHECK_INT(p[1].revents, POLLOUT);
	CHECK_INT(p[2].revents, 0);
	CHECK_INT(p[3].revents, POLLNVAL);
	CHECK_INT(p[4].revents, POLLIN | POLLOUT);
	CHECK_INT(p[5].revents, POLLOUT);

	CHECK_INT(write(s[1], "x", 1), 1);
	CHECK_KEEPS(poll(&p[5], 1, 1000), 1);
	CHECK_INT(p[5].revents, POLLIN | POLLOUT);
	/* Twice the same descriptor. */
	p[0] = p[1] = p[5];
	p[0].events = POLLIN;
	p[1].events = POLLOUT;
	CHECK_KEEPS(poll(p, 2, 1000), 2);
	CHECK_INT(p[0].revents, POLLIN);
	CHECK_INT(p[1].revents, POLLOUT);
	CHECK_INT(read(s[0], &c, 1), 1);

	CHECK_OK(shutdown(s[1], SHUT_WR));
	p[0] = (struct pollfd){ s[0], POLLIN | POLLRDHUP, 0 };
	CHECK_KEEPS(poll(p, 1, 1000), 1);
	CHECK_INT(p[0].revents, POLLIN | POLLRDHUP);
	close(s[1]);
	p[0].events = 0;
	CHECK_KEEPS(poll(p, 1, 1000), 1);
	CHECK_INT(p[0].revents, POLLHUP);

	/* A pipe without writers, and one without readers. */
	close(a[1]);
	p[0] = (struct pollfd){ a[0], POLLIN, 0 };
	CHECK_KEEPS(poll(p, 1, 1000), 1);
	CHECK_INT(p[0].revents, POLLHUP);
	close(b[0]);
	p[0] = (struct pollfd){ b[1], POLLOUT, 0 };
	CHECK_KEEPS(poll(p, 1, 1000), 1);
	CHECK_INT(p[0].revents, POLLOUT | POLLERR);
	/* Only a bad one: no waiting. */
	p[0] = (struct pollfd){ 9999, 0, 0 };
	CHECK_KEEPS(poll(p, 1, -1), 1);
	CHECK_INT(p[0].revents, POLLNVAL);
	close(a[0]);
	close(b[1]);
	close(s[0]);
	close(file);
	puts("events");
}

struct job {
	int fd[8][2];
	int which;
};

static void *wait_for_one(void *arg)
{
	struct job *job = arg;
	struct pollfd p[8];

	for (int i = 0; i < 8; i++)
		p[i] = (struct pollfd){ job->fd[i][0], POLLIN, 55 };
	event_post(&ready);
	CHECK_KEEPS(poll(p, 8, 30000), 1);
	for (int i = 0; i < 8; i++)
		CHECK_INT(p[i].revents, i == job->which ? POLLIN : 0);
	return NULL;
}

static void wakes(void)
{
	struct job job[8];
	pthread_t t[8];

	ready.count = 0;
	for (int i = 0; i < 8; i++) {
		for (int k = 0; k < 8; k++)
			CHECK_OK(pipe(job[i].fd[k]));
		job[i].which = i;
		t[i] = start(wait_for_one, &job[i]);
	}
	event_wait(&ready, 8);
	settle();
	for (int i = 7; i >= 0; i--)
		CHECK_INT(write(job[i].fd[i][1], "x", 1), 1);
	for (int i = 0; i < 8; i++) {
		finish(t[i]);
		for (int k = 0; k < 8; k++) {
			close(job[i].fd[k][0]);
			close(job[i].fd[k][1]);
		}
	}
	puts("wakes");
}

static int many_fd[400][2];

static void *write_last(void *arg)
{
	event_wait(&ready, 1);
	settle();
	CHECK_INT(write(many_fd[399][1], "x", 1), 1);
	return arg;
}

static void large_sets(void)
{
	struct pollfd p[400];
	pthread_t t;

	for (int i = 0; i < 400; i++) {
		CHECK_OK(pipe(many_fd[i]));
		p[i] = (struct pollfd){ many_fd[i][0], POLLIN, 0 };
	}
	ready.count = 0;
	t = start(write_last, NULL);
	CHECK_OK(poll(p, 400, 1));
	event_post(&ready);
	CHECK_INT(poll(p, 400, 30000), 1);
	CHECK_INT(p[399].revents, POLLIN);
	finish(t);
	for (int i = 0; i < 400; i++)
		CHECK_INT(write(many_fd[i][1], "y", 1), 1);
	CHECK_INT(poll(p, 400, -1), 400);
	for (int i = 0; i < 400; i++) {
		close(many_fd[i][0]);
		close(many_fd[i][1]);
	}
	puts("large sets");
}

static void on_signal(int sig)
{
	(void)sig;
	handled++;
}

/* The mask holds for the wait only, and a pending signal ends it at once. */
static void masks(void)
{
	struct sigaction action = { .sa_handler = on_signal };
	struct timespec ts = { 30, 0 };
	struct pollfd p;
	sigset_t set, none, now_set;
	int fd[2];

	CHECK_OK(pipe(fd));
	p = (struct pollfd){ fd[0], POLLIN, 0 };
	action.sa_flags = SA_RESTART;
	CHECK_OK(sigaction(SIGUSR1, &action, NULL));
	sigemptyset(&none);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	CHECK_OK(pthread_sigmask(SIG_BLOCK, &set, NULL));
	CHECK_OK(pthread_kill(pthread_self(), SIGUSR1));
	CHECK_OK(poll(&p, 1, 5));
	CHECK_INT(handled, 0);
	CHECK_ERR(ppoll(&p, 1, &ts, &none), EINTR);
	CHECK_INT(handled, 1);
	CHECK_OK(pthread_sigmask(SIG_SETMASK, NULL, &now_set));
	CHECK_INT(sigismember(&now_set, SIGUSR1), 1);
	/* Blocked during the wait: not delivered. */
	CHECK_OK(pthread_sigmask(SIG_UNBLOCK, &set, NULL));
	ts = to_timespec(2 * MS);
	CHECK_OK(ppoll(&p, 1, &ts, &set));
	close(fd[0]);
	close(fd[1]);
	puts("masks");
}

static void *run(void *arg)
{
	timeouts();
	events();
	large_sets();
	return arg;
}

/* The other side has stopped sending, which nobody waits for here. */
static void *half_closed(void *arg)
{
	struct pollfd p;
	long long t0;
	int fd[2];

	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, fd));
	CHECK_OK(shutdown(fd[1], SHUT_WR));
	p = (struct pollfd){ fd[0], POLLHUP, 99 };
	t0 = now(CLOCK_MONOTONIC);
	CHECK_KEEPS(poll(&p, 1, 50), 0);
	CHECK(now(CLOCK_MONOTONIC) >= t0 + 50 * MS);
	CHECK_INT(p.revents, 0);
	CHECK_OK(close(fd[1]));
	CHECK_INT(poll(&p, 1, -1), 1);
	CHECK_INT(p.revents, POLLHUP);
	CHECK_OK(close(fd[0]));
	return arg;
}

int main(void)
{
	struct rlimit limit;

	CHECK_OK(getrlimit(RLIMIT_NOFILE, &limit));
	limit.rlim_cur = limit.rlim_max < 4096 ? limit.rlim_max : 4096;
	CHECK_OK(setrlimit(RLIMIT_NOFILE, &limit));
	run(NULL);
	finish(start(run, NULL));
	half_closed(NULL);
	finish(start(half_closed, NULL));
	wakes();
	masks();
	return success();
}
