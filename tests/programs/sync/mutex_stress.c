/* SPDX-License-Identifier: MIT */
/* tests/programs/sync/mutex_stress.c - nothing that mutexes protect is ever lost. */
#include "check.h"

#define THREADS 16
#define LOOPS 4000

static struct {
	pthread_mutex_t lock;
	long count, copy;
} shared[8];

static pthread_spinlock_t spin;
static long spun;

static void *plain(void *arg)
{
	uint64_t seed = (uint64_t)(intptr_t)arg + 1;

	for (int i = 0; i < LOOPS; i++) {
		uint64_t r = random_next(&seed);
		size_t k = (r >> 8) % COUNT(shared);

		if (r % 4 == 0) {
			while (pthread_mutex_trylock(&shared[k].lock))
				sched_yield();
		} else if (r % 64 == 1) {
			struct timespec ts = in(CLOCK_REALTIME, 60000 * MS);

			CHECK_OK(pthread_mutex_timedlock(&shared[k].lock, &ts));
		} else {
			CHECK_OK(pthread_mutex_lock(&shared[k].lock));
		}
		shared[k].count++;
		/* Give others a chance to find it held. */
		if (r % 97 == 0)
			sched_yield();
		if (r % 1009 == 0)
			usleep(50);
		shared[k].copy++;
		CHECK_INT(shared[k].count, shared[k].copy);
		CHECK_OK(pthread_mutex_unlock(&shared[k].lock));
	}
	return NULL;
}

/* In order of address, several at once. */
static void *nested(void *arg)
{
	for (int i = 0; i < LOOPS / 8; i++) {
		for (size_t k = 0; k < COUNT(shared); k++)
			CHECK_OK(pthread_mutex_lock(&shared[k].lock));
		for (size_t k = COUNT(shared); k-- > 0; ) {
			shared[k].count++;
			shared[k].copy++;
			CHECK_OK(pthread_mutex_unlock(&shared[k].lock));
		}
	}
	return arg;
}

static void *spinning(void *arg)
{
	for (int i = 0; i < LOOPS; i++) {
		CHECK_OK(pthread_spin_lock(&spin));
		spun++;
		CHECK_OK(pthread_spin_unlock(&spin));
	}
	return arg;
}

int main(void)
{
	static const int type[] = { PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE,
				    PTHREAD_MUTEX_ERRORCHECK,
				    PTHREAD_MUTEX_ADAPTIVE_NP };
	pthread_t t[THREADS];
	long sum = 0;

	for (size_t k = 0; k < COUNT(shared); k++) {
		pthread_mutexattr_t attr;

		CHECK_OK(pthread_mutexattr_init(&attr));
		CHECK_OK(pthread_mutexattr_settype(&attr, type[k % 4]));
		CHECK_OK(pthread_mutex_init(&shared[k].lock, &attr));
	}
	CHECK_OK(pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE));
	for (intptr_t i = 0; i < THREADS; i++)
		t[i] = start(i % 4 == 3 ? nested : plain, (void *)i);
	for (int i = 0; i < THREADS; i++)
		finish(t[i]);
	for (size_t k = 0; k < COUNT(shared); k++)
		sum += shared[k].count;
	CHECK_INT(sum, THREADS * 3 / 4 * LOOPS +
		       THREADS / 4 * (LOOPS / 8) * (long)COUNT(shared));
	for (int i = 0; i < 4; i++)
		t[i] = start(spinning, NULL);
	for (int i = 0; i < 4; i++)
		finish(t[i]);
	CHECK_INT(spun, 4 * LOOPS);
	printf("%ld\n", sum);
	return success();
}
