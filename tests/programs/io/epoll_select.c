/* SPDX-License-Identifier: MIT */
/* tests/programs/io/epoll_select.c - epoll and select while other threads are CPU-bound. */
#include "check.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

static struct event ready = EVENT_INIT;
static int stop;
static int ring[2][2];

/* Keeps whatever is below busy with requests in flight. */
static void *busy(void *arg)
{
	int id = (int)(intptr_t)arg;
	char c = 'x';

	if (!id)
		CHECK_INT(write(ring[1][1], &c, 1), 1);
	while (read(ring[id][0], &c, 1) == 1) {
		if (__atomic_load_n(&stop, __ATOMIC_SEQ_CST))
			break;
		usleep(50);
		CHECK_INT(write(ring[!id][1], &c, 1), 1);
	}
	CHECK_INT(write(ring[!id][1], &c, 1), 1);
	return NULL;
}

static void *epolls(void *arg)
{
	const struct timespec short_time = { .tv_nsec = 3 * MS };
	const struct timespec bad_time = { .tv_nsec = 1000 * MS };
	struct epoll_event e = { .events = EPOLLIN }, got[4];
	int ep = epoll_create1(EPOLL_CLOEXEC), p[2];
	uint64_t n = 1;
	long long t0;
	void *nowhere = (void *)8;
	char c;

	CHECK(ep >= 0);
	CHECK_OK(pipe(p));
	e.data.fd = p[0];
	CHECK_OK(epoll_ctl(ep, EPOLL_CTL_ADD, p[0], &e));
	CHECK_KEEPS(epoll_wait(ep, got, 4, 0), 0);
	for (int i = 0; i < 5; i++) {
		t0 = now(CLOCK_MONOTONIC);
		CHECK_KEEPS(epoll_wait(ep, got, 4, 10), 0);
		CHECK(now(CLOCK_MONOTONIC) >= t0 + 10 * MS);
		t0 = now(CLOCK_MONOTONIC);
		CHECK_KEEPS(epoll_pwait(ep, got, 4, 5, NULL), 0);
		CHECK(now(CLOCK_MONOTONIC) >= t0 + 5 * MS);
		t0 = now(CLOCK_MONOTONIC);
		CHECK_KEEPS(epoll_pwait2(ep, got, 4, &short_time, NULL), 0);
		CHECK(now(CLOCK_MONOTONIC) >= t0 + 3 * MS);
	}
	CHECK_ERR(epoll_pwait2(ep, got, 4, &bad_time, NULL), EINVAL);
	CHECK_ERR(epoll_pwait2(ep, got, 4, nowhere, NULL), EFAULT);
	CHECK_ERR(epoll_pwait(ep, got, 4, 10, nowhere), EFAULT);
	CHECK_ERR(ppoll(NULL, 0, &short_time, nowhere), EFAULT);
	CHECK_ERR(epoll_wait(ep, got, 0, 0), EINVAL);
	CHECK_ERR(epoll_wait(-1, got, 1, 0), EBADF);
	CHECK_ERR(epoll_wait(p[0], got, 1, 0), EINVAL);
	CHECK_INT(write(p[1], "x", 1), 1);
	CHECK_KEEPS(epoll_wait(ep, got, 4, -1), 1);
	CHECK_INT(got[0].data.fd, p[0]);
	CHECK_INT(read(p[0], &c, 1), 1);
	/* An epoll inside an epoll, an eventfd in that. */
	int inner = epoll_create1(0), ev = eventfd(0, 0);
	e.data.fd = ev;
	CHECK_OK(epoll_ctl(inner, EPOLL_CTL_ADD, ev, &e));
	e.data.fd = inner;
	CHECK_OK(epoll_ctl(ep, EPOLL_CTL_ADD, inner, &e));
	CHECK_KEEPS(epoll_wait(ep, got, 4, 1), 0);
	CHECK_INT(write(ev, &n, 8), 8);
	CHECK_KEEPS(epoll_wait(ep, got, 4, -1), 1);
	CHECK_INT(got[0].data.fd, inner);
	CHECK_INT(read(ev, &n, 8), 8);
	close(inner);
	close(ev);
	close(ep);
	close(p[0]);
	close(p[1]);
	return arg;
}

