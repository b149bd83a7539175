/* SPDX-License-Identifier: MIT */
/* tests/programs/io/select_edges.c - what select and pselect do at their edges. */
#include "check.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>

static volatile sig_atomic_t handled;
static char *const nowhere = (char *)16;

static void handler(int sig)
{
	(void)sig;
	handled++;
}

static void *errors(void *arg)
{
	struct timeval tv = { 0, 0 };
	struct timespec ts = { 0, 0 };
	fd_set set, before;
	int p[2];

	CHECK_OK(pipe(p));
	FD_ZERO(&set);
	FD_SET(p[0], &set);
	before = set;
	CHECK_ERR(select(-1, &set, NULL, NULL, NULL), EINVAL);
	CHECK_ERR(select(p[0] + 1, (fd_set *)nowhere, NULL, NULL, &tv), EFAULT);
	CHECK_ERR(select(p[0] + 1, NULL, (fd_set *)nowhere, NULL, NULL), EFAULT);
	tv = (struct timeval){ -1, 0 };
	CHECK_ERR(select(p[0] + 1, &set, NULL, NULL, &tv), EINVAL);
	tv = (struct timeval){ 1, -1 };
	CHECK_ERR(select(p[0] + 1, &set, NULL, NULL, &tv), EINVAL);
	ts = (struct timespec){ 0, 1000000000 };
	CHECK_ERR(pselect(p[0] + 1, &set, NULL, NULL, &ts, NULL), EINVAL);
	ts = (struct timespec){ -1, 0 };
	CHECK_ERR(pselect(p[0] + 1, &set, NULL, NULL, &ts, NULL), EINVAL);
	CHECK_ERR(pselect(p[0] + 1, &set, NULL, NULL, NULL, (sigset_t *)nowhere), EFAULT);
	CHECK_OK(memcmp(&set, &before, sizeof(set)));
	/* Microseconds beyond a second count. */
	tv = (struct timeval){ 0, 1000001 };
	CHECK_INT(write(p[1], "x", 1), 1);
	CHECK_KEEPS(select(p[0] + 1, &set, NULL, NULL, &tv), 1);
	CHECK(tv.tv_sec <= 1 && tv.tv_usec < 1000000);
	CHECK(tv.tv_sec == 1 || tv.tv_usec > 0);
	/* A closed descriptor; the sets stay as they were. */
	close(p[1]);
	FD_SET(p[1], &set);
	before = set;
	tv = (struct timeval){ 1, 0 };
	if (!arg)
		CHECK_ERR(select(p[1] + 1, &set, NULL, NULL, &tv), EBADF);
	CHECK_OK(memcmp(&set, &before, sizeof(set)));
	close(p[0]);
	return NULL;
}

static void *timeouts(void *arg)
{
	struct timeval tv;
	struct timespec ts;
	fd_set r, w, e;
	long long t0;
	int p[2];

	CHECK_OK(pipe(p));
	for (int i = 0; i < 3; i++) {
		FD_ZERO(&r);
		FD_ZERO(&e);
		FD_SET(p[0], &r);
		FD_SET(p[0], &e);
		tv = (struct timeval){ 0, 7000 };
		t0 = now(CLOCK_MONOTONIC);
		CHECK_KEEPS(select(p[0] + 1, &r, NULL, &e, &tv), 0);
		CHECK(now(CLOCK_MONOTONIC) - t0 >= 7 * MS);
		CHECK(!FD_ISSET(p[0], &r) && !FD_ISSET(p[0], &e));
		CHECK_INT(tv.tv_sec, 0);
		CHECK_INT(tv.tv_usec, 0);
		/* Zero does not wait, and is not changed. */
		FD_SET(p[0], &r);
		CHECK_KEEPS(select(p[0] + 1, &r, NULL, NULL, &tv), 0);
		CHECK(!FD_ISSET(p[0], &r));
		/* No descriptors: a sleep. */
		ts = (struct timespec){ 0, 3 * MS };
		t0 = now(CLOCK_MONOTONIC);
		CHECK_KEEPS(pselect(0, NULL, NULL, NULL, &ts, NULL), 0);
		CHECK(now(CLOCK_MONOTONIC) - t0 >= 3 * MS);
		CHECK_INT(ts.tv_nsec, 3 * MS);
	}
	/* Not all of the time is used. */
	FD_ZERO(&r);
	FD_ZERO(&w);
	FD_SET(p[0], &r);
	FD_SET(p[1], &w);
	tv = (struct timeval){ 100, 0 };
	CHECK_KEEPS(select(p[1] + 1, &r, &w, NULL, &tv), 1);
	CHECK(!FD_ISSET(p[0], &r) && FD_ISSET(p[1], &w));
	CHECK(tv.tv_sec >= 50);
	/* The same descriptor in two sets counts twice. */
	int s[2];
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
	CHECK_INT(write(s[1], "x", 1), 1);
	FD_ZERO(&r);
	FD_ZERO(&w);
	FD_SET(s[0], &r);
	FD_SET(s[0], &w);
	CHECK_KEEPS(select(s[0] + 1, &r, &w, NULL, NULL), 2);
	for (int i = 0; i < 2; i++) {
		close(p[i]);
		close(s[i]);
	}
	return arg;
}

