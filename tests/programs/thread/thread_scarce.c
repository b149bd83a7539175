/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/thread/thread_scarce.c - with memory for about forty threads only, forty new
 * threads can live when the first forty have ended, wherever these ended.
 */
#include "check.h"

#include <semaphore.h>
#include <sys/resource.h>

enum { STACK = 16 << 20, MEMORY = 800 << 20, ROUNDS = 5 };

static pthread_attr_t detached;
static sem_t go;
static int ended;

static void *waits(void *arg)
{
	while (sem_wait(&go))
		;
	__atomic_fetch_add(&ended, 1, __ATOMIC_SEQ_CST);
	return arg;
}

/* Until there is no memory, but enough, for which others may still be about to end. */
static int create_all(int enough)
{
	int made = 0, err;
	pthread_t t;

	do {
		err = pthread_create(&t, &detached, waits, NULL);
		made += err == 0;
		CHECK(err == 0 || err == EAGAIN);
	} while (err == 0 || made < enough);
	return made;
}

int main(void)
{
	struct rlimit limit = { MEMORY, MEMORY };
	int enough = 10;

	CHECK_OK(setrlimit(RLIMIT_AS, &limit));
	CHECK_OK(sem_init(&go, 0, 0));
	CHECK_OK(pthread_attr_init(&detached));
	CHECK_OK(pthread_attr_setstacksize(&detached, STACK));
	CHECK_OK(pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED));
	for (int i = 0; i < ROUNDS; i++) {
		int made = create_all(enough);

		ended = 0;
		for (int k = 0; k < made; k++)
			CHECK_OK(sem_post(&go));
		/* This thread goes on, so they end on other processors. */
		while (__atomic_load_n(&ended, __ATOMIC_SEQ_CST) < made)
			;
		enough = made / 2;
	}
	puts("all lived");
	return success();
}
