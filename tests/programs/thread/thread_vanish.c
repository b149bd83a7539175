/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/thread/thread_vanish.c - threads that have used much of their stacks end by exit(2), which libc does not
 * see, while others compute; a joiner asks for them without a pause, and must not take the stack that one still ends on.
 */
#include "check.h"

#include <sys/syscall.h>

enum { ROUNDS = 100, VANISHING = 4, COMPUTING = 3 };

static int arrived;
static volatile sig_atomic_t over;
static pthread_t vanishing[VANISHING];

static void *compute(void *arg)
{
	while (!over)
		continue;
	return arg;
}

static void *vanish(void *arg)
{
	CHECK(dig(30000));
	__atomic_add_fetch(&arrived, 1, __ATOMIC_RELAXED);
	syscall(SYS_exit, 0);
	return arg;
}

static void *join_all(void *arg)
{
	int left = VANISHING, err;

	for (int i = 0; left; i = (i + 1) % VANISHING) {
		if (!vanishing[i])
			continue;
		err = pthread_tryjoin_np(vanishing[i], NULL);
		CHECK(!err || err == EBUSY);
		if (err)
			continue;
		vanishing[i] = 0;
		left--;
	}
	return arg;
}

int main(void)
{
	pthread_attr_t attr;
	pthread_t computing[COMPUTING], joiner;
	cpu_set_t cpus;

	/* The joiner stays a kernel thread. */
	CHECK_OK(pthread_attr_init(&attr));
	CHECK_OK(sched_getaffinity(0, sizeof(cpus), &cpus));
	CHECK_OK(pthread_attr_setaffinity_np(&attr, sizeof(cpus), &cpus));
	for (int i = 0; i < COMPUTING; i++)
		CHECK_OK(pthread_create(&computing[i], NULL, compute, NULL));
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < VANISHING; i++)
			CHECK_OK(pthread_create(&vanishing[i], NULL, vanish, NULL));
		CHECK_OK(pthread_create(&joiner, &attr, join_all, NULL));
		CHECK_OK(pthread_join(joiner, NULL));
	}
	over = 1;
	for (int i = 0; i < COMPUTING; i++)
		CHECK_OK(pthread_join(computing[i], NULL));
	CHECK_INT(arrived, ROUNDS * VANISHING);
	CHECK_OK(pthread_attr_destroy(&attr));
	return success();
}
