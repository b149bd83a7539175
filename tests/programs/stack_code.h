/* SPDX-License-Identifier: MIT */
#ifndef STACK_CODE_H
#define STACK_CODE_H

/*
 * tests/programs/stack_code.h - a function on the stack, as GCC puts it there for a nested function
 * whose address is taken.
 */

#include <string.h>

static int value_from_stack(int value)
{
	int (*fn)(void);
	int got;
#if defined(__x86_64__)
	unsigned char code[16] = { 0xb8, 0, 0, 0, 0, 0xc3 };	/* mov value, eax; ret */

	memcpy(code + 1, &value, sizeof(value));
#elif defined(__aarch64__)
	/* mov w0, value; ret */
	unsigned code[4] = { 0x52800000u | (unsigned)value << 5, 0xd65f03c0u };
#endif
	__builtin___clear_cache((char *)code, (char *)code + sizeof(code));
	fn = (int (*)(void))(void *)code;
	/* The compiler must not see what is called, nor drop what is written. */
	__asm__ volatile("" : "+r"(fn) : : "memory");
	got = fn();
	__asm__ volatile("" : : "r"(code) : "memory");
	return got;
}

#endif
