/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/thread/thread_schedule.c - the scheduling that a process has before its first thread, and how
 * threads find or leave it: one is to have another policy, one uses more CPUs, one asks with other state of its
 * own for another's. And what main alone has of it.
 */
#include "check.h"

#include <linux/perf_event.h>
#include <semaphore.h>
#include <sys/resource.h>

enum { NICE = 5, THREADS = 8 };
#define BURN (100 * MS)

/* ---- more CPUs than the process ----------------------------------------- */

static cpu_set_t all, first;

static void check_cpus(const cpu_set_t *cpus)
{
	cpu_set_t now;

	CHECK_OK(sched_getaffinity(0, sizeof(now), &now));
	CHECK(CPU_EQUAL(&now, cpus));
}

static void *widens(void *arg)
{
	cpu_set_t none, any;

	CPU_ZERO(&none);
	memset(&any, 0xff, sizeof(any));
	check_cpus(&first);
	CHECK_ERR(sched_setaffinity(0, sizeof(none), &none), EINVAL);
	check_cpus(&first);
	if (arg)
		CHECK_OK(sched_setaffinity(0, sizeof(any), &any));
	else
		CHECK_OK(pthread_setaffinity_np(pthread_self(), sizeof(all), &all));
	check_cpus(&all);
	usleep(1000);
	check_cpus(&all);
	return arg;
}

static void *stays(void *arg)
{
	check_cpus(&first);
	CHECK_OK(sched_setaffinity(0, sizeof(first), &first));
	usleep(1000);
	check_cpus(&first);
	return arg;
}

static void wider(int unused)
{
	(void)unused;
	CHECK_OK(sched_getaffinity(0, sizeof(all), &all));
	first_cpu(&first);
	CHECK_OK(sched_setaffinity(0, sizeof(first), &first));
	finish(start(stays, NULL));
	finish(start(widens, NULL));
	finish(start(widens, &all));
	finish(start(stays, NULL));
	stays(NULL);
}

/* ---- another's, asked for by a thread that has its own ------------------- */

static struct {
	pthread_t thread;
	pid_t tid;
	int nice, policy;
} asked;

static sem_t ready, go;

static void check_asked(void)
{
	struct sched_param param = { .sched_priority = 7 };
	cpu_set_t cpus;
	int policy;

	CHECK_INT(getpriority(PRIO_PROCESS, (id_t)asked.tid), asked.nice);
	CHECK_INT(syscall(SYS_getpriority, PRIO_PROCESS, asked.tid), 20 - asked.nice);
	CHECK_INT(sched_getscheduler(asked.tid), asked.policy);
	CHECK_OK(pthread_getschedparam(asked.thread, &policy, &param));
	CHECK_INT(policy, asked.policy);
	CHECK_INT(param.sched_priority, 0);
	CHECK_OK(sched_getaffinity(asked.tid, sizeof(cpus), &cpus));
	CHECK(CPU_EQUAL(&cpus, &all));
	CHECK_OK(pthread_getaffinity_np(asked.thread, sizeof(cpus), &cpus));
	CHECK(CPU_EQUAL(&cpus, &all));
}

static void *has_own(void *arg)
{
	struct sched_param param = { 0 };

	check_asked();
	CHECK_INT(nice(NICE), nice_after(asked.nice, NICE));
	CHECK_OK(sched_setscheduler(0, SCHED_BATCH, &param));
	CHECK_OK(sched_setaffinity(0, sizeof(first), &first));
	check_asked();
	CHECK_INT(getpriority(PRIO_PROCESS, 0), nice_after(asked.nice, NICE));
	CHECK_INT(sched_getscheduler(0), SCHED_BATCH);
	check_cpus(&first);
	return arg;
}

/* A kernel thread in any case. */
static void start_own(int affine)
{
	finish(start_as(affine, has_own, NULL));
}

static void *waits(void *arg)
{
	asked.tid = gettid();
	CHECK_OK(sem_post(&ready));
	CHECK_OK(sem_wait(&go));
	return arg;
}

