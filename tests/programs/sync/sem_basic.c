/* SPDX-License-Identifier: MIT */
/* tests/programs/sync/sem_basic.c - semaphores: values, deadlines, signals, names. */
#include "check.h"

#include <limits.h>
#include <semaphore.h>

static struct event ready = EVENT_INIT;
static sem_t sem;
static volatile sig_atomic_t handled;
static int stop;

static int value(sem_t *s)
{
	int v;

	CHECK_OK(sem_getvalue(s, &v));
	return v;
}

static void arguments(void)
{
	struct timespec ts;
	long long t0;

	CHECK_ERR(sem_init(&sem, 0, (unsigned)SEM_VALUE_MAX + 1), EINVAL);
	CHECK_KEEPS(sem_init(&sem, 0, SEM_VALUE_MAX), 0);
	CHECK_INT(value(&sem), SEM_VALUE_MAX);
	CHECK_ERR(sem_post(&sem), EOVERFLOW);
	CHECK_INT(value(&sem), SEM_VALUE_MAX);
	CHECK_OK(sem_destroy(&sem));

	CHECK_OK(sem_init(&sem, 0, 2));
	CHECK_KEEPS(sem_wait(&sem), 0);
	CHECK_KEEPS(sem_trywait(&sem), 0);
	CHECK_ERR(sem_trywait(&sem), EAGAIN);
	CHECK_INT(value(&sem), 0);
	CHECK_KEEPS(sem_post(&sem), 0);
	CHECK_INT(value(&sem), 1);
	ts = to_timespec(0);
	CHECK_KEEPS(sem_timedwait(&sem, &ts), 0);
	CHECK_ERR(sem_timedwait(&sem, &ts), ETIMEDOUT);
	ts.tv_nsec = 1000000000;
	CHECK_ERR(sem_timedwait(&sem, &ts), EINVAL);
	ts.tv_nsec = -1;
	CHECK_ERR(sem_clockwait(&sem, CLOCK_MONOTONIC, &ts), EINVAL);
	ts.tv_nsec = 0;
	CHECK_ERR(sem_clockwait(&sem, CLOCK_PROCESS_CPUTIME_ID, &ts), EINVAL);
	t0 = now(CLOCK_REALTIME);
	ts = to_timespec(t0 + 10 * MS);
	CHECK_ERR(sem_timedwait(&sem, &ts), ETIMEDOUT);
	CHECK(now(CLOCK_REALTIME) >= t0 + 10 * MS);
	t0 = now(CLOCK_MONOTONIC);
	ts = to_timespec(t0 + 10 * MS);
	CHECK_ERR(sem_clockwait(&sem, CLOCK_MONOTONIC, &ts), ETIMEDOUT);
	CHECK(now(CLOCK_MONOTONIC) >= t0 + 10 * MS);
	CHECK_OK(sem_post(&sem));
	CHECK_OK(sem_clockwait(&sem, CLOCK_REALTIME, &ts));
	puts("arguments");
}

static void *waiter(void *arg)
{
	struct timespec ts = in(CLOCK_REALTIME, 30000 * MS);

	event_post(&ready);
	if (arg)
		CHECK_OK(sem_timedwait(&sem, &ts));
	else
		CHECK_OK(sem_wait(&sem));
	return NULL;
}

static void waiters(void)
{
	pthread_t t[10];

	for (intptr_t i = 0; i < 10; i++)
		t[i] = start(waiter, (void *)(i % 2));
	event_wait(&ready, 10);
	settle();
	for (int i = 0; i < 10; i++)
		CHECK_OK(sem_post(&sem));
	for (int i = 0; i < 10; i++)
		finish(t[i]);
	CHECK_INT(value(&sem), 0);
	puts("waiters");
}

static void on_signal(int sig)
{
	int err = errno;

	handled++;
	if (sig == SIGUSR2)
		sem_post(&sem);
	errno = err;
}

static void *pester(void *arg)
{
	pthread_t *target = arg;

	while (!__atomic_load_n(&stop, __ATOMIC_SEQ_CST)) {
		CHECK_OK(pthread_kill(*target, SIGUSR1));
		usleep(1000);
	}
	return NULL;
}

static void *send_usr2(void *arg)
{
	settle();
	CHECK_OK(kill(getpid(), SIGUSR2));
	return arg;
}

static void signals(void)
{
	struct sigaction action = { .sa_handler = on_signal };
	struct timespec ts = in(CLOCK_REALTIME, 30000 * MS);
	pthread_t self = pthread_self(), t;
	sigset_t set, old;

	CHECK_OK(sigaction(SIGUSR1, &action, NULL));
	CHECK_OK(sigaction(SIGUSR2, &action, NULL));
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);

	/* Threads made here leave the signals to this one. */
	CHECK_OK(pthread_sigmask(SIG_BLOCK, &set, &old));
	t = start(pester, &self);
	CHECK_OK(pthread_sigmask(SIG_SETMASK, &old, NULL));
	CHECK_ERR(sem_wait(&sem), EINTR);
	CHECK(handled > 0);
	CHECK_ERR(sem_timedwait(&sem, &ts), EINTR);
	__atomic_store_n(&stop, 1, __ATOMIC_SEQ_CST);
	finish(t);

	/* Posted by a handler on the thread that waits. */
	CHECK_OK(pthread_sigmask(SIG_BLOCK, &set, &old));
	t = start(send_usr2, NULL);
	CHECK_OK(pthread_sigmask(SIG_SETMASK, &old, NULL));
	while (sem_wait(&sem))
		CHECK_INT(errno, EINTR);
	finish(t);
	CHECK_INT(value(&sem), 0);
	puts("signals");
}

static void names(void)
{
	char name[64];
	sem_t *a, *b;

	snprintf(name, sizeof(name), "/check-sem-%ld", (long)getpid());
	errno = 0;
	CHECK(sem_open(name, 0) == SEM_FAILED);
	CHECK_INT(errno, ENOENT);
	a = sem_open(name, O_CREAT | O_EXCL, 0600, 3);
	CHECK(a != SEM_FAILED);
	errno = 0;
	CHECK(sem_open(name, O_CREAT | O_EXCL, 0600, 3) == SEM_FAILED);
	CHECK_INT(errno, EEXIST);
	b = sem_open(name, O_CREAT, 0600, 9);
	CHECK(b == a);
	CHECK_INT(value(b), 3);
	CHECK_OK(sem_wait(a));
	CHECK_INT(value(b), 2);
	CHECK_OK(sem_close(b));
	CHECK_OK(sem_post(a));
	CHECK_OK(sem_unlink(name));
	CHECK_ERR(sem_unlink(name), ENOENT);
	CHECK_INT(value(a), 3);
	CHECK_OK(sem_close(a));
	errno = 0;
	CHECK(sem_open("/a/b", O_CREAT, 0600, 0) == SEM_FAILED);
	CHECK_INT(errno, EINVAL);
	puts("names");
}

int main(void)
{
	arguments();
	waiters();
	signals();
	names();
	CHECK_OK(sem_destroy(&sem));
	return success();
}
