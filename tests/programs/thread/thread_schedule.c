/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/thread/thread_schedule.c - the scheduling that a process has before its first thread, and how
 * threads find or leave it: one uses more CPUs, one asks with other state of its own for another's.
 */
#include "check.h"

#include <semaphore.h>
#include <sys/resource.h>

enum { NICE = 5 };

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
	CHECK_INT(nice(NICE), asked.nice + NICE);
	CHECK_OK(sched_setscheduler(0, SCHED_BATCH, &param));
	CHECK_OK(sched_setaffinity(0, sizeof(first), &first));
	check_asked();
	CHECK_INT(getpriority(PRIO_PROCESS, 0), asked.nice + NICE);
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

int main(void)
{
	run_in_child(wider, 0);
	run_in_child(others, 0);
	run_in_child(others, 1);
	return success();
}
