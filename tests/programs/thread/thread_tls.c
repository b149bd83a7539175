/* SPDX-License-Identifier: MIT */
/* tests/programs/thread/thread_tls.c - thread-local variables and pthread keys. */
#include "check.h"

#include <limits.h>

static __thread int number = 42;
static __thread char text[64] = "initial";
static __thread char zeros[3000];
static __thread struct { int a; char b; } aligned
	__attribute__((aligned(64))) = { 7, 'x' };

static void fresh(void)
{
	CHECK_INT(number, 42);
	CHECK_OK(strcmp(text, "initial"));
	for (size_t i = 0; i < sizeof(zeros); i++)
		CHECK_INT(zeros[i], 0);
	CHECK_INT(aligned.a, 7);
	CHECK_INT(aligned.b, 'x');
	CHECK_INT((uintptr_t)&aligned % 64, 0);
}

static void spoil(int with)
{
	number = with;
	snprintf(text, sizeof(text), "spoilt %d", with);
	memset(zeros, with | 1, sizeof(zeros));
	aligned.a = with;
	aligned.b = (char)with;
}

static void *variables(void *arg)
{
	int id = (int)(intptr_t)arg;
	int *address = &number;

	fresh();
	spoil(id);
	for (int i = 0; i < 5; i++) {
		if (i % 2)
			usleep(200);
		else
			sched_yield();
		CHECK_INT(number, id);
		CHECK(address == &number);
		CHECK_INT(aligned.a, id);
	}
	if (id % 3 == 0)
		pthread_exit(arg);
	return arg;
}

static pthread_key_t key, other, again;
static int destroyed, rounds, order;

static void destroy(void *value)
{
	CHECK(value != NULL);
	CHECK(pthread_getspecific(key) == NULL);
	__atomic_add_fetch(&destroyed, (int)(intptr_t)value, __ATOMIC_SEQ_CST);
}

/* Sets itself again for ever; libc gives up after four rounds. */
static void stubborn(void *value)
{
	rounds++;
	CHECK_OK(pthread_setspecific(again, value));
}

static void *with_keys(void *arg)
{
	CHECK(pthread_getspecific(key) == NULL);
	CHECK(pthread_getspecific(other) == NULL);
	CHECK_OK(pthread_setspecific(key, arg));
	CHECK_OK(pthread_setspecific(other, &order));
	sched_yield();
	CHECK(pthread_getspecific(key) == arg);
	CHECK(pthread_getspecific(other) == &order);
	if ((intptr_t)arg % 2)
		pthread_exit(NULL);
	return NULL;
}

static void *with_stubborn(void *arg)
{
	CHECK_OK(pthread_setspecific(again, arg));
	return NULL;
}

static void *with_null(void *arg)
{
	CHECK_OK(pthread_setspecific(key, (void *)1000));
	CHECK_OK(pthread_setspecific(key, NULL));
	return arg;
}

static pthread_key_t late_key;
static int late_runs;

static void late(void *value)
{
	late_runs += (int)(intptr_t)value;
}

/* A destructor that gives a value to a key that had none. */
static void sets_late(void *value)
{
	CHECK_OK(pthread_setspecific(late_key, value));
}

static pthread_key_t first_key;

static void *with_late(void *arg)
{
	CHECK_OK(pthread_setspecific(first_key, arg));
	return NULL;
}

static void keys(void)
{
	pthread_key_t all[PTHREAD_KEYS_MAX];
	pthread_t t[16];
	int n = 0, sum = 0, r;

	CHECK_OK(pthread_key_create(&key, destroy));
	CHECK_OK(pthread_key_create(&other, NULL));
	CHECK_OK(pthread_key_create(&again, stubborn));
	for (intptr_t i = 0; i < 16; i++) {
		t[i] = start(with_keys, (void *)(i + 1));
		sum += (int)i + 1;
	}
	for (int i = 0; i < 16; i++)
		finish(t[i]);
	CHECK_INT(destroyed, sum);
	finish(start(with_null, NULL));
	CHECK_INT(destroyed, sum);

	finish(start(with_stubborn, (void *)1));
	CHECK_INT(rounds, PTHREAD_DESTRUCTOR_ITERATIONS);
	finish(start(with_keys, (void *)2));
	CHECK_INT(rounds, PTHREAD_DESTRUCTOR_ITERATIONS);

	CHECK_OK(pthread_key_create(&first_key, sets_late));
	CHECK_OK(pthread_key_create(&late_key, late));
	finish(start(with_late, (void *)5));
	CHECK_INT(late_runs, 5);

	/* Deleting does not destroy; a deleted key is no key. */
	sum = destroyed;
	CHECK_OK(pthread_setspecific(key, (void *)9));
	CHECK_OK(pthread_key_delete(key));
	CHECK_INT(pthread_key_delete(key), EINVAL);
	CHECK_INT(pthread_setspecific(key, (void *)1), EINVAL);
	CHECK(pthread_getspecific(key) == NULL);
	CHECK_INT(destroyed, sum);
	/* The same slot again starts empty. */
	CHECK_OK(pthread_key_create(&key, NULL));
	CHECK(pthread_getspecific(key) == NULL);

	CHECK_INT(pthread_key_delete(PTHREAD_KEYS_MAX), EINVAL);
	CHECK_INT(pthread_setspecific(PTHREAD_KEYS_MAX + 5, &n), EINVAL);
	while (n < PTHREAD_KEYS_MAX &&
	       !(r = pthread_key_create(&all[n], NULL)))
		n++;
	CHECK(n < PTHREAD_KEYS_MAX);
	CHECK_INT(r, EAGAIN);
	CHECK(n > 900);
	while (n--)
		CHECK_OK(pthread_key_delete(all[n]));
	puts("keys");
}

int main(void)
{
	pthread_t t[32];

	spoil(-1);
	for (int i = 0; i < 300; i++)
		finish(start(variables, (void *)(intptr_t)i));
	for (int round = 0; round < 5; round++) {
		for (intptr_t i = 0; i < 32; i++)
			t[i] = start(variables, (void *)(i + 1000 * round));
		for (int i = 0; i < 32; i++)
			finish(t[i]);
	}
	CHECK_INT(number, -1);
	puts("variables");
	keys();
	return success();
}
