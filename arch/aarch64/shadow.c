/* SPDX-License-Identifier: MIT */
/*
 * arch/aarch64/shadow.c - are return addresses compared with a guarded control
 * stack?
 */
#include "arch/arch.h"

int fz_arch_shadow_stack(void)
{
	register uint64_t feature __asm__("x16") = 1;

	/* chkfeat x16: clears the bit of what is on, here GCS; else a hint. */
	__asm__ volatile("hint #40" : "+r"(feature));
	return feature == 0;
}
