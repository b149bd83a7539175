/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/thread/thread_realtime.c - real-time threads are woken by their priorities; a
 * thread sets the policy and the priority of another. All on one CPU, so that a thread with a
 * higher priority has run until it waits when pthread_create returns. Where the user may not have
 * real-time threads, only what is refused is looked at.
 */
#include "check.h"

#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <semaphore.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { THREADS = 5, LOWEST = 1 };

static const int priorities[THREADS] = { 5, 20, 10, 20, 15 };
static const int order[THREADS] = { 1, 3, 4, 2, 0 };

static int woken[THREADS], count;

static void note(int me)
{
	woken[count++] = me;
}

/* ---- woken in the order of priorities ----------------------------------- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t cond_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static sem_t sem;
static uint32_t word;

static void *by_mutex(void *arg)
{
	CHECK_OK(pthread_mutex_lock(&mutex));
	note((int)(intptr_t)arg);
	CHECK_OK(pthread_mutex_unlock(&mutex));
	return NULL;
}

static void *by_cond(void *arg)
{
	CHECK_OK(pthread_mutex_lock(&cond_mutex));
	CHECK_OK(pthread_cond_wait(&cond, &cond_mutex));
	note((int)(intptr_t)arg);
	CHECK_OK(pthread_mutex_unlock(&cond_mutex));
	return NULL;
}

static void *by_sem(void *arg)
{
	CHECK_OK(sem_wait(&sem));
	note((int)(intptr_t)arg);
	return NULL;
}

static void *by_rwlock(void *arg)
{
	CHECK_OK(pthread_rwlock_wrlock(&rwlock));
	note((int)(intptr_t)arg);
	CHECK_OK(pthread_rwlock_unlock(&rwlock));
	return NULL;
}

static void *by_futex(void *arg)
{
	CHECK_OK(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0));
	note((int)(intptr_t)arg);
	return NULL;
}

static void wake_mutex(void)
{
	CHECK_OK(pthread_mutex_unlock(&mutex));
}

static void wake_cond(void)
{
	for (int i = 0; i < THREADS; i++)
		CHECK_OK(pthread_cond_signal(&cond));
}

static void wake_sem(void)
{
	for (int i = 0; i < THREADS; i++)
		CHECK_OK(sem_post(&sem));
}

static void wake_rwlock(void)
{
	CHECK_OK(pthread_rwlock_unlock(&rwlock));
}

static void wake_futex(void)
{
	for (int i = 0; i < THREADS; i++)
		CHECK_INT(syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0), 1);
}

static pthread_t start_with(int priority, void *(*fn)(void *), void *arg)
{
	struct sched_param param = { .sched_priority = priority };
	pthread_attr_t attr;
	pthread_t t;

	CHECK_OK(pthread_attr_init(&attr));
	CHECK_OK(pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED));
	CHECK_OK(pthread_attr_setschedpolicy(&attr, SCHED_FIFO));
	CHECK_OK(pthread_attr_setschedparam(&attr, &param));
	CHECK_OK(pthread_create(&t, &attr, fn, arg));
	CHECK_OK(pthread_attr_destroy(&attr));
	return t;
}

static void in_order(void *(*fn)(void *), void (*wake)(void))
{
	pthread_t t[THREADS];

	count = 0;
	for (int i = 0; i < THREADS; i++)
		t[i] = start_with(priorities[i], fn, (void *)(intptr_t)i);
	wake();
	for (int i = 0; i < THREADS; i++)
		finish(t[i]);
	for (int i = 0; i < THREADS; i++)
		CHECK_INT(woken[i], order[i]);
}

/* ---- a thread sets another's -------------------------------------------- */

static struct {
	pthread_t thread;
	pid_t tid;
	sem_t ready, go;
} other;

/* What the kernel says of the thread that asks. */
static void check_own(int policy, int priority)
{
	char text[1024], *at;
	int fd = open("/proc/thread-self/stat", O_RDONLY | O_CLOEXEC);
	long field[42];

	CHECK(fd >= 0);
	text[read_all(fd, text, sizeof(text) - 1)] = '\0';
	CHECK_OK(close(fd));
	at = strrchr(text, ')') + 4;
	for (int i = 4; i <= 41; i++)
		field[i] = strtol(at, &at, 10);
	CHECK_INT(field[40], priority);
	CHECK_INT(field[41], policy);
	CHECK_INT(sched_getscheduler(0), policy);
}

static struct sched_param *read_only;

static void check_other(int policy, int priority)
{
	struct sched_param param;
	int told;

	CHECK_OK(pthread_getschedparam(other.thread, &told, &param));
	CHECK_INT(told, policy);
	CHECK_INT(param.sched_priority, priority);
	CHECK_INT(sched_getscheduler(other.tid), policy);
	CHECK_INT(syscall(SYS_sched_getscheduler, other.tid), policy);
	CHECK_OK(sched_getparam(other.tid, &param));
	CHECK_INT(param.sched_priority, priority);
	CHECK_ERR(sched_getparam(other.tid, read_only), EFAULT);
}

static void begin(void)
{
	other.tid = gettid();
	CHECK_OK(sem_post(&other.ready));
}

static void *waits(void *arg)
{
	begin();
	CHECK_OK(sem_wait(&other.go));
	check_own(SCHED_RR, 3);
	return arg;
}

/* The change ends no wait. */
static void *polls(void *arg)
{
	long long from = now(CLOCK_MONOTONIC);

	begin();
	CHECK_OK(poll(NULL, 0, 40));
	CHECK(now(CLOCK_MONOTONIC) - from >= 40 * MS);
	CHECK_OK(sem_wait(&other.go));
	check_own(SCHED_RR, 3);
	return arg;
}

