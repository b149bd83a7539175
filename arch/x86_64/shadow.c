/* SPDX-License-Identifier: MIT */
/*
 * arch/x86_64/shadow.c - does the CPU compare return addresses with a shadow stack?
 */
#include "arch/arch.h"

int fz_arch_shadow_stack(void)
{
	uint64_t ssp = 0;

	/* rdsspq %rax: does nothing unless user shadow stacks are on (Linux 6.6). */
	__asm__ volatile(".byte 0xf3, 0x48, 0x0f, 0x1e, 0xc8" : "+a"(ssp));
	return ssp != 0;
}
