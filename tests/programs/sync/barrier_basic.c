/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/sync/barrier_basic.c - barriers: nobody leaves early, one in each round
 * is told so, and one may be destroyed by the first to leave.
 */
#include "check.h"

#define THREADS 16
#define ROUNDS 200

static pthread_barrier_t barrier;
static int arrived, serials;
static struct event ready = EVENT_INIT;

static void arguments(void)
{
	pthread_barrierattr_t attr;
	int v;

	CHECK_INT(pthread_barrier_init(&barrier, NULL, 0), EINVAL);
	CHECK_OK(pthread_barrierattr_init(&attr));
	CHECK_OK(pthread_barrierattr_getpshared(&attr, &v));
	CHECK_INT(v, PTHREAD_PROCESS_PRIVATE);
	CHECK_INT(pthread_barrierattr_setpshared(&attr, 7), EINVAL);
	CHECK_OK(pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED));
	CHECK_OK(pthread_barrierattr_getpshared(&attr, &v));
	CHECK_INT(v, PTHREAD_PROCESS_SHARED);
	CHECK_OK(pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_PRIVATE));
	CHECK_OK(pthread_barrier_init(&barrier, &attr, 1));
	CHECK_OK(pthread_barrierattr_destroy(&attr));
	for (int i = 0; i < 5; i++)
		CHECK_KEEPS(pthread_barrier_wait(&barrier), PTHREAD_BARRIER_SERIAL_THREAD);
	CHECK_KEEPS(pthread_barrier_destroy(&barrier), 0);
	puts("arguments");
}

static void pass(void)
{
	int r = pthread_barrier_wait(&barrier);

	CHECK(r == 0 || r == PTHREAD_BARRIER_SERIAL_THREAD);
	if (r)
		__atomic_fetch_add(&serials, 1, __ATOMIC_SEQ_CST);
}

static void *in_rounds(void *arg)
{
	uint64_t seed = (uint64_t)(intptr_t)arg + 1;

	for (int i = 0; i < ROUNDS; i++) {
		if (random_next(&seed) % 50 == 0)
			usleep((useconds_t)(random_next(&seed) % 300));
		__atomic_fetch_add(&arrived, 1, __ATOMIC_RELAXED);
		pass();
		/* All of this round are here, and none has come to the next. */
		CHECK_INT(__atomic_load_n(&arrived, __ATOMIC_RELAXED), (i + 1) * THREADS);
		pass();
	}
	return NULL;
}

static void rounds(int affine)
{
	pthread_t t[THREADS];

	arrived = serials = 0;
	CHECK_OK(pthread_barrier_init(&barrier, NULL, THREADS));
	for (intptr_t i = 0; i < THREADS; i++)
		t[i] = start_as(affine && i % 2, in_rounds, (void *)i);
	for (int i = 0; i < THREADS; i++)
		finish(t[i]);
	CHECK_INT(serials, 2 * ROUNDS);
	CHECK_OK(pthread_barrier_destroy(&barrier));
	puts("rounds");
}

/* More threads than it takes: they pass in groups, and a rest waits for its own. */
static void *once_each(void *arg)
{
	pass();
	__atomic_fetch_add(&arrived, 1, __ATOMIC_SEQ_CST);
	return arg;
}

static void groups(int affine)
{
	pthread_t t[12];

	arrived = serials = 0;
	CHECK_OK(pthread_barrier_init(&barrier, NULL, 3));
	for (int i = 0; i < 11; i++)
		t[i] = start_as(affine && i % 2, once_each, NULL);
	while (__atomic_load_n(&arrived, __ATOMIC_SEQ_CST) < 9)
		usleep(1000);
	settle();
	CHECK_INT(__atomic_load_n(&arrived, __ATOMIC_SEQ_CST), 9);
	t[11] = start(once_each, NULL);
	for (int i = 0; i < 12; i++)
		finish(t[i]);
	CHECK_INT(serials, 4);
	CHECK_OK(pthread_barrier_destroy(&barrier));
	puts("groups");
}

/* Whoever is told so destroys it, while others are still on their way out. */
static pthread_barrier_t *on_heap;

static void *destroys(void *arg)
{
	pthread_barrier_t *b = on_heap;

	(void)arg;
	if (pthread_barrier_wait(b) == PTHREAD_BARRIER_SERIAL_THREAD) {
		CHECK_OK(pthread_barrier_destroy(b));
		memset(b, 0xa5, sizeof(*b));
		free(b);
	}
	return NULL;
}

static void destroyed_at_once(int affine)
{
	for (int round = 0; round < 50; round++) {
		pthread_t t[4];

		on_heap = malloc(sizeof(*on_heap));
		CHECK(on_heap);
		CHECK_OK(pthread_barrier_init(on_heap, NULL, 4));
		for (int i = 0; i < 4; i++)
			t[i] = start_as(affine && i % 2, destroys, NULL);
		for (int i = 0; i < 4; i++)
			finish(t[i]);
	}
	puts("destroyed");
}

static volatile sig_atomic_t handled;

static void on_signal(int sig)
{
	(void)sig;
	handled++;
}

static void *waits(void *arg)
{
	event_post(&ready);
	CHECK_INT(pthread_barrier_wait(&barrier), 0);
	__atomic_fetch_add(&arrived, 1, __ATOMIC_SEQ_CST);
	return arg;
}

/* Not a cancellation point, and a signal does not end it. */
static void undisturbed(int affine)
{
	struct sigaction action = { .sa_handler = on_signal };
	pthread_t t;

	arrived = handled = ready.count = 0;
	CHECK_OK(sigaction(SIGUSR1, &action, NULL));
	CHECK_OK(pthread_barrier_init(&barrier, NULL, 2));
	t = start_as(affine, waits, &t);
	event_wait(&ready, 1);
	settle();
	CHECK_OK(pthread_kill(t, SIGUSR1));
	while (!handled)
		usleep(1000);
	CHECK_OK(pthread_cancel(t));
	settle();
	CHECK_INT(__atomic_load_n(&arrived, __ATOMIC_SEQ_CST), 0);
	CHECK_INT(pthread_barrier_wait(&barrier), PTHREAD_BARRIER_SERIAL_THREAD);
	CHECK(finish(t) == &t);
	CHECK_INT(arrived, 1);
	CHECK_OK(pthread_barrier_destroy(&barrier));
	puts("undisturbed");
}

int main(void)
{
	arguments();
	for (int affine = 0; affine < 2; affine++) {
		rounds(affine);
		groups(affine);
		destroyed_at_once(affine);
		undisturbed(affine);
	}
	return success();
}
