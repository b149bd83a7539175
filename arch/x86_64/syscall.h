/* SPDX-License-Identifier: MIT */
#ifndef FZ_ARCH_X86_64_SYSCALL_H
#define FZ_ARCH_X86_64_SYSCALL_H

/*
 * arch/x86_64/syscall.h - raw system calls of three and of six arguments: arch.h has what
 * they promise, and the calls with other numbers of arguments.
 */

static inline long fz_syscall3(long nr, long a, long b, long c)
{
	long ret;

	__asm__ volatile("syscall" : "=a"(ret)
			 : "a"(nr), "D"(a), "S"(b), "d"(c)
			 : "rcx", "r11", "memory");
	return ret;
}

static inline long fz_syscall6(long nr, long a, long b, long c, long d, long e,
			       long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long ret;

	__asm__ volatile("syscall" : "=a"(ret)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8),
			   "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}

#endif
