/* SPDX-License-Identifier: MIT */
#ifndef FZ_ARCH_X86_64_CPU_H
#define FZ_ARCH_X86_64_CPU_H

/*
 * arch/x86_64/cpu.h - the thread pointer is the fs base.  By the ABI, the word at that address holds
 * the address itself.  arch/arch.h has the contract.
 */

#include <stdint.h>

#include "syscall.h"

#pragma GCC visibility push(hidden)

/* The variants of fz_switch: set the fs base by an instruction (FSGSBASE), or by a system call. */
void fz_switch_fsgsbase(void **save_sp, void *load_sp, uintptr_t tcb);
void fz_switch_prctl(void **save_sp, void *load_sp, uintptr_t tcb);

/* arch/arch.h has the contract. */
extern void (*fz_switch_refused)(void);

/* May user space write the fs base?  Written by fz_arch_init. */
extern unsigned char fz_cpu_fsgsbase;

#pragma GCC visibility pop

/* A module's thread-local variables lie below the thread pointer. */
enum { FZ_TLS_DIRECTION = -1 };

static inline uintptr_t fz_tcb_get(void)
{
	uintptr_t tcb;

	/* Without volatile the compiler could cache the value across fz_switch. */
	__asm__ volatile("movq %%fs:0, %0" : "=r"(tcb));
	return tcb;
}

static inline void fz_tcb_set(uintptr_t tcb)
{
	enum { NR_ARCH_PRCTL = 158, SET_FS = 0x1002 };

	if (fz_cpu_fsgsbase) {
		__asm__ volatile("wrfsbase %0" : : "r"(tcb) : "memory");
	} else if (fz_syscall3(NR_ARCH_PRCTL, SET_FS, (long)tcb, 0)) {
		if (fz_switch_refused)
			fz_switch_refused();
		__builtin_trap();
	}
}

static inline int fz_cpu_number(void)
{
	/*
	 * The kernel keeps the CPU's number in the low 12 bits of this segment's limit, and the node's number
	 * above them; the vDSO reads both there.
	 */
	enum { SEGMENT = 0x7b, CPU_MASK = 0xfff };
	const unsigned segment = SEGMENT;
	unsigned limit = 0;
	unsigned char known;

	__asm__ volatile("lsl %2, %0\n\tsetz %1" : "+r"(limit), "=q"(known) : "r"(segment) : "cc");
	return known ? (int)(limit & CPU_MASK) : -1;
}

static inline uintptr_t fz_call_target(uintptr_t pc, uintptr_t *ret_next)
{
	const uint8_t *insn = (const uint8_t *)pc;
	int32_t distance;

	if (insn[0] != 0xe8)
		return 0;
	__builtin_memcpy(&distance, insn + 1, sizeof(distance));
	*ret_next = pc + 1 + sizeof(distance);
	return *ret_next + (uintptr_t)(intptr_t)distance;
}

/* Does fz_switch make a system call? */
static inline int fz_switch_is_call(void)
{
	return !fz_cpu_fsgsbase;
}

static inline long fz_clone_fork(unsigned long flags, void *child_tid)
{
	enum { NR_CLONE = 56 };

	return fz_syscall6(NR_CLONE, (long)flags, 0, 0, (long)child_tid, 0, 0);
}

static inline void fz_cpu_relax(void)
{
	__asm__ volatile("pause" : : : "memory");
}

static inline uint64_t fz_cycles(void)
{
	return __builtin_ia32_rdtsc();
}

static inline void fz_add_here(uint64_t *n, uint64_t by)
{
	__asm__ volatile("addq %1, %0" : "+m"(*n) : "er"(by) : "cc");
}

/* Values of the word of a pthread_spinlock_t. */
enum { FZ_SPIN_FREE = 1, FZ_SPIN_HELD = 0 };

#endif
