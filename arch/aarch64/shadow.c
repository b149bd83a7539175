/* SPDX-License-Identifier: MIT */
/*
 * arch/aarch64/shadow.c - does the CPU compare return addresses with a guarded control stack
 * (GCS)?
 */
#include "arch/arch.h"

int fz_arch_shadow_stack(void)
{
	register uint64_t feature __asm__("x16") = 1;

	/*
	 * chkfeat x16: clears the bit of each feature that is on, here GCS.  Older CPUs execute it
	 * as a hint that does nothing.
	 */
	__asm__ volatile("hint #40" : "+r"(feature));
	return feature == 0;
}
