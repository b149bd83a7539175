/* SPDX-License-Identifier: MIT */
/* tests/targets/waits_in.c - a library for mapped_twice.c: a thread sleeps in its function. */
#include <unistd.h>

void *waits_in(void *arg);
void *waits_in(void *arg)
{
	for (;;)
		sleep(100000);
	return arg;
}
