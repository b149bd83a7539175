/* SPDX-License-Identifier: MIT */
#include "switch_cost.h"

#ifdef __x86_64__
#include <asm/prctl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/features.h"
#include "runtime/base/options.h"

enum {
	HWCAP2_FSGSBASE_BIT = 1 << 1,
	ROUNDS = 5,		/* the lowest counts: others may use the CPU */
	CALLS = 50,
};

static bool goes_without_fsgsbase(void)
{
	const char *words = getenv(fz_options[FZ_OPTION_ID_without].variable);
	uint64_t without;

	return words && fz_option_parse(&fz_options[FZ_OPTION_ID_without], words, &without) &&
	       without >> FZ_FEATURE_FSGSBASE & 1;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

unsigned switch_call_ns(void)
{
	uint64_t least = UINT64_MAX;
	unsigned long base;

	if (getauxval(AT_HWCAP2) & HWCAP2_FSGSBASE_BIT && !goes_without_fsgsbase())
		return 0;
	if (syscall(SYS_arch_prctl, ARCH_GET_FS, &base) != 0)
		return 0;
	for (int round = 0; round < ROUNDS; round++) {
		uint64_t begun = now_ns(), took;

		for (int i = 0; i < CALLS; i++)
			syscall(SYS_arch_prctl, ARCH_SET_FS, base);
		took = (now_ns() - begun) / CALLS;
		if (took < least)
			least = took;
	}
	return least ? (unsigned)least : 1;
}
#else
unsigned switch_call_ns(void)
{
	return 0;
}
#endif
