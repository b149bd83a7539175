/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/thread/thread_wired_end.c - threads that the kernel must know end: one for each job, joined or
 * detached. Nothing of them is left in memory, what they had in the kernel is no later thread's, and who waits
 * for what they held gets it.
 */
#include "check.h"

#include <semaphore.h>
#include <sys/resource.h>

enum { WARM = 20, JOBS = 200, STACK_MB = 4, KINDS = 4 };

static sem_t arrived;
static pthread_key_t key;
static _Atomic int destroyed;
static __thread int mine = 5;
static cpu_set_t all, first;
static int base;

static void destroy(void *value)
{
	CHECK(value == &key);
	destroyed++;
}

/* A thread begins as each does. */
static void check_fresh(void)
{
	cpu_set_t cpus;

	CHECK_INT(mine, 5);
	CHECK(pthread_getspecific(key) == NULL);
	CHECK_INT(getpriority(PRIO_PROCESS, 0), base);
	CHECK_OK(sched_getaffinity(0, sizeof(cpus), &cpus));
	CHECK(CPU_EQUAL(&cpus, &all));
}

static void lock_new(pthread_mutex_t *m, int protocol)
{
	pthread_mutexattr_t attr;

	CHECK_OK(pthread_mutexattr_init(&attr));
	CHECK_OK(pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST));
	CHECK_OK(pthread_mutexattr_setprotocol(&attr, protocol));
	CHECK_OK(pthread_mutex_init(m, &attr));
	CHECK_OK(pthread_mutex_lock(m));
}

static void use_robust_mutex(void)
{
	pthread_mutex_t m;

	lock_new(&m, PTHREAD_PRIO_NONE);
	CHECK_OK(pthread_mutex_unlock(&m));
	CHECK_OK(pthread_mutex_destroy(&m));
}

static void *job(void *arg)
{
	check_fresh();
	mine = 6;
	CHECK_OK(pthread_setspecific(key, &key));
	switch ((intptr_t)arg % KINDS) {
	case 0:
		CHECK_INT(nice(1), nice_after(base, 1));
		break;
	case 1:
		CHECK_OK(sched_setaffinity(0, sizeof(first), &first));
		break;
	case 2:
		use_robust_mutex();
		break;
	default:
		use_inheriting_mutex();
	}
	CHECK_OK(sem_post(&arrived));
	return arg;
}

static void *plain(void *arg)
{
	check_fresh();
	return arg;
}

static void start_jobs(int count, int detached)
{
	pthread_attr_t attr;
	pthread_t t;

	CHECK_OK(pthread_attr_init(&attr));
	CHECK_OK(pthread_attr_setstacksize(&attr, (size_t)STACK_MB << 20));
	CHECK_OK(pthread_attr_setdetachstate(&attr, detached));
	for (intptr_t i = 0; i < count; i++) {
		CHECK_OK(pthread_create(&t, &attr, job, (void *)i));
		if (detached == PTHREAD_CREATE_JOINABLE)
			CHECK(finish(t) == (void *)i);
		CHECK_OK(sem_wait(&arrived));
		finish(start(plain, NULL));
	}
	CHECK_OK(pthread_attr_destroy(&attr));
}

/* Of address space. */
static long megabytes(void)
{
	char text[128];
	int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);

	CHECK(fd >= 0);
	text[read_all(fd, text, sizeof(text) - 1)] = '\0';
	CHECK_OK(close(fd));
	return strtol(text, NULL, 10) / (1 << 20) * sysconf(_SC_PAGESIZE) +
	       strtol(text, NULL, 10) % (1 << 20) * sysconf(_SC_PAGESIZE) / (1 << 20);
}

/* Less than a quarter of what the jobs had. */
static void none_is_left(int detached)
{
	long before;

	start_jobs(WARM, detached);
	before = megabytes();
	start_jobs(JOBS, detached);
	CHECK(megabytes() - before < JOBS * STACK_MB / 4);
}

/* ---- mutexes that they hold ---------------------------------------------- */

static pthread_mutex_t held[3];

static void *holds(void *arg)
{
	lock_new(&held[0], PTHREAD_PRIO_NONE);
	lock_new(&held[1], PTHREAD_PRIO_INHERIT);
	lock_new(&held[2], PTHREAD_PRIO_NONE);
	CHECK_OK(sem_post(&arrived));
	/* An heir waits for one of them. */
	if (arg)
		await_others();
	return arg;
}

static void inherit(pthread_mutex_t *m)
{
	CHECK_INT(pthread_mutex_lock(m), EOWNERDEAD);
	CHECK_OK(pthread_mutex_consistent(m));
	CHECK_OK(pthread_mutex_unlock(m));
	CHECK_OK(pthread_mutex_lock(m));
	CHECK_OK(pthread_mutex_unlock(m));
	CHECK_OK(pthread_mutex_destroy(m));
}

static void *heir(void *arg)
{
	inherit(arg);
	return arg;
}

static void are_inherited(void)
{
	for (size_t waited = 0; waited < COUNT(held); waited++) {
		pthread_t owner = start(holds, &held), t;

		CHECK_OK(sem_wait(&arrived));
		t = start(heir, &held[waited]);
		finish(owner);
		finish(t);
		for (size_t i = 0; i < COUNT(held); i++)
			if (i != waited)
				inherit(&held[i]);
	}
	CHECK(finish(start(holds, NULL)) == NULL);
	CHECK_OK(sem_wait(&arrived));
	for (size_t i = 0; i < COUNT(held); i++)
		inherit(&held[i]);
}

int main(void)
{
	CHECK_OK(sem_init(&arrived, 0, 0));
	CHECK_OK(pthread_key_create(&key, destroy));
	CHECK_OK(sched_getaffinity(0, sizeof(all), &all));
	first_cpu(&first);
	base = getpriority(PRIO_PROCESS, 0);
	are_inherited();
	puts("inherited");
	none_is_left(PTHREAD_CREATE_JOINABLE);
	puts("joined");
	none_is_left(PTHREAD_CREATE_DETACHED);
	while (destroyed < 2 * (WARM + JOBS))
		usleep(1000);
	puts("detached");
	return success();
}
