/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/sync/sync_edges.c - mutexes, condition variables and semaphores: what
 * their manuals say and few programs ask for.
 */
#include "check.h"

#include <limits.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <sys/wait.h>

static struct event ready = EVENT_INIT;

/* ---- mutexes ------------------------------------------------------------- */

static void recursion(void)
{
	pthread_mutex_t m = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
	struct timespec ts = { 0, -1 };

	CHECK_OK(pthread_mutex_lock(&m));
	/* Four billion steps are for another day: the count is where glibc has it. */
	m.__data.__count = UINT_MAX;
	CHECK_INT(pthread_mutex_lock(&m), EAGAIN);
	CHECK_INT(pthread_mutex_trylock(&m), EAGAIN);
	CHECK_INT(pthread_mutex_timedlock(&m, &ts), EAGAIN);
	CHECK_INT(pthread_mutex_clocklock(&m, CLOCK_MONOTONIC, &ts), EAGAIN);
	m.__data.__count = 1;
	CHECK_INT(pthread_mutex_destroy(&m), EBUSY);
	CHECK_OK(pthread_mutex_unlock(&m));
	CHECK_INT(pthread_mutex_unlock(&m), EPERM);
	CHECK_OK(pthread_mutex_destroy(&m));
	/* glibc marks it. */
	CHECK_INT(pthread_mutex_lock(&m), EINVAL);
	CHECK_INT(pthread_mutex_trylock(&m), EINVAL);
	CHECK_INT(pthread_mutex_unlock(&m), EINVAL);
	puts("recursion");
}

static void mutex_attributes(void)
{
	static const struct {
		int value, err;
	} types[] = { { -1, EINVAL }, { 0, 0 }, { 1, 0 }, { 2, 0 }, { 3, 0 }, { 4, EINVAL } };
	pthread_mutexattr_t attr;
	pthread_mutex_t m;
	int v;

	CHECK_OK(pthread_mutexattr_init(&attr));
	for (size_t i = 0; i < COUNT(types); i++) {
		CHECK_INT(pthread_mutexattr_settype(&attr, types[i].value), types[i].err);
		if (types[i].err)
			continue;
		CHECK_OK(pthread_mutexattr_gettype(&attr, &v));
		CHECK_INT(v, types[i].value);
	}
	CHECK_OK(pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_NORMAL));
	CHECK_OK(pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED));
	CHECK_OK(pthread_mutexattr_getpshared(&attr, &v));
	CHECK_INT(v, PTHREAD_PROCESS_SHARED);
	CHECK_OK(pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_PRIVATE));
	CHECK_OK(pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST));
	CHECK_OK(pthread_mutexattr_getrobust(&attr, &v));
	CHECK_INT(v, PTHREAD_MUTEX_ROBUST);
	CHECK_OK(pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_STALLED));
	CHECK_OK(pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT));
	CHECK_OK(pthread_mutexattr_getprotocol(&attr, &v));
	CHECK_INT(v, PTHREAD_PRIO_INHERIT);
	CHECK_INT(pthread_mutexattr_setprioceiling(&attr, 0), EINVAL);
	CHECK_INT(pthread_mutexattr_setprioceiling(&attr, 1000), EINVAL);
	CHECK_OK(pthread_mutexattr_setprioceiling(&attr, 3));
	CHECK_OK(pthread_mutexattr_getprioceiling(&attr, &v));
	CHECK_INT(v, 3);

	/* Neither has a ceiling. */
	CHECK_OK(pthread_mutex_init(&m, &attr));
	CHECK_INT(pthread_mutex_getprioceiling(&m, &v), EINVAL);
	CHECK_INT(pthread_mutex_setprioceiling(&m, 4, &v), EINVAL);
	CHECK_INT(pthread_mutex_consistent(&m), EINVAL);
	CHECK_OK(pthread_mutex_destroy(&m));
	CHECK_OK(pthread_mutex_init(&m, NULL));
	CHECK_INT(pthread_mutex_getprioceiling(&m, &v), EINVAL);
	CHECK_INT(pthread_mutex_setprioceiling(&m, 4, &v), EINVAL);
	CHECK_INT(pthread_mutex_consistent(&m), EINVAL);
	CHECK_OK(pthread_mutex_destroy(&m));
	CHECK_OK(pthread_mutexattr_destroy(&attr));
	puts("mutex attributes");
}