static void *selects(void *arg)
{
	struct timeval tv;
	struct timespec ts;
	long long t0;
	fd_set in, out;
	int p[2];
	char c;

	CHECK_OK(pipe(p));
	CHECK(p[1] < FD_SETSIZE);
	for (int i = 0; i < 5; i++) {
		FD_ZERO(&in);
		FD_SET(p[0], &in);
		tv = (struct timeval){ 0, 10000 };
		t0 = now(CLOCK_MONOTONIC);
		CHECK_KEEPS(select(p[0] + 1, &in, NULL, NULL, &tv), 0);
		CHECK(now(CLOCK_MONOTONIC) >= t0 + 10 * MS);
		CHECK(!FD_ISSET(p[0], &in));
		CHECK_INT(tv.tv_sec * 1000000 + tv.tv_usec, 0);
		FD_SET(p[0], &in);
		ts = (struct timespec){ 0, 5000000 };
		t0 = now(CLOCK_MONOTONIC);
		CHECK_KEEPS(pselect(p[0] + 1, &in, NULL, NULL, &ts, NULL), 0);
		CHECK(now(CLOCK_MONOTONIC) >= t0 + 5 * MS);
		CHECK_INT(ts.tv_nsec, 5000000);
		tv = (struct timeval){ 0, 3000 };
		CHECK_KEEPS(select(0, NULL, NULL, NULL, &tv), 0);
	}
	CHECK_INT(write(p[1], "x", 1), 1);
	FD_ZERO(&in);
	FD_ZERO(&out);
	FD_SET(p[0], &in);
	FD_SET(p[1], &out);
	CHECK_KEEPS(select(p[1] + 1, &in, &out, NULL, NULL), 2);
	CHECK(FD_ISSET(p[0], &in) && FD_ISSET(p[1], &out));
	CHECK_INT(read(p[0], &c, 1), 1);
	tv = (struct timeval){ 0, -1 };
	CHECK_ERR(select(0, NULL, NULL, NULL, &tv), EINVAL);
	tv = (struct timeval){ 0, 0 };
	CHECK_ERR(select(-1, NULL, NULL, NULL, &tv), EINVAL);
	close(p[0]);
	FD_ZERO(&in);
	FD_SET(p[0], &in);
	close(p[1]);
	return arg;
}

struct woken {
	int fd, by_epoll;
};

static void *waits(void *arg)
{
	struct woken *w = arg;
	struct epoll_event e = { .events = EPOLLIN }, got;
	fd_set in;

	if (w->by_epoll) {
		int ep = epoll_create1(0);

		CHECK_OK(epoll_ctl(ep, EPOLL_CTL_ADD, w->fd, &e));
		event_post(&ready);
		CHECK_KEEPS(epoll_wait(ep, &got, 1, 30000), 1);
		close(ep);
	} else {
		FD_ZERO(&in);
		FD_SET(w->fd, &in);
		event_post(&ready);
		CHECK_KEEPS(select(w->fd + 1, &in, NULL, NULL, NULL), 1);
	}
	return NULL;
}

static void *timers(void *arg)
{
	struct itimerspec when = { .it_value = { 0, 5000000 },
				   .it_interval = { 0, 2000000 } };
	int fd = timerfd_create(CLOCK_MONOTONIC, 0);
	uint64_t n, total = 0;

	CHECK(fd >= 0);
	CHECK_OK(timerfd_settime(fd, 0, &when, NULL));
	while (total < 10) {
		CHECK_INT(read(fd, &n, 8), 8);
		CHECK(n >= 1);
		total += n;
	}
	close(fd);
	return arg;
}

int main(void)
{
	pthread_t b[2], t[9];
	struct woken w[6];
	int p[6][2];

	CHECK_OK(pipe(ring[0]));
	CHECK_OK(pipe(ring[1]));
	for (intptr_t i = 0; i < 2; i++)
		b[i] = start(busy, (void *)i);
	epolls(NULL);
	selects(NULL);
	for (int i = 0; i < 9; i++)
		t[i] = start(i % 3 == 0 ? epolls : i % 3 == 1 ? selects : timers,
			     NULL);
	for (int i = 0; i < 9; i++)
		finish(t[i]);
	puts("timeouts");
	for (int i = 0; i < 6; i++) {
		CHECK_OK(pipe(p[i]));
		w[i] = (struct woken){ p[i][0], i % 2 };
		t[i] = start(waits, &w[i]);
	}
	event_wait(&ready, 6);
	settle();
	for (int i = 5; i >= 0; i--)
		CHECK_INT(write(p[i][1], "x", 1), 1);
	for (int i = 0; i < 6; i++)
		finish(t[i]);
	puts("wakes");
	__atomic_store_n(&stop, 1, __ATOMIC_SEQ_CST);
	for (int i = 0; i < 2; i++)
		finish(b[i]);
	return success();
}
