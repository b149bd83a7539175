/* SPDX-License-Identifier: MIT */
#ifndef FZ_ARCH_AARCH64_SYSCALL_H
#define FZ_ARCH_AARCH64_SYSCALL_H

/*
 * arch/aarch64/syscall.h - raw system calls of three and of six arguments: arch.h has what
 * they promise, and the calls with other numbers of arguments.
 */

static inline long fz_syscall3(long nr, long a, long b, long c)
{
	register long x8 __asm__("x8") = nr;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;

	__asm__ volatile("svc #0" : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2)
			 : "memory");
	return x0;
}

static inline long fz_syscall6(long nr, long a, long b, long c, long d, long e,
			       long f)
{
	register long x8 __asm__("x8") = nr;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc #0" : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return x0;
}

#endif
