/* SPDX-License-Identifier: MIT */
#ifndef TRACE_CYCLES_H
#define TRACE_CYCLES_H

/* scripts/trace/cycles.h - the CPU's cycle counter, which the library reads by fz_cycles() of arch.h. */

#include <stdint.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

static inline uint64_t cycles(void)
{
#if defined(__x86_64__)
	return __rdtsc();
#elif defined(__aarch64__)
	uint64_t n;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(n));
	return n;
#else
	return 0;
#endif
}

/* How much cycles() grows in one second.  The first call measures that, which takes 20 ms. */
double cycles_per_second(void);

#endif