static void others(int affine)
{
	CHECK_OK(sched_getaffinity(0, sizeof(all), &all));
	first_cpu(&first);
	asked.nice = getpriority(PRIO_PROCESS, 0);
	asked.policy = sched_getscheduler(0);
	asked.thread = pthread_self();
	asked.tid = gettid();
	start_own(affine);
	CHECK_OK(sem_init(&ready, 0, 0));
	CHECK_OK(sem_init(&go, 0, 0));
	asked.thread = start(waits, NULL);
	CHECK_OK(sem_wait(&ready));
	start_own(affine);
	CHECK_OK(sem_post(&go));
	finish(asked.thread);
}

/* ---- a policy in the attributes ------------------------------------------ */

static void *has_policy(void *arg)
{
	CHECK_INT(sched_getscheduler(0), (int)(intptr_t)arg);
	usleep(1000);
	CHECK_INT(sched_getscheduler(0), (int)(intptr_t)arg);
	return NULL;
}

/* SCHED_OTHER, the one of those without a privilege that attributes can have. */
static void start_with_other(void)
{
	struct sched_param param = { 0 };
	pthread_attr_t attr;
	pthread_t t;

	CHECK_OK(pthread_attr_init(&attr));
	CHECK_OK(pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED));
	CHECK_OK(pthread_attr_setschedpolicy(&attr, SCHED_OTHER));
	CHECK_OK(pthread_attr_setschedparam(&attr, &param));
	CHECK_OK(pthread_create(&t, &attr, has_policy, (void *)(intptr_t)SCHED_OTHER));
	CHECK_OK(pthread_attr_destroy(&attr));
	finish(t);
}

static void set_own(int policy)
{
	struct sched_param param = { 0 };

	CHECK_OK(sched_setscheduler(0, policy, &param));
}

static void explicitly(int policy)
{
	set_own(policy);
	start_with_other();
	finish(start(has_policy, (void *)(intptr_t)policy));
	CHECK_INT(sched_getscheduler(0), policy);
}

/* ---- what main does not pass on ------------------------------------------ */

static void resets(int policy)
{
	pthread_t t[THREADS];

	set_own(policy | SCHED_RESET_ON_FORK);
	for (int i = 0; i < THREADS; i++)
		t[i] = start(has_policy, (void *)(intptr_t)policy);
	for (int i = 0; i < THREADS; i++) {
		CHECK_INT(sched_getscheduler(0), policy | SCHED_RESET_ON_FORK);
		finish(t[i]);
	}
	usleep(1000);
	CHECK_INT(sched_getscheduler(0), policy | SCHED_RESET_ON_FORK);
}

static void *burns(void *arg)
{
	const long long end = now(CLOCK_THREAD_CPUTIME_ID) + BURN;

	while (now(CLOCK_THREAD_CPUTIME_ID) < end)
		continue;
	return arg;
}

static long long read_counter(int fd)
{
	uint64_t count;

	CHECK_INT(read(fd, &count, sizeof(count)), sizeof(count));
	return (long long)count;
}

/* A counter of what main does, where the user may have one. */
static void counted(int own_tid)
{
	struct perf_event_attr counter = {
		.type = PERF_TYPE_SOFTWARE, .size = sizeof(counter),
		.config = PERF_COUNT_SW_TASK_CLOCK, .exclude_kernel = 1, .exclude_hv = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &counter, own_tid ? gettid() : 0, -1, -1, 0);
	long long before;

	if (fd < 0)
		return;
	before = read_counter(fd);
	finish(start(burns, NULL));
	CHECK(read_counter(fd) - before < BURN / 2);
	before = read_counter(fd);
	burns(NULL);
	CHECK(read_counter(fd) - before > BURN / 2);
	CHECK_OK(close(fd));
}

int main(void)
{
	run_in_child(explicitly, SCHED_OTHER);
	run_in_child(explicitly, SCHED_BATCH);
	run_in_child(resets, SCHED_OTHER);
	run_in_child(resets, SCHED_BATCH);
	run_in_child(counted, 0);
	run_in_child(counted, 1);
	run_in_child(wider, 0);
	run_in_child(others, 0);
	run_in_child(others, 1);
	return success();
}
