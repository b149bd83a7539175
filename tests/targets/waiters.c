/* SPDX-License-Identifier: MIT */
/*
 * tests/targets/waiters.c - a thread for each thing that one can wait for, and two in a deadlock.
 *
 *	waiters		prints "ready" once the threads have been made, and goes on until killed
 */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier, both_hold;
static sem_t semaphore, written;
static int pair[2], pipes[2];

static void *takes_first(void *arg)
{
	pthread_mutex_lock(&first);
	pthread_barrier_wait(&both_hold);
	pthread_mutex_lock(&second);
	return arg;
}

static void *takes_second(void *arg)
{
	pthread_mutex_lock(&second);
	pthread_barrier_wait(&both_hold);
	pthread_mutex_lock(&first);
	return arg;
}

static void *reads(void *arg)
{
	char byte;

	return read(pair[0], &byte, 1) < 0 ? NULL : arg;
}

static void *polls(void *arg)
{
	struct pollfd fds[] = { { pair[0], POLLIN, 0 }, { pipes[0], POLLIN, 0 } };

	poll(fds, 2, -1);
	return arg;
}

static void *sleeps(void *arg)
{
	sleep(100000);
	return arg;
}

static void *writes(void *arg)
{
	pthread_rwlock_wrlock(&rwlock);
	sem_post(&written);
	pause();
	return arg;
}

static void *writes_too(void *arg)
{
	pthread_rwlock_wrlock(&rwlock);
	return arg;
}

static void *reads_too(void *arg)
{
	pthread_rwlock_rdlock(&rwlock);
	return arg;
}

static void *takes(void *arg)
{
	sem_wait(&semaphore);
	return arg;
}

static void *awaits(void *arg)
{
	pthread_mutex_lock(&mutex);
	for (;;)
		pthread_cond_wait(&cond, &mutex);
	return arg;
}

static void *arrives(void *arg)
{
	pthread_barrier_wait(&barrier);
	return arg;
}

static void *expects(void *arg)
{
	sigset_t set;
	int sig;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	sigwait(&set, &sig);
	return arg;
}

static void *computes(void *arg)
{
	for (volatile unsigned long n = 0;; n++)
		;
	return arg;
}

static pthread_t make(void *(*start)(void *), const char *name)
{
	pthread_t thread;

	pthread_create(&thread, NULL, start, NULL);
	pthread_setname_np(thread, name);
	return thread;
}

int main(void)
{
	pthread_t one;

	socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
	if (pipe(pipes))
		return 1;
	sem_init(&semaphore, 0, 0);
	sem_init(&written, 0, 0);
	pthread_barrier_init(&barrier, NULL, 2);
	pthread_barrier_init(&both_hold, NULL, 2);
	make(writes, "writes");
	sem_wait(&written);
	one = make(takes_first, "takes-first");
	make(takes_second, "takes-second");
	make(reads, "reads");
	make(polls, "polls");
	make(sleeps, "sleeps");
	make(writes_too, "writes-too");
	make(reads_too, "reads-too");
	make(takes, "takes");
	make(awaits, "awaits");
	make(arrives, "arrives");
	make(expects, "expects");
	make(computes, "computes");
	puts("ready");
	fflush(stdout);
	pthread_join(one, NULL);
	return 0;
}
