/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/sync/cond_shared.c - a condition variable that processes may share, used
 * with mutexes that they may not.
 */
#include "check.h"

#include <sys/mman.h>
#include <sys/wait.h>

enum { THREADS = 8, TURNS = 100 };

static pthread_cond_t *cond;
static pthread_mutex_t lock;
static int turn;
static struct event ready = EVENT_INIT;

static void init(int type)
{
	pthread_mutexattr_t attr;

	CHECK_OK(pthread_mutexattr_init(&attr));
	CHECK_OK(pthread_mutexattr_settype(&attr, type));
	CHECK_OK(pthread_mutex_init(&lock, &attr));
	CHECK_OK(pthread_mutexattr_destroy(&attr));
	turn = ready.count = 0;
}

static void take(void)
{
	CHECK_OK(pthread_mutex_lock(&lock));
}

static void leave(void)
{
	CHECK_OK(pthread_mutex_unlock(&lock));
}

/* Each waits for its turn, and others fight for the mutex meanwhile. */
static void *takes_turns(void *arg)
{
	const int me = (int)(intptr_t)arg;
	struct timespec later = in(CLOCK_REALTIME, 100000 * MS);
	struct timespec later_too = in(CLOCK_MONOTONIC, 100000 * MS);

	for (int i = 0; i < TURNS; i++) {
		take();
		while (turn % THREADS != me) {
			switch (i % 3) {
			case 0:
				CHECK_OK(pthread_cond_wait(cond, &lock));
				break;
			case 1:
				CHECK_OK(pthread_cond_timedwait(cond, &lock, &later));
				break;
			default:
				CHECK_OK(pthread_cond_clockwait(cond, &lock, CLOCK_MONOTONIC,
								&later_too));
			}
		}
		turn++;
		CHECK_OK(pthread_cond_broadcast(cond));
		leave();
	}
	return NULL;
}

static void turns(int type, int affine)
{
	pthread_t t[THREADS];

	init(type);
	for (int i = 0; i < THREADS; i++)
		t[i] = start_as(affine && i % 2, takes_turns, (void *)(intptr_t)i);
	for (int i = 0; i < THREADS; i++)
		finish(t[i]);
	CHECK_INT(turn, THREADS * TURNS);
	CHECK_OK(pthread_mutex_destroy(&lock));
	puts("turns");
}

/* No signal is lost between the unlock and the sleep: one for each wait. */
static void *wants_one(void *arg)
{
	for (int i = 0; i < TURNS; i++) {
		take();
		turn = 1;
		while (turn)
			CHECK_OK(pthread_cond_wait(cond, &lock));
		leave();
	}
	return arg;
}

static void one_each(void)
{
	pthread_t t;

	init(PTHREAD_MUTEX_NORMAL);
	t = start(wants_one, NULL);
	for (int done = 0; done < TURNS;) {
		take();
		if (turn) {
			turn = 0;
			done++;
			CHECK_OK(pthread_cond_signal(cond));
		}
		leave();
		sched_yield();
	}
	finish(t);
	puts("one each");
}

static void times_out(void)
{
	struct timespec past = in(CLOCK_REALTIME, -MS), soon = in(CLOCK_REALTIME, 5 * MS);
	struct timespec bad = { 0, -1 };

	init(PTHREAD_MUTEX_ERRORCHECK);
	CHECK_INT(pthread_cond_wait(cond, &lock), EPERM);
	take();
	CHECK_INT(pthread_cond_timedwait(cond, &lock, &bad), EINVAL);
	CHECK_INT(pthread_cond_timedwait(cond, &lock, &past), ETIMEDOUT);
	CHECK_INT(pthread_cond_timedwait(cond, &lock, &soon), ETIMEDOUT);
	CHECK(now(CLOCK_REALTIME) >= soon.tv_sec * 1000 * MS + soon.tv_nsec);
	leave();
	puts("times out");
}

static void undo(void *arg)
{
	/* Error-checking: fails unless it is ours. */
	leave();
	turn++;
}

static void *waits_forever(void *arg)
{
	take();
	event_post(&ready);
	pthread_cleanup_push(undo, NULL);
	for (;;)
		CHECK_OK(pthread_cond_wait(cond, &lock));
	pthread_cleanup_pop(0);
	return arg;
}

static void cancelled(int affine)
{
	pthread_t t[THREADS];

	init(PTHREAD_MUTEX_ERRORCHECK);
	for (int i = 0; i < THREADS; i++)
		t[i] = start_as(affine && i % 2, waits_forever, NULL);
	event_wait(&ready, THREADS);
	settle();
	for (int i = 0; i < THREADS; i++)
		CHECK_OK(pthread_cancel(t[i]));
	for (int i = 0; i < THREADS; i++)
		CHECK(finish(t[i]) == PTHREAD_CANCELED);
	CHECK_INT(turn, THREADS);
	take();
	leave();
	puts("cancelled");
}

/* Another process, which has a mutex of its own, wakes it too. */
static volatile int *over;

static void *waits_for_other(void *arg)
{
	take();
	while (!*over)
		CHECK_OK(pthread_cond_wait(cond, &lock));
	leave();
	*over = 2;
	return arg;
}

static void other_process(void)
{
	pthread_t t;
	int status;
	pid_t pid;

	init(PTHREAD_MUTEX_NORMAL);
	t = start(waits_for_other, NULL);
	settle();
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		*over = 1;
		while (*over != 2) {
			CHECK_OK(pthread_cond_signal(cond));
			usleep(1000);
		}
		_exit(0);
	}
	finish(t);
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK_INT(status, 0);
	puts("other process");
}

int main(void)
{
	pthread_condattr_t attr;
	char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(page != MAP_FAILED);
	cond = (pthread_cond_t *)page;
	over = (int *)(page + sizeof(*cond));
	CHECK_OK(pthread_condattr_init(&attr));
	CHECK_OK(pthread_condattr_setpshared(&attr, PTHREAD_PROCESS_SHARED));
	CHECK_OK(pthread_cond_init(cond, &attr));
	for (int affine = 0; affine < 2; affine++) {
		turns(PTHREAD_MUTEX_NORMAL, affine);
		turns(PTHREAD_MUTEX_RECURSIVE, affine);
		turns(PTHREAD_MUTEX_ERRORCHECK, affine);
		cancelled(affine);
	}
	one_each();
	times_out();
	fflush(stdout);
	other_process();
	CHECK_OK(pthread_cond_destroy(cond));
	return success();
}
