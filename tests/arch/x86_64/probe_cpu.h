/* SPDX-License-Identifier: MIT */
#ifndef FZ_TESTS_ARCH_X86_64_PROBE_CPU_H
#define FZ_TESTS_ARCH_X86_64_PROBE_CPU_H

/*
 * tests/arch/x86_64/probe_cpu.h - tests/arch/probe.h for x86-64.
 */

#include <sys/auxv.h>

#define PROBE_REGS 6
#define PROBE_ENTRY_SP_MOD 8	/* the call pushed the return address */

/* rbx rbp r12 r13 r14 r15 */
static const int probe_dwarf[PROBE_REGS] = { 3, 6, 12, 13, 14, 15 };

static const struct probe_variant probe_variants[] = {
	{ "prctl", fz_switch_prctl, 0 },
	{ "fsgsbase", fz_switch_fsgsbase, 2 },
};

/* wrfsbase is an illegal instruction where the kernel did not enable it. */
static inline unsigned probe_variant_count(void)
{
	return getauxval(AT_HWCAP2) & 2 ? 2 : 1;
}

struct probe_fenv {
	uint32_t mxcsr;
	uint16_t x87cw;
	uint16_t x87flags;
};

/*
 * a: rounds down, flushes denormals, inexact raised in both units.
 * b: rounds up, double precision, and would trap on x87 inexact: a careless
 *    switch from a to b raises SIGFPE in b.
 * c: rounds to zero, other flags.
 */
static const struct probe_fenv probe_fenv_a = { 0xbfa0, 0x077f, 0x20 };
static const struct probe_fenv probe_fenv_b = { 0x5f80, 0x0a5f, 0x00 };
static const struct probe_fenv probe_fenv_c = { 0x7f84, 0x0f7f, 0x11 };

static inline struct probe_fenv probe_fenv_read(void)
{
	struct probe_fenv f;
	uint16_t sw;

	__asm__ volatile("stmxcsr %0" : "=m"(f.mxcsr));
	__asm__ volatile("fnstcw %0" : "=m"(f.x87cw));
	__asm__ volatile("fnstsw %0" : "=a"(sw));
	f.x87flags = sw & 0x3f;
	return f;
}

static inline void probe_fenv_write(struct probe_fenv f)
{
	uint16_t env[14];

	__asm__ volatile("fnstenv %0" : "=m"(env));
	env[0] = f.x87cw;
	env[2] = (uint16_t)((env[2] & ~0x3f) | f.x87flags);
	__asm__ volatile("fldenv %0" : : "m"(env));
	__asm__ volatile("ldmxcsr %0" : : "m"(f.mxcsr));
}

static inline void probe_fenv_use(void)
{
	__asm__ volatile("fwait");
}

#endif