struct waiting {
	int fd, ready;
	pthread_t thread;
};

static struct event at_it = EVENT_INIT;

static void *interrupted(void *arg)
{
	struct waiting *w = arg;
	struct timeval tv = { 30, 0 };
	fd_set r, before;

	FD_ZERO(&r);
	FD_SET(w->fd, &r);
	before = r;
	event_post(&at_it);
	CHECK_ERR(select(w->fd + 1, &r, NULL, NULL, &tv), EINTR);
	CHECK_OK(memcmp(&r, &before, sizeof(r)));
	CHECK(tv.tv_sec < 30 && tv.tv_sec > 10);
	return NULL;
}

static void *masked(void *arg)
{
	struct waiting *w = arg;
	struct timespec ts = { 30, 0 };
	sigset_t block, old;
	fd_set r;

	sigemptyset(&block);
	sigaddset(&block, SIGUSR2);
	CHECK_OK(pthread_sigmask(SIG_BLOCK, &block, &old));
	sigdelset(&old, SIGUSR2);
	/* Pending before: runs when the call lets it in, which one that fails at once does not. */
	CHECK_OK(pthread_kill(pthread_self(), SIGUSR2));
	int seen = handled;
	CHECK_ERR(pselect(w->fd + 1, (fd_set *)nowhere, NULL, NULL, &ts, &old), EFAULT);
	CHECK_ERR(pselect(-1, NULL, NULL, NULL, &ts, &old), EINVAL);
	CHECK_INT(handled, seen);
	FD_ZERO(&r);
	FD_SET(w->fd, &r);
	CHECK_ERR(pselect(w->fd + 1, &r, NULL, NULL, &ts, &old), EINTR);
	CHECK(handled > seen);
	CHECK_OK(pthread_sigmask(SIG_BLOCK, NULL, &old));
	CHECK(sigismember(&old, SIGUSR2));
	return NULL;
}

static void *many(void *arg)
{
	enum { PAIRS = 100 };
	int p[PAIRS][2];
	fd_set r;
	int top = 0;

	for (int i = 0; i < PAIRS; i++) {
		CHECK_OK(pipe(p[i]));
		top = p[i][0] > top ? p[i][0] : top;
	}
	CHECK(top < FD_SETSIZE);
	for (int i = 0; i < PAIRS; i += 33) {
		struct timeval tv = { 0, 2000 };

		FD_ZERO(&r);
		for (int k = 0; k < PAIRS; k++)
			FD_SET(p[k][0], &r);
		CHECK_KEEPS(select(top + 1, &r, NULL, NULL, &tv), 0);
		CHECK_INT(write(p[i][1], "x", 1), 1);
		for (int k = 0; k < PAIRS; k++)
			FD_SET(p[k][0], &r);
		CHECK_KEEPS(select(top + 1, &r, NULL, NULL, NULL), 1);
		CHECK(FD_ISSET(p[i][0], &r));
		char c;
		CHECK_INT(read(p[i][0], &c, 1), 1);
	}
	for (int i = 0; i < PAIRS; i++) {
		close(p[i][0]);
		close(p[i][1]);
	}
	return arg;
}