static volatile bool stop;

static void *computes(void *arg)
{
	begin();
	while (!stop)
		continue;
	check_own(SCHED_RR, 3);
	CHECK_OK(sem_wait(&other.go));
	return arg;
}

static void *(*const bodies[])(void *) = { waits, polls, computes };

static void by_handle(void)
{
	CHECK_OK(pthread_setschedparam(other.thread, SCHED_RR,
				       &(struct sched_param){ .sched_priority = 3 }));
}

static void by_priority(void)
{
	CHECK_OK(sched_setscheduler(other.tid, SCHED_RR,
				    &(struct sched_param){ .sched_priority = 2 }));
	CHECK_OK(pthread_setschedprio(other.thread, 3));
}

static void by_param(void)
{
	CHECK_OK(syscall(SYS_sched_setscheduler, other.tid, SCHED_RR,
			 &(struct sched_param){ .sched_priority = 2 }));
	CHECK_OK(sched_setparam(other.tid, &(struct sched_param){ .sched_priority = 3 }));
}

static void by_attributes(void)
{
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} attr = { .size = sizeof(attr), .policy = SCHED_RR, .priority = 3 }, told;

	CHECK_OK(syscall(SYS_sched_setattr, other.tid, &attr, 0));
	CHECK_OK(syscall(SYS_sched_getattr, other.tid, &told, sizeof(told), 0));
	CHECK_INT(told.policy, SCHED_RR);
	CHECK_INT(told.priority, 3);
}

static void set_other(void (*set)(void), void *(*body)(void *))
{
	stop = false;
	CHECK_OK(sem_init(&other.ready, 0, 0));
	CHECK_OK(sem_init(&other.go, 0, 0));
	other.thread = start(body, NULL);
	CHECK_OK(sem_wait(&other.ready));
	settle();
	set();
	check_other(SCHED_RR, 3);
	settle();
	stop = true;
	CHECK_OK(sem_post(&other.go));
	finish(other.thread);
}

static void set_others(int unused)
{
	void (*const ways[])(void) = { by_handle, by_priority, by_param, by_attributes };

	(void)unused;
	for (size_t way = 0; way < COUNT(ways); way++)
		for (size_t body = 0; body < COUNT(bodies); body++)
			set_other(ways[way], bodies[body]);
}

/* ---- refused ------------------------------------------------------------ */

static void *refuses(void *arg)
{
	struct sched_param param = { .sched_priority = 3 };

	CHECK_INT(pthread_setschedparam(other.thread, SCHED_FIFO, &param), EPERM);
	CHECK_ERR(sched_setscheduler(other.tid, SCHED_RR, &param), EPERM);
	CHECK_INT(pthread_setschedparam(other.thread, SCHED_OTHER, &param), EINVAL);
	param.sched_priority = 0;
	CHECK_INT(pthread_setschedparam(other.thread, SCHED_FIFO, &param), EINVAL);
	CHECK_INT(pthread_setschedparam(other.thread, 77, &param), EINVAL);
	CHECK_OK(pthread_setschedparam(other.thread, SCHED_OTHER, &param));
	CHECK_INT(pthread_setschedprio(other.thread, 1), EINVAL);
	check_other(SCHED_OTHER, 0);
	return arg;
}

static void *is_asked(void *arg)
{
	begin();
	CHECK_OK(sem_wait(&other.go));
	check_own(SCHED_OTHER, 0);
	return arg;
}

/* In a process that may not have real-time threads. */
static void refused(void)
{
	struct rlimit none = { 0, 0 };
	pid_t pid = fork();
	int status;

	CHECK(pid >= 0);
	if (pid) {
		CHECK_INT(waitpid(pid, &status, 0), pid);
		CHECK_INT(status, 5 << 8);
		return;
	}
	CHECK_OK(setrlimit(RLIMIT_RTPRIO, &none));
	if (getuid() == 0)
		CHECK_OK(setuid(65534));
	CHECK_OK(sem_init(&other.ready, 0, 0));
	CHECK_OK(sem_init(&other.go, 0, 0));
	other.thread = start(is_asked, NULL);
	CHECK_OK(sem_wait(&other.ready));
	finish(start(refuses, NULL));
	CHECK_OK(sem_post(&other.go));
	finish(other.thread);
	_exit(5);
}

/* ---- in a process of its own -------------------------------------------- */

static void *woken_in_order(void *arg)
{
	CHECK_OK(sem_init(&sem, 0, 0));
	CHECK_OK(pthread_mutex_lock(&mutex));
	in_order(by_mutex, wake_mutex);
	in_order(by_cond, wake_cond);
	in_order(by_sem, wake_sem);
	CHECK_OK(pthread_rwlock_wrlock(&rwlock));
	in_order(by_rwlock, wake_rwlock);
	in_order(by_futex, wake_futex);
	return arg;
}

/* As a fiber, which has the lowest priority. */
static void on_one_cpu(int unused)
{
	struct sched_param lowest = { .sched_priority = LOWEST };
	cpu_set_t one;

	(void)unused;
	first_cpu(&one);
	CHECK_OK(sched_setaffinity(0, sizeof(one), &one));
	CHECK_OK(sched_setscheduler(0, SCHED_FIFO, &lowest));
	woken_in_order(NULL);
	finish(start(woken_in_order, NULL));
}

int main(void)
{
	struct sched_param param = { .sched_priority = LOWEST };

	read_only = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(read_only != MAP_FAILED);
	refused();
	if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &param) == 0) {
		param.sched_priority = 0;
		CHECK_OK(sched_setscheduler(0, SCHED_OTHER, &param));
		run_in_child(on_one_cpu, 0);
		run_in_child(set_others, 0);
	}
	return success();
}
