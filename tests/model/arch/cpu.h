/* SPDX-License-Identifier: MIT */
#ifndef FZ_MODEL_CPU_H
#define FZ_MODEL_CPU_H

/*
 * tests/model/arch/cpu.h - the CPU that the explorer runs the library on: x86-64, but each system
 * call, each pause of a spin and each look at the cycle counter goes to the model.
 */

#include <stdint.h>

/* Instead of arch/x86_64/syscall.h, which cpu.h includes. */
#define FZ_ARCH_X86_64_SYSCALL_H

long model_syscall(long nr, long a, long b, long c, long d, long e, long f);
void model_relax(void);
uint64_t model_cycles(void);
_Noreturn void model_outside(const char *what);

static inline long fz_syscall3(long nr, long a, long b, long c)
{
	return model_syscall(nr, a, b, c, 0, 0, 0);
}

static inline long fz_syscall6(long nr, long a, long b, long c, long d, long e, long f)
{
	return model_syscall(nr, a, b, c, d, e, f);
}

#define fz_cpu_relax cpu_relax_of_this_cpu
#define fz_cycles cycles_of_this_cpu
#define fz_add_here add_here_of_this_cpu
#define fz_tcb_set tcb_set_of_this_cpu
#define fz_cpu_number number_of_this_cpu
#include "arch/x86_64/cpu.h"
#undef fz_cpu_relax
#undef fz_cycles
#undef fz_add_here
#undef fz_tcb_set
#undef fz_cpu_number

static inline void fz_cpu_relax(void)
{
	model_relax();
}

static inline uint64_t fz_cycles(void)
{
	return model_cycles();
}

/* Not known. */
static inline int fz_cpu_number(void)
{
	return -1;
}

static inline void fz_tcb_set(uintptr_t tcb)
{
	(void)tcb;
	model_outside("fz_tcb_set");
}

/* In C, so that the explorer sees the access. */
static inline void fz_add_here(uint64_t *n, uint64_t by)
{
	*n += by;
}

#endif