/* More descriptors than an fd_set has: programs allocate larger ones. */
static void *beyond(void *arg)
{
	struct rlimit limit;
	unsigned long *set;
	int p[2], high = 2000;
	const size_t bits = 8 * sizeof(*set);

	CHECK_OK(getrlimit(RLIMIT_NOFILE, &limit));
	if (limit.rlim_max > 2100 && limit.rlim_cur < 2100) {
		limit.rlim_cur = 2100;
		CHECK_OK(setrlimit(RLIMIT_NOFILE, &limit));
	}
	CHECK_OK(pipe(p));
	if (limit.rlim_cur >= 2100) {
		set = calloc(high / bits + 1, sizeof(*set));
		CHECK(set != NULL);
		CHECK_INT(dup2(p[0], high), high);
		struct timeval tv = { 0, 2000 };
		set[high / bits] |= 1UL << high % bits;
		CHECK_KEEPS(select(high + 1, (fd_set *)set, NULL, NULL, &tv), 0);
		CHECK_INT(set[high / bits], 0);
		set[high / bits] |= 1UL << high % bits;
		CHECK_INT(write(p[1], "x", 1), 1);
		CHECK_KEEPS(select(high + 1, (fd_set *)set, NULL, NULL, NULL), 1);
		CHECK(set[high / bits] >> high % bits & 1);
		close(high);
		free(set);
	}
	close(p[0]);
	close(p[1]);
	return arg;
}

/* A hang-up is not an exceptional condition: the call must go on waiting. */
static void *hung_up(void *arg)
{
	struct timeval tv = { 0, 20000 };
	long long t0 = now(CLOCK_MONOTONIC);
	int s[2];
	fd_set e;

	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
	close(s[1]);
	FD_ZERO(&e);
	FD_SET(s[0], &e);
	CHECK_KEEPS(select(s[0] + 1, NULL, NULL, &e, &tv), 0);
	CHECK(now(CLOCK_MONOTONIC) - t0 >= 20 * MS);
	close(s[0]);
	return arg;
}

/* Nor is it room to write that the other side sends no more. */
static void *half_closed(void *arg)
{
	struct timeval tv = { 0, 20000 };
	long long t0;
	char buf[4096] = "";
	int s[2];
	fd_set w;

	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
	while (send(s[0], buf, sizeof(buf), MSG_DONTWAIT) > 0)
		continue;
	CHECK_OK(shutdown(s[1], SHUT_WR));
	FD_ZERO(&w);
	FD_SET(s[0], &w);
	t0 = now(CLOCK_MONOTONIC);
	CHECK_KEEPS(select(s[0] + 1, NULL, &w, NULL, &tv), 0);
	CHECK(now(CLOCK_MONOTONIC) - t0 >= 20 * MS);
	CHECK(!FD_ISSET(s[0], &w));
	close(s[0]);
	close(s[1]);
	return arg;
}

int main(void)
{
	struct sigaction sa = { .sa_handler = handler, .sa_flags = SA_RESTART };
	struct waiting w;
	pthread_t t[6];
	int p[2];

	CHECK_OK(sigaction(SIGUSR1, &sa, NULL));
	CHECK_OK(sigaction(SIGUSR2, &sa, NULL));
	finish(start(errors, NULL));
	errors(NULL);
	puts("errors");
	/* Together; with others about, a number that was closed may be open again. */
	for (int i = 0; i < 6; i++)
		t[i] = start(i % 2 ? timeouts : errors, "others");
	for (int i = 0; i < 6; i++)
		finish(t[i]);
	puts("timeouts");
	CHECK_OK(pipe(p));
	w.fd = p[0];
	w.thread = start(interrupted, &w);
	event_wait(&at_it, 1);
	settle();
	/* The thread may not have got there yet: again until it has. */
	while (pthread_tryjoin_np(w.thread, NULL) == EBUSY) {
		CHECK_OK(pthread_kill(w.thread, SIGUSR1));
		settle();
	}
	finish(start(masked, &w));
	puts("signals");
	finish(start(many, NULL));
	finish(start(beyond, NULL));
	finish(start(hung_up, NULL));
	finish(start(half_closed, NULL));
	puts("many");
	return success();
}
