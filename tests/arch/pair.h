/* SPDX-License-Identifier: MIT */
#ifndef FZ_TESTS_ARCH_PAIR_H
#define FZ_TESTS_ARCH_PAIR_H

/*
 * tests/arch/pair.h - two contexts that switch to each other on one kernel thread.
 */

#include <stdbool.h>
#include <string.h>

#include "tests/plain/harness.h"
#include "tests/arch/probe.h"

enum { STACK_SIZE = 256 * 1024 };

/* Two contexts: the test itself, and one with a stack of its own. */
static struct {
	fz_switch_fn *fn;
	void *sp;		/* of the other context, while it is parked */
	void *test_sp;		/* of the test, while the other one runs */
	uintptr_t tcb;
	unsigned long wrong;	/* what the other context has to complain of */
	uint64_t count;
} pair;

static char stack[STACK_SIZE] __attribute__((aligned(64)));

static inline void pair_begin(fz_switch_fn *fn, void (*other)(void *))
{
	memset(&pair, 0, sizeof(pair));
	pair.fn = fn;
	pair.tcb = fz_tcb_get();
	pair.sp = fz_frame_make(stack + STACK_SIZE, other, &pair);
}

/* What looks like a return address must not lure an unwinder on. */
static inline void plant_return_address(void)
{
	*(uintptr_t *)fz_frame_cfa(pair.sp) = (uintptr_t)pair_begin + 1;
}

static inline void to_other(void)
{
	pair.fn(&pair.test_sp, pair.sp, pair.tcb);
}

static inline void to_test(void)
{
	pair.fn(&pair.sp, pair.test_sp, pair.tcb);
}

static inline void pattern_fill(uint64_t pattern[PROBE_REGS], uint64_t seed)
{
	for (unsigned i = 0; i < PROBE_REGS; i++)
		pattern[i] = (seed + i + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

static uint64_t other_pattern[PROBE_REGS], test_pattern[PROBE_REGS];

#endif
