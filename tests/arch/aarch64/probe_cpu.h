/* SPDX-License-Identifier: MIT */
#ifndef FZ_TESTS_ARCH_AARCH64_PROBE_CPU_H
#define FZ_TESTS_ARCH_AARCH64_PROBE_CPU_H

/*
 * tests/arch/aarch64/probe_cpu.h - tests/arch/probe.h for aarch64.
 */

#define PROBE_REGS 19
#define PROBE_ENTRY_SP_MOD 0

/* x19 ... x29, v8 ... v15 */
static const int probe_dwarf[PROBE_REGS] = {
	19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29,
	72, 73, 74, 75, 76, 77, 78, 79,
};

static const struct probe_variant probe_variants[] = {
	{ "tpidr", fz_switch_tpidr, 0 },
};

static inline unsigned probe_variant_count(void)
{
	return 1;
}

struct probe_fenv {
	uint64_t fpcr;
	uint64_t fpsr;
};

/* Rounds down, up, to zero; with default NaN, flush to zero; other flags. */
static const struct probe_fenv probe_fenv_a = { 0x02800000, 0x10 };
static const struct probe_fenv probe_fenv_b = { 0x01400000, 0x00 };
static const struct probe_fenv probe_fenv_c = { 0x00c00000, 0x03 };

static inline struct probe_fenv probe_fenv_read(void)
{
	struct probe_fenv f;

	__asm__ volatile("mrs %0, fpcr" : "=r"(f.fpcr));
	__asm__ volatile("mrs %0, fpsr" : "=r"(f.fpsr));
	return f;
}

static inline void probe_fenv_write(struct probe_fenv f)
{
	__asm__ volatile("msr fpcr, %0" : : "r"(f.fpcr));
	__asm__ volatile("msr fpsr, %0" : : "r"(f.fpsr));
}

static inline void probe_fenv_use(void)
{
	/* Nothing waits here: exceptions trap at once, if at all. */
}

#endif
