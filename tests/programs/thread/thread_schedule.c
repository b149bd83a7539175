/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/thread/thread_schedule.c - the scheduling that a process has before its first thread, and how
 * threads find or leave it: one uses more CPUs.
 */
#include "check.h"

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

int main(void)
{
	run_in_child(wider, 0);
	return success();
}
