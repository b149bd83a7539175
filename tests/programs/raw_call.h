/* SPDX-License-Identifier: MIT */
#ifndef RAW_CALL_H
#define RAW_CALL_H

#include <sys/syscall.h>

/* tests/programs/raw_call.h - a system call that no library sees, with 0 as its argument. */

static long raw_call(long number)
{
#if defined(__x86_64__)
	long ret;

	__asm__ volatile("syscall" : "=a"(ret) : "a"(number), "D"(0) : "rcx", "r11", "memory");
	return ret;
#elif defined(__aarch64__)
	register long nr __asm__("x8") = number, ret __asm__("x0") = 0;

	__asm__ volatile("svc #0" : "+r"(ret) : "r"(nr) : "memory");
	return ret;
#endif
}

#endif
