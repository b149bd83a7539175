/* SPDX-License-Identifier: MIT */
#include "runtime/base/time.h"

#include <time.h>

#include "runtime/base/host.h"

static fz_nsec read_clock(int clock)
{
	struct timespec ts;

	if (FZ_LIKELY(fz_host.clock_gettime != NULL))
		fz_host.clock_gettime(clock, &ts);
	else
		fz_syscall2(__NR_clock_gettime, clock, (long)&ts);
	return (fz_nsec)ts.tv_sec * FZ_SEC + (fz_nsec)ts.tv_nsec;
}

fz_nsec fz_now(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

fz_nsec fz_now_realtime(void)
{
	return read_clock(CLOCK_REALTIME);
}
