/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_BASE_TIME_H
#define FZ_RUNTIME_BASE_TIME_H

/*
 * runtime/base/time.h - the current time, and times in the kernel's format.  Any context.
 */

#include "runtime/base/base.h"
#include "runtime/base/sys.h"

fz_nsec fz_now(void);			/* CLOCK_MONOTONIC; never fails */
fz_nsec fz_now_realtime(void);		/* CLOCK_REALTIME, which may jump when it is set */

static inline struct __kernel_timespec fz_timespec(fz_nsec ns)
{
	return (struct __kernel_timespec){
		.tv_sec = (long long)(ns / FZ_SEC),
		.tv_nsec = (long long)(ns % FZ_SEC),
	};
}

#endif
