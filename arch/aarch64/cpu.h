/* SPDX-License-Identifier: MIT */
#ifndef FZ_ARCH_AARCH64_CPU_H
#define FZ_ARCH_AARCH64_CPU_H

/*
 * arch/aarch64/cpu.h - the thread pointer is tpidr_el0, which user space may
 * write.  arch/arch.h has the contract.
 */

#include <stdint.h>

#include "syscall.h"

#pragma GCC visibility push(hidden)

/* The only variant of fz_switch. */
void fz_switch_tpidr(void **save_sp, void *load_sp, uintptr_t tcb);

#pragma GCC visibility pop

/* A module's thread-local variables lie above the thread pointer. */
enum { FZ_TLS_DIRECTION = 1 };

static inline uintptr_t fz_tcb_get(void)
{
	uintptr_t tcb;

	/* Without volatile the compiler could cache the value across fz_switch. */
	__asm__ volatile("mrs %0, tpidr_el0" : "=r"(tcb));
	return tcb;
}

static inline void fz_tcb_set(uintptr_t tcb)
{
	__asm__ volatile("msr tpidr_el0, %0" : : "r"(tcb) : "memory");
}

static inline int fz_cpu_number(void)
{
	/* No instruction tells, and a filter may kill the process for the system call. */
	return -1;
}

static inline uintptr_t fz_call_target(uintptr_t pc, uintptr_t *ret_next)
{
	uint32_t insn;

	__builtin_memcpy(&insn, (const void *)pc, sizeof(insn));
	if (insn >> 26 != 0x25)
		return 0;
	*ret_next = pc + sizeof(insn);
	/* 26 bits, signed, in units of 4 bytes. */
	return pc + (uintptr_t)(intptr_t)((int32_t)(insn << 6) >> 4);
}

/* Does fz_switch make a system call? */
static inline int fz_switch_is_call(void)
{
	return 0;
}

static inline long fz_clone_fork(unsigned long flags, void *child_tid)
{
	enum { NR_CLONE = 220 };

	return fz_syscall6(NR_CLONE, (long)flags, 0, 0, 0, (long)child_tid, 0);
}

static inline void fz_cpu_relax(void)
{
	__asm__ volatile("yield" : : : "memory");
}

static inline uint64_t fz_cycles(void)
{
	uint64_t count;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(count));
	return count;
}

static inline void fz_add_here(uint64_t *n, uint64_t by)
{
	__atomic_fetch_add(n, by, __ATOMIC_RELAXED);
}

/* Values of the word of a pthread_spinlock_t. */
enum { FZ_SPIN_FREE = 0, FZ_SPIN_HELD = 1 };

#endif
