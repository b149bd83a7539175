/* SPDX-License-Identifier: MIT */
/*
 * tests/targets/tangle.c - a deadlock by a mutex, a lock held for writing and a join, of threads of
 * three sorts: one asks for a CPU, one has state of its own in the kernel, one is like any other.
 *
 *	tangle			prints "ready" once the threads have been made, and goes on until killed
 *	tangle sleeper		one more thread sleeps: not all wait for each other
 *	tangle deadline		one of the waits has a deadline: there is no deadlock
 *	tangle ended		as without a word, but the process's first kernel thread has ended before
 *	tangle asleep		a thread waits for what never comes, and main() for the thread
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "raw_call.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_t pinned, plain, wired;
static sem_t held, go;

/* Holds the mutex, waits for the lock. */
static void *pinned_thread(void *arg)
{
	pthread_setname_np(pthread_self(), "pinned");
	pthread_mutex_lock(&mutex);
	sem_post(&held);
	sem_wait(&go);
	if (arg)
		pthread_rwlock_timedwrlock(&rwlock, &(struct timespec){ time(NULL) + 100000, 0 });
	else
		pthread_rwlock_wrlock(&rwlock);
	return arg;
}

/* Holds the lock, waits for the end of the plain thread. */
static void *wired_thread(void *arg)
{
	prctl(PR_SET_TIMERSLACK, 60000);
	pthread_setname_np(pthread_self(), "wired");
	pthread_rwlock_wrlock(&rwlock);
	sem_post(&held);
	sem_wait(&go);
	pthread_join(plain, NULL);
	return arg;
}

/* Waits for the mutex. */
static void *plain_thread(void *arg)
{
	pthread_setname_np(pthread_self(), "plain");
	pthread_mutex_lock(&mutex);
	return arg;
}

static void *sleeper(void *arg)
{
	sleep(100000);
	return arg;
}

static void *never(void *arg)
{
	sem_wait(&go);
	return arg;
}

/* Begins the deadlock when the process's first kernel thread has ended. */
static void *begin_late(void *arg)
{
	char path[64], state = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", getpid());
	while (state != 'Z') {
		usleep(1000);
		file = fopen(path, "r");
		if (!file || fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
			return arg;
		fclose(file);
	}
	sem_post(&go);
	sem_post(&go);
	return arg;
}

static void end_first(pthread_t *late)
{
	pthread_create(late, NULL, begin_late, NULL);
	for (;;)
		if (raw_call(SYS_gettid) == getpid())
			raw_call(SYS_exit);
		else
			usleep(1000);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	pthread_attr_t attr;
	cpu_set_t cpus;
	pthread_t other;

	sem_init(&held, 0, 0);
	sem_init(&go, 0, 0);
	if (strcmp(how, "asleep") == 0) {
		pthread_create(&other, NULL, never, NULL);
		puts("ready");
		fflush(stdout);
		return pthread_join(other, NULL);
	}
	if (strcmp(how, "sleeper") == 0)
		pthread_create(&other, NULL, sleeper, NULL);
	/* The first fiber, or all threads would be native. */
	pthread_create(&wired, NULL, wired_thread, NULL);
	sched_getaffinity(0, sizeof(cpus), &cpus);
	pthread_attr_init(&attr);
	pthread_attr_setaffinity_np(&attr, sizeof(cpus), &cpus);
	pthread_create(&pinned, &attr, pinned_thread,
		       strcmp(how, "deadline") == 0 ? &how : NULL);
	sem_wait(&held);
	sem_wait(&held);
	pthread_create(&plain, NULL, plain_thread, NULL);
	puts("ready");
	fflush(stdout);
	if (strcmp(how, "ended") == 0)
		end_first(&other);
	sem_post(&go);
	sem_post(&go);
	pthread_join(pinned, NULL);
	return 0;
}
