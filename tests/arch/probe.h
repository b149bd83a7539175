/* SPDX-License-Identifier: MIT */
#ifndef FZ_TESTS_ARCH_PROBE_H
#define FZ_TESTS_ARCH_PROBE_H

/*
 * tests/arch/probe.h - what the tests must do outside C.
 *
 * tests/arch/<cpu>/ (found by -iquote) provides it in probe.S, probe_step.c and
 * probe_cpu.h:
 *
 *	PROBE_REGS		number of callee-saved registers
 *	probe_dwarf[]		their DWARF numbers, in the order of the patterns
 *	PROBE_ENTRY_SP_MOD	sp modulo 16 at a function's entry
 *	struct probe_fenv	every word of the floating-point environment
 *	probe_fenv_a/b/c	values that differ in every field
 *	probe_fenv_read/write/use	use: an instruction that raises what waits
 *	probe_variant_count()	how many of probe_variants[] this CPU can run
 *	probe_step()		see below
 */

#include <stddef.h>
#include <stdint.h>

#include "arch/arch.h"

struct probe_variant {
	const char *name;
	fz_switch_fn *fn;
	unsigned long hwcap2;	/* for which fz_arch_init must choose it */
};

/*
 * Call fn(a, b, c) with pattern[i] in the i-th callee-saved register.  Returns
 * a mask of the registers that did not hold their pattern afterwards.
 */
unsigned long probe_call(void *fn, void *a, void *b, uintptr_t c,
			 const uint64_t *pattern);

/* The first thing in a context: stores sp in the first word of arg, and goes
 * on in the function whose address is the second. */
void probe_entry(void *arg);

/*
 * Run body() so that at(pc) is called, in a signal handler, before each
 * instruction that fn executes.  Returns how many it saw.
 */
typedef void probe_at_fn(uintptr_t pc);
unsigned probe_step(void *fn, void (*body)(void), probe_at_fn *at);

#include "probe_cpu.h"

#endif
