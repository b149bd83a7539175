/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/thread/life_stress.c - a hundred threads that make threads and join, detach or cancel
 * them while they wait for all kinds of things.
 *
 *	life_stress [SECONDS [FAMILY]]
 *
 * for SECONDS (0.1) each; FAMILY is life or cancel.
 */
#include "families.h"

#include <poll.h>
#include <semaphore.h>

/* ---- threads that live shortly: joined, detached, each once -------------- */

enum { PARENTS = 100 };
static long lived, too_many;
static _Thread_local long fresh;

static void *lives(void *arg)
{
	struct work *w = arg;

	CHECK_INT(fresh, 0);
	fresh = w->id + 1;
	if (w->done % 3 == 0)
		sched_yield();
	else if (w->done % 7 == 0)
		usleep(100);
	CHECK_INT(fresh, w->id + 1);
	__atomic_fetch_add(&lived, 1, __ATOMIC_RELEASE);
	return (void *)(intptr_t)(w->id + 1);
}

static void *lives_apart(void *arg)
{
	CHECK_INT(fresh, 0);
	fresh = 1;
	if (arg)
		CHECK_OK(pthread_detach(pthread_self()));
	__atomic_fetch_sub(&too_many, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&lived, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void start_apart(pthread_t *t, const pthread_attr_t *attr, void *arg)
{
	while (__atomic_load_n(&too_many, __ATOMIC_RELAXED) > PARENTS)
		usleep(100);
	__atomic_fetch_add(&too_many, 1, __ATOMIC_RELAXED);
	CHECK_OK(pthread_create(t, attr, lives_apart, arg));
}

static void life_step(struct work *w)
{
	struct timespec ts;
	pthread_attr_t attr;
	void *result = NULL;
	pthread_t t;
	int r;

	w->a++;
	switch (random_next(&w->seed) % 6) {
	case 0:
		start_apart(&t, NULL, NULL);
		CHECK_OK(pthread_detach(t));
		return;
	case 1:
		start_apart(&t, NULL, w);
		return;
	case 2:
		CHECK_OK(pthread_attr_init(&attr));
		CHECK_OK(pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED));
		start_apart(&t, &attr, NULL);
		CHECK_OK(pthread_attr_destroy(&attr));
		return;
	case 3:
		t = start(lives, w);
		while ((r = pthread_tryjoin_np(t, &result)) == EBUSY)
			sched_yield();
		CHECK_INT(r, 0);
		break;
	case 4:
		t = start(lives, w);
		ts = in(CLOCK_REALTIME, (long long)(random_next(&w->seed) % MS));
		while ((r = pthread_timedjoin_np(t, &result, &ts)) == ETIMEDOUT)
			ts = in(CLOCK_REALTIME, MS);
		CHECK_INT(r, 0);
		break;
	default:
		t = start(lives, w);
		CHECK_OK(pthread_join(t, &result));
	}
	CHECK((intptr_t)result == w->id + 1);
}

static void lifes(void)
{
	lived = too_many = 0;
	run(life_step, NULL);
	while (__atomic_load_n(&lived, __ATOMIC_ACQUIRE) < sum_a)
		usleep(1000);
	usleep(1000);
	CHECK_INT(lived, sum_a);
}

/* ---- cancellation: of threads that wait for all kinds of things ---------- */

enum { TOKENS = 20 };
static int silent[2];
static pthread_mutex_t lock;
static pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER;
static sem_t tokens;
static int taken;

struct victim {
	unsigned kind;
	int cleaned;
};

static void clean(void *arg)
{
	((struct victim *)arg)->cleaned++;
}

static void unlock(void *arg)
{
	(void)arg;
	/* Error-checking: fails unless it is ours. */
	CHECK_OK(pthread_mutex_unlock(&lock));
}

static void wait_to_be_cancelled(unsigned kind)
{
	struct pollfd p = { .fd = silent[0], .events = POLLIN };
	char c;

	switch (kind) {
	case 0:
		CHECK_INT(read(silent[0], &c, 1), 1);
		break;
	case 1:
		CHECK_OK(sem_wait(&tokens));
		CHECK(__atomic_fetch_add(&taken, 1, __ATOMIC_ACQ_REL) < TOKENS);
		sched_yield();
		__atomic_fetch_sub(&taken, 1, __ATOMIC_ACQ_REL);
		CHECK_OK(sem_post(&tokens));
		break;
	case 2:
		CHECK_OK(pthread_mutex_lock(&lock));
		pthread_cleanup_push(unlock, NULL);
		CHECK_OK(pthread_cond_wait(&not_empty, &lock));
		pthread_cleanup_pop(1);
		break;
	case 3:
		usleep(1000000);
		break;
	case 4:
		poll(&p, 1, -1);
		break;
	case 5:
		sched_yield();
		pthread_testcancel();
		break;
	case 6:
		/* Between its end and the next time it is not to be cancelled at all. */
		CHECK_OK(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL));
		usleep(50);
		CHECK_OK(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL));
		pthread_testcancel();
		break;
	default:
		CHECK_OK(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL));
		for (volatile int i = 0;; i = i + 1)
			continue;
	}
}

static void *victim(void *arg)
{
	struct victim *v = arg;

	pthread_cleanup_push(clean, v);
	for (;;)
		wait_to_be_cancelled(v->kind);
	pthread_cleanup_pop(0);
	return NULL;
}

static void cancel_step(struct work *w)
{
	uint64_t r = random_next(&w->seed);
	/* Few compute: the others are to have their turn. */
	struct victim v = { .kind = r % 64 ? (unsigned)(r / 64 % 7) : 7 };
	pthread_t t = start_as(r / 512 % 16 == 0, victim, &v);

	switch (r / 8192 % 4) {
	case 0:
		break;
	case 1:
		usleep((useconds_t)(r >> 32) % 1000);
		break;
	default:
		sched_yield();
	}
	CHECK_OK(pthread_mutex_lock(&lock));
	if (r / 32768 % 4 == 0)
		CHECK_OK(pthread_cond_signal(&not_empty));
	CHECK_OK(pthread_mutex_unlock(&lock));
	CHECK_OK(pthread_cancel(t));
	CHECK(finish(t) == PTHREAD_CANCELED);
	CHECK_INT(v.cleaned, 1);
}

static void cancels(void)
{
	pthread_mutexattr_t attr;
	int v;

	CHECK_OK(pipe(silent));
	CHECK_OK(sem_init(&tokens, 0, TOKENS));
	CHECK_OK(pthread_mutexattr_init(&attr));
	CHECK_OK(pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK));
	CHECK_OK(pthread_mutex_init(&lock, &attr));
	CHECK_OK(pthread_mutexattr_destroy(&attr));
	run(cancel_step, NULL);
	/* Whoever was cancelled had no token, and nobody has the mutex. */
	CHECK_OK(sem_getvalue(&tokens, &v));
	CHECK_INT(v, TOKENS);
	CHECK_OK(pthread_mutex_trylock(&lock));
	CHECK_OK(pthread_mutex_unlock(&lock));
	CHECK_OK(pthread_mutex_destroy(&lock));
	CHECK_OK(sem_destroy(&tokens));
	CHECK_OK(close(silent[0]));
	CHECK_OK(close(silent[1]));
}

int main(int argc, char **argv)
{
	static const struct family families[] = { { "life", lifes }, { "cancel", cancels } };

	threads = PARENTS;
	return run_families(families, COUNT(families), argc, argv);
}