/* Whether it may be locked depends on the machine; that it is as natively does not. */
static void *ceiling(void *arg)
{
	pthread_mutexattr_t attr;
	pthread_mutex_t m;
	int v, r;

	CHECK_OK(pthread_mutexattr_init(&attr));
	CHECK_OK(pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_PROTECT));
	CHECK_OK(pthread_mutexattr_setprioceiling(&attr, 5));
	CHECK_OK(pthread_mutex_init(&m, &attr));
	CHECK_OK(pthread_mutexattr_destroy(&attr));
	CHECK_OK(pthread_mutex_getprioceiling(&m, &v));
	CHECK_INT(v, 5);
	CHECK_OK(pthread_mutex_setprioceiling(&m, 7, &v));
	CHECK_INT(v, 5);
	CHECK_INT(pthread_mutex_setprioceiling(&m, 0, &v), EINVAL);
	CHECK_OK(pthread_mutex_getprioceiling(&m, &v));
	CHECK_INT(v, 7);
	r = pthread_mutex_lock(&m);
	printf("locked with a ceiling: %d\n", r);
	if (!r)
		CHECK_OK(pthread_mutex_unlock(&m));
	r = pthread_mutex_trylock(&m);
	printf("tried: %d\n", r);
	if (!r)
		CHECK_OK(pthread_mutex_unlock(&m));
	CHECK_OK(pthread_mutex_destroy(&m));
	return arg;
}

/* ---- condition variables with every kind of mutex ------------------------ */

static pthread_mutex_t lock;
static pthread_cond_t cond;
static int turn, taken;

static void *takes_turns(void *arg)
{
	for (int i = 0; i < 20; i++) {
		struct timespec ts = in(CLOCK_REALTIME, 60000 * MS);

		CHECK_OK(pthread_mutex_lock(&lock));
		while (turn % 4 != (int)(intptr_t)arg)
			CHECK_OK(i % 2 ? pthread_cond_wait(&cond, &lock) :
					 pthread_cond_timedwait(&cond, &lock, &ts));
		turn++;
		CHECK_OK(pthread_cond_broadcast(&cond));
		CHECK_OK(pthread_mutex_unlock(&lock));
	}
	return NULL;
}

static void *waits_in_vain(void *arg)
{
	struct timespec ts = in(CLOCK_REALTIME, 5 * MS);
	int r;

	CHECK_OK(pthread_mutex_lock(&lock));
	do
		r = pthread_cond_timedwait(&cond, &lock, &ts);
	while (!r);
	CHECK_INT(r, ETIMEDOUT);
	CHECK_OK(pthread_mutex_unlock(&lock));
	/* Not held: for those that know, it is an error. */
	if (arg)
		CHECK_INT(pthread_cond_wait(&cond, &lock), EPERM);
	return NULL;
}

static void *dies(void *arg)
{
	CHECK_OK(pthread_mutex_lock(&lock));
	taken = 1;
	CHECK_OK(pthread_cond_broadcast(&cond));
	return arg;
}

static void *inherits(void *arg)
{
	int r;

	CHECK_OK(pthread_mutex_lock(&lock));
	event_post(&ready);
	do
		r = pthread_cond_wait(&cond, &lock);
	while (!r && !taken);
	CHECK_INT(r, EOWNERDEAD);
	CHECK_OK(pthread_mutex_consistent(&lock));
	CHECK_OK(pthread_mutex_unlock(&lock));
	return arg;
}

