/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/process/fork_handlers_early.c - the program's allocator registers handlers of
 * fork when the loader first calls it, before any library can. They hold a lock for which another
 * thread waits; the child's handler wakes waiters and sleeps. Forks by the main thread, by another
 * one, and by a thread with an affinity; a child makes threads, and forks itself.
 */
#include "check.h"

#include <sys/wait.h>

enum { FORKS = 10 };

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int guarded;
static volatile int stop;

static void before(void)
{
	CHECK_OK(pthread_mutex_lock(&lock));
	/* Some thread comes to wait for it meanwhile. */
	if (!stop)
		usleep(200);
}

static void after(void)
{
	CHECK_OK(pthread_cond_broadcast(&changed));
	CHECK_OK(pthread_mutex_unlock(&lock));
	CHECK_OK(usleep(1));
}

static void register_early(void)
{
	static int is_registered;

	if (is_registered)
		return;
	is_registered = 1;
	CHECK_OK(pthread_atfork(before, after, after));
}

void *malloc(size_t size)
{
	register_early();
	return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	register_early();
	return __libc_calloc(count, size);
}

static void *takes_lock(void *arg)
{
	while (!stop) {
		CHECK_OK(pthread_mutex_lock(&lock));
		guarded++;
		CHECK_OK(pthread_mutex_unlock(&lock));
	}
	return arg;
}

static void *waits_for_change(void *arg)
{
	CHECK_OK(pthread_mutex_lock(&lock));
	while (!stop)
		CHECK_OK(pthread_cond_wait(&changed, &lock));
	CHECK_OK(pthread_mutex_unlock(&lock));
	return arg;
}

static void *add_once(void *arg)
{
	CHECK_OK(pthread_mutex_lock(&lock));
	guarded++;
	CHECK_OK(pthread_mutex_unlock(&lock));
	return arg;
}

static void fork_and_wait(int generations)
{
	int status, seen;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		seen = guarded;
		CHECK(finish(start(add_once, &seen)) == &seen);
		CHECK_INT(guarded, seen + 1);
		if (generations > 1)
			fork_and_wait(generations - 1);
		_exit(7);
	}
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK_INT(status, 7 << 8);
}

static void *forks(void *arg)
{
	for (int i = 0; i < FORKS; i++)
		fork_and_wait(1 + i % 2);
	return arg;
}

int main(void)
{
	pthread_t t[2];

	/* If the loader has not called it. */
	void *volatile p = malloc(1);

	CHECK(p != NULL);
	free(p);
	forks(NULL);
	t[0] = start(takes_lock, NULL);
	t[1] = start(waits_for_change, NULL);
	forks(NULL);
	finish(start(forks, NULL));
	finish(start_affine(forks, NULL));
	CHECK_OK(pthread_mutex_lock(&lock));
	stop = 1;
	CHECK_OK(pthread_cond_broadcast(&changed));
	CHECK_OK(pthread_mutex_unlock(&lock));
	for (int i = 0; i < 2; i++)
		finish(t[i]);
	return success();
}
