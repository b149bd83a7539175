/* SPDX-License-Identifier: MIT */
/*
 * arch/aarch64/detour_slots.S - memory for trampolines (detour.c), in pages of its own; the code
 * that writes the trampolines makes the pages writable for that time.
 *
 * The pages lie in the library's text: profilers and debuggers have a name for them, and unwinders
 * have a rule, which is that of the entry of a function.
 */
#include "detour.h"

	.text
	.balign	FZ_DETOUR_PAGE
	.globl	fz_detour_slots
	.hidden	fz_detour_slots
	.type	fz_detour_slots, %function
fz_detour_slots:
	.cfi_startproc
	.fill	FZ_DETOUR_SLOTS * FZ_DETOUR_ROOM, 1, 0		/* udf #0 */
	.balign	FZ_DETOUR_PAGE, 0
	.cfi_endproc
	.size	fz_detour_slots, . - fz_detour_slots

	.section .note.GNU-stack, "", %progbits