static void cond_with(int type, int robust, int protocol, int shared)
{
	int knows = type == PTHREAD_MUTEX_ERRORCHECK || type == PTHREAD_MUTEX_RECURSIVE ||
		    robust || protocol;
	pthread_mutexattr_t attr;
	pthread_t t[4];

	CHECK_OK(pthread_mutexattr_init(&attr));
	CHECK_OK(pthread_mutexattr_settype(&attr, type));
	CHECK_OK(pthread_mutexattr_setrobust(&attr, robust));
	CHECK_OK(pthread_mutexattr_setprotocol(&attr, protocol));
	CHECK_OK(pthread_mutexattr_setpshared(&attr, shared));
	CHECK_OK(pthread_mutex_init(&lock, &attr));
	CHECK_OK(pthread_cond_init(&cond, NULL));
	CHECK_OK(pthread_mutexattr_destroy(&attr));
	turn = taken = ready.count = 0;
	for (intptr_t i = 0; i < 4; i++)
		t[i] = start_as(i == 3, takes_turns, (void *)i);
	for (int i = 0; i < 4; i++)
		finish(t[i]);
	CHECK_INT(turn, 80);
	finish(start(waits_in_vain, knows && !protocol ? &lock : NULL));
	if (robust) {
		t[0] = start(inherits, NULL);
		event_wait(&ready, 1);
		finish(start(dies, NULL));
		finish(t[0]);
	}
	CHECK_OK(pthread_cond_destroy(&cond));
	CHECK_OK(pthread_mutex_lock(&lock));
	CHECK_OK(pthread_mutex_unlock(&lock));
	CHECK_OK(pthread_mutex_destroy(&lock));
}

static void conditions(void)
{
	for (int type = PTHREAD_MUTEX_NORMAL; type <= PTHREAD_MUTEX_ADAPTIVE_NP; type++)
		for (int robust = 0; robust < 2; robust++)
			for (int inherit = 0; inherit < 2; inherit++)
				for (int shared = 0; shared < 2; shared++)
					cond_with(type, robust, inherit, shared);
	puts("conditions");
}

static void cond_attributes(void)
{
	pthread_condattr_t attr;
	int v;

	CHECK_OK(pthread_condattr_init(&attr));
	CHECK_OK(pthread_condattr_getpshared(&attr, &v));
	CHECK_INT(v, PTHREAD_PROCESS_PRIVATE);
	CHECK_INT(pthread_condattr_setpshared(&attr, 5), EINVAL);
	CHECK_INT(pthread_condattr_setclock(&attr, CLOCK_THREAD_CPUTIME_ID), EINVAL);
	CHECK_INT(pthread_condattr_setclock(&attr, CLOCK_BOOTTIME), EINVAL);
	CHECK_OK(pthread_condattr_destroy(&attr));
	puts("condition attributes");
}

/* ---- semaphores ---------------------------------------------------------- */

static sem_t *sem, *back;

static int value(sem_t *s)
{
	int v;

	CHECK_OK(sem_getvalue(s, &v));
	return v;
}

static void sem_errors(void)
{
	struct timespec ts = { 0, 1000000000 };
	sem_t s;

	CHECK_OK(sem_init(&s, 0, 3));
	/* Looked at even if nothing has to be waited for. */
	CHECK_ERR(sem_timedwait(&s, &ts), EINVAL);
	CHECK_ERR(sem_clockwait(&s, CLOCK_MONOTONIC, &ts), EINVAL);
	ts.tv_nsec = 0;
	CHECK_ERR(sem_clockwait(&s, CLOCK_BOOTTIME, &ts), EINVAL);
	CHECK_INT(value(&s), 3);
	CHECK_OK(sem_clockwait(&s, CLOCK_MONOTONIC, &ts));
	ts.tv_sec = -1;
	CHECK_OK(sem_timedwait(&s, &ts));
	CHECK_OK(sem_wait(&s));
	CHECK_ERR(sem_timedwait(&s, &ts), ETIMEDOUT);
	CHECK_ERR(sem_clockwait(&s, CLOCK_MONOTONIC, &ts), ETIMEDOUT);
	CHECK_INT(value(&s), 0);
	CHECK_OK(sem_destroy(&s));
	puts("semaphore errors");
}

