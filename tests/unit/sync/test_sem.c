/* SPDX-License-Identifier: MIT */
#include <asm/errno.h>
#include <criterion/criterion.h>
#include <semaphore.h>

#include "runtime/sync/sem.h"
#include "runtime_setup.h"

_Static_assert(sizeof(struct fz_sem) <= sizeof(sem_t), "fits");

static struct fz_sem sem;

static uint32_t waiters(struct fz_sem *s)
{
	return (uint32_t)(GET(s->both) >> 32);
}

Test(sem, words_are_those_of_libc)
{
	struct fz_sem *ours;
	int value;
	sem_t s;

	setup_layout();
	sem_init(&s, 0, 5);
	ours = (struct fz_sem *)&s;
	cr_assert_eq(ours->shared, 0);
	cr_assert_eq(fz_sem_wait(ours, FZ_FOREVER), 0);
	sem_getvalue(&s, &value);
	cr_assert_eq(value, 4);
	cr_assert_eq(fz_sem_post(ours), 0);
	sem_getvalue(&s, &value);
	cr_assert_eq(value, 5);
	cr_assert_eq(sem_trywait(&s), 0);
	cr_assert_eq(GET(ours->value), 4);
	sem_init(&s, 1, 0);
	cr_assert_neq(ours->shared, 0);
}

Test(sem, limits)
{
	setup_layout();
	cr_assert_eq(fz_sem_trywait(&sem), -EAGAIN);
	SET(sem.value, 0x7ffffffeu);
	cr_assert_eq(fz_sem_post(&sem), 0);
	cr_assert_eq(fz_sem_post(&sem), -EOVERFLOW);
	cr_assert_eq(GET(sem.value), 0x7fffffffu);
	cr_assert_eq(waiters(&sem), 0);
}

Test(sem, deadline)
{
	fz_nsec start;

	setup_layout();
	start = now_ns();
	cr_assert_eq(fz_sem_wait(&sem, start + 3 * FZ_MSEC), -ETIMEDOUT);
	cr_assert_geq(now_ns() - start, 3 * FZ_MSEC);
	cr_assert_eq(fz_sem_wait(&sem, 1), -ETIMEDOUT);
	cr_assert_eq(GET(sem.both), 0);
	fz_sem_post(&sem);
	cr_assert_eq(fz_sem_wait(&sem, 1), 0, "there is one: the deadline does not matter");
}

/* Posts and successful waits balance, whatever the timeouts do. */
enum { ROUNDS = 30000, THREADS = 6 };
static _Atomic unsigned posted, got, missed;

static void *wait_often(void *arg)
{
	uint64_t seed = (uintptr_t)arg + 1;

	for (unsigned i = 0; i < ROUNDS; i++) {
		fz_nsec deadline = FZ_FOREVER;

		if (random_next(&seed) % 3 == 0)
			deadline = now_ns() + random_next(&seed) % (30 * FZ_USEC);
		if (fz_sem_wait(&sem, deadline) == 0)
			COUNT(got);
		else
			COUNT(missed);
	}
	return NULL;
}

static void *post_often(void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < ROUNDS; i++) {
		fz_sem_post(&sem);
		COUNT(posted);
	}
	return NULL;
}

static void balance(unsigned processors, unsigned natives)
{
	struct fz_fiber *f[THREADS];
	pthread_t threads[THREADS];

	if (processors)
		setup_start(processors);
	else
		setup_layout();
	for (uintptr_t i = 0; i < THREADS; i++) {
		void *(*fn)(void *) = i % 2 ? wait_often : post_often;

		if (i < natives)
			threads[i] = native(fn, (void *)i);
		else
			f[i] = spawn(fn, (void *)i);
	}
	for (unsigned i = 0; i < THREADS; i++)
		if (i < natives)
			pthread_join(threads[i], NULL);
		else
			join(f[i]);
	cr_assert_eq(GET(posted), THREADS / 2 * ROUNDS);
	cr_assert_eq(GET(got) + GET(missed), THREADS / 2 * ROUNDS);
	cr_assert_eq(GET(sem.value), GET(posted) - GET(got));
	cr_assert_eq(waiters(&sem), 0);
}

Test(sem, posts_and_waits_balance_natives)
{
	balance(0, THREADS);
}

Test(sem, posts_and_waits_balance_one_processor)
{
	balance(1, 0);
}

Test(sem, posts_and_waits_balance_fibers)
{
	balance(2, 0);
}

Test(sem, posts_and_waits_balance_mixed)
{
	balance(2, THREADS / 2);
}

static struct fz_sem ping, pong;

static void *echo(void *arg)
{
	for (uintptr_t i = 0; i < (uintptr_t)arg; i++) {
		fz_sem_wait(&ping, FZ_FOREVER);
		fz_sem_post(&pong);
	}
	return NULL;
}

static void play(unsigned rounds)
{
	for (unsigned i = 0; i < rounds; i++) {
		cr_assert_eq(fz_sem_post(&ping), 0);
		cr_assert_eq(fz_sem_wait(&pong, FZ_FOREVER), 0);
	}
}

Test(sem, ping_pong_between_fibers)
{
	struct fz_fiber *f;

	setup_start(2);
	f = spawn(echo, (void *)50000);
	play(50000);
	join(f);
}

Test(sem, ping_pong_with_a_native)
{
	pthread_t t;

	setup_start(2);
	t = native(echo, (void *)5000);
	play(5000);
	pthread_join(t, NULL);
}
