/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/signal/signal_blocked.c - a signal that a thread blocks is sent to it while it waits, in
 * the usual ways and the less usual (waits.h): the call goes on as if nothing had been sent.
 */
#include "sockets.h"
#include "waits.h"

#include <semaphore.h>
#include <stdbool.h>
#include <sys/timerfd.h>

static int listener, timer;
static sem_t sem;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static _Atomic int handled;

static struct timespec hour = { 3600, 0 };

static const sigset_t *only(int sig)
{
	static __thread sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, sig);
	return &set;
}

static long do_accept(void) { return accept(listener, NULL, NULL); }
static long do_clock_nanosleep(void) { return clock_nanosleep(CLOCK_MONOTONIC, 0, &hour, NULL); }
static long do_cond_wait(void)
{
	long ret;

	pthread_mutex_lock(&mutex);
	pthread_cleanup_push((void (*)(void *))pthread_mutex_unlock, &mutex);
	ret = pthread_cond_wait(&cond, &mutex);
	pthread_cleanup_pop(1);
	return ret;
}
static long do_epoll_wait(void)
{
	struct epoll_event e = { .events = EPOLLIN };
	int fd = epoll_create1(0);

	CHECK_OK(epoll_ctl(fd, EPOLL_CTL_ADD, empty[0], &e));
	return epoll_wait(fd, &e, 1, -1);
}
static long do_nanosleep(void) { return nanosleep(&hour, NULL); }
static long do_pause(void) { return pause(); }
static long do_poll(void) { return poll(&(struct pollfd){ empty[0], POLLIN, 0 }, 1, -1); }
static long do_ppoll(void)
{
	return ppoll(&(struct pollfd){ empty[0], POLLIN, 0 }, 1, &hour, only(SIGUSR1));
}
static long do_read(void) { return read(empty[0], page, 1); }
static long do_read_timer(void) { return read(timer, page, 8); }
static long do_recv(void) { return recv(stream[0], page, 1, 0); }
static long do_select(void)
{
	fd_set set;

	FD_ZERO(&set);
	FD_SET(empty[0], &set);
	return select(empty[0] + 1, &set, NULL, NULL, NULL);
}
static long do_sem_timedwait(void)
{
	struct timespec late = in(CLOCK_REALTIME, 3600000 * MS);

	return sem_timedwait(&sem, &late);
}
static long do_sem_wait(void) { return sem_wait(&sem); }
static long do_sigsuspend(void) { return sigsuspend(only(SIGUSR1)); }
static long do_sigwaitinfo(void) { return sigwaitinfo(only(SIGUSR2), NULL); }
static long do_usual_write(void) { return write(full[1], page, 1); }

static const struct point usual[] = {
	{ "accept", do_accept, GOES_ON },
	{ "clock_nanosleep", do_clock_nanosleep, GOES_ON },
	{ "cond_wait", do_cond_wait, GOES_ON },
	{ "epoll_wait", do_epoll_wait, GOES_ON },
	{ "nanosleep", do_nanosleep, GOES_ON },
	{ "pause", do_pause, GOES_ON },
	{ "poll", do_poll, GOES_ON },
	{ "ppoll", do_ppoll, GOES_ON },
	{ "read", do_read, GOES_ON },
	{ "read, timerfd", do_read_timer, GOES_ON },
	{ "recv", do_recv, GOES_ON },
	{ "select", do_select, GOES_ON },
	{ "sem_timedwait", do_sem_timedwait, GOES_ON },
	{ "sem_wait", do_sem_wait, GOES_ON },
	{ "sigsuspend", do_sigsuspend, GOES_ON },
	{ "sigwaitinfo", do_sigwaitinfo, GOES_ON },
	{ "write", do_usual_write, GOES_ON },
};

static void count(int sig)
{
	(void)sig;
	handled++;
}

static const struct point *point;
static _Atomic bool returned;

static void *waits_in(void *arg)
{
	long ret;

	CHECK_OK(pthread_sigmask(SIG_BLOCK, only(SIGUSR1), NULL));
	CHECK_OK(pthread_sigmask(SIG_BLOCK, only(SIGUSR2), NULL));
	event_post(&waiting);
	errno = 0;
	ret = point->call();
	snprintf(arg, 128, "%s: %ld, error %d", point->name, ret, errno);
	returned = true;
	return NULL;
}

static void goes_on(const struct point *p)
{
	char result[128];
	pthread_t t;

	point = p;
	returned = false;
	waiting.count = 0;
	t = start(waits_in, result);
	event_wait(&waiting, 1);
	settle();
	/* The first may come too early. */
	for (int i = 0; i < 3 && !returned; i++) {
		CHECK_OK(pthread_kill(t, SIGUSR1));
		settle();
	}
	if (returned) {
		finish(t);
		fail(__FILE__, __LINE__, "%s\n", result);
	}
	CHECK_OK(pthread_cancel(t));
	CHECK(finish(t) == PTHREAD_CANCELED);
}

int main(void)
{
	struct sockaddr_in address;

	signal(SIGUSR1, count);
	signal(SIGPIPE, SIG_IGN);
	set_up_waits();
	CHECK_OK(sem_init(&sem, 0, 0));
	timer = timerfd_create(CLOCK_MONOTONIC, 0);
	CHECK(timer >= 0);
	listener = listening_socket(0, &address);
	for (size_t i = 0; i < COUNT(usual); i++)
		goes_on(&usual[i]);
	for (size_t i = 0; i < COUNT(points); i++)
		goes_on(&points[i]);
	tear_down_waits();
	CHECK_OK(handled);
	return success();
}
