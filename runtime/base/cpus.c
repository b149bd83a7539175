/* SPDX-License-Identifier: MIT */
#include "runtime/base/cpus.h"

#include "runtime/base/sys.h"

uint32_t fz_cpus_allowed(void)
{
	uint64_t set[128];
	long size = fz_syscall3(__NR_sched_getaffinity, 0, sizeof(set), (long)set);
	uint32_t count = 0;

	for (long i = 0; i < size / (long)sizeof(set[0]); i++)
		count += (uint32_t)__builtin_popcountll(set[i]);
	return count;
}
