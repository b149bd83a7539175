/* SPDX-License-Identifier: MIT */
/*
 * tests/helpers/crash.c - a thread that has waited runs into a NULL pointer, in a
 * function that a debugger must name.
 */
#include "check.h"

__attribute__((noinline)) static void where_it_happens(volatile int *p)
{
	usleep(1000);
	*p = 1;
}

static void *run(void *arg)
{
	where_it_happens(arg);
	return arg;
}

int main(void)
{
	pthread_t thread;

	CHECK_OK(pthread_create(&thread, NULL, run, NULL));
	CHECK_OK(pthread_join(thread, NULL));
	return 0;
}