static void *ping(void *arg)
{
	for (int i = 0; i < 100; i++) {
		struct timespec ts = in(CLOCK_MONOTONIC, 60000 * MS);

		CHECK_OK(i % 2 ? sem_wait(sem) : sem_clockwait(sem, CLOCK_MONOTONIC, &ts));
		CHECK_OK(sem_post(back));
	}
	return arg;
}

static void *pong(void *arg)
{
	for (int i = 0; i < 100; i++) {
		struct timespec ts = in(CLOCK_REALTIME, 60000 * MS);

		CHECK_OK(sem_post(sem));
		CHECK_OK(i % 2 ? sem_wait(back) : sem_timedwait(back, &ts));
	}
	return arg;
}

static void *in_vain(void *arg)
{
	long long t0 = now(CLOCK_REALTIME);
	struct timespec ts = to_timespec(t0 + 5 * MS);

	CHECK_ERR(sem_timedwait(sem, &ts), ETIMEDOUT);
	CHECK(now(CLOCK_REALTIME) >= t0 + 5 * MS);
	CHECK_ERR(sem_trywait(sem), EAGAIN);
	return arg;
}

/* Between threads, and between processes whose threads wait. */
static void exchange(void)
{
	pthread_t t[4];
	int status;
	pid_t pid;

	for (int i = 0; i < 4; i++)
		t[i] = start_as(i == 3, i % 2 ? ping : pong, NULL);
	for (int i = 0; i < 4; i++)
		finish(t[i]);
	finish(start(in_vain, NULL));
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		finish(start(ping, NULL));
		_exit(0);
	}
	finish(start(pong, NULL));
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK_INT(status, 0);
	CHECK_INT(value(sem), 0);
	CHECK_INT(value(back), 0);
}

static void named(void)
{
	char names[2][64];

	for (int i = 0; i < 2; i++)
		snprintf(names[i], sizeof(names[i]), "/sync-edges-%ld-%d", (long)getpid(), i);
	sem = sem_open(names[0], O_CREAT | O_EXCL, 0600, 0);
	back = sem_open(names[1], O_CREAT | O_EXCL, 0600, 0);
	CHECK(sem != SEM_FAILED && back != SEM_FAILED);
	exchange();
	for (int i = 0; i < 2; i++)
		CHECK_OK(sem_unlink(names[i]));
	CHECK_OK(sem_close(sem));
	CHECK_OK(sem_close(back));
	puts("named semaphores");
}

static void shared(void)
{
	sem = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(sem != MAP_FAILED);
	back = sem + 1;
	CHECK_OK(sem_init(sem, 1, 0));
	CHECK_OK(sem_init(back, 1, 0));
	exchange();
	puts("shared semaphores");
}

/* A handler posts: that is what semaphores are for. */
static sem_t posted;
static volatile sig_atomic_t handled;

static void post(int sig)
{
	int err = errno;

	(void)sig;
	handled++;
	CHECK_OK(sem_post(&posted));
	errno = err;
}

static void *waits_for_posts(void *arg)
{
	for (int i = 0; i < 50; i++)
		while (sem_wait(&posted))
			CHECK_INT(errno, EINTR);
	return arg;
}

static void handlers(int flags)
{
	struct sigaction action = { .sa_handler = post, .sa_flags = flags };
	pthread_t t;

	handled = 0;
	CHECK_OK(sem_init(&posted, 0, 0));
	CHECK_OK(sigaction(SIGUSR1, &action, NULL));
	t = start(waits_for_posts, NULL);
	for (int i = 0; i < 50; i++) {
		CHECK_OK(pthread_kill(i % 2 ? t : pthread_self(), SIGUSR1));
		while (handled <= i)
			usleep(100);
	}
	finish(t);
	CHECK_INT(value(&posted), 0);
	CHECK_OK(sem_destroy(&posted));
	puts("handlers");
}

int main(void)
{
	recursion();
	mutex_attributes();
	finish(start(ceiling, NULL));
	cond_attributes();
	conditions();
	sem_errors();
	fflush(stdout);
	named();
	fflush(stdout);
	shared();
	handlers(0);
	handlers(SA_RESTART);
	return success();
}
