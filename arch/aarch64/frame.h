/* SPDX-License-Identifier: MIT */
#ifndef FZ_ARCH_AARCH64_FRAME_H
#define FZ_ARCH_AARCH64_FRAME_H

/*
 * arch/aarch64/frame.h - what lies at a saved stack pointer.
 *
 *	+0x00  fpcr   fpsr
 *	+0x10  d8  d9  d10  d11  d12  d13  d14  d15
 *	+0x50  x19 x20 x21 x22 x23 x24 x25 x26 x27 x28
 *	+0xa0  x29 (frame pointer)  x30 (return address)
 *	+0xb0					<- CFA: sp after the return
 *
 * The assembler includes this file, too, so it has numbers only.  frame.c asserts that its struct agrees.
 */

#define FZ_FRAME_FPCR	0x00
#define FZ_FRAME_FPSR	0x08
#define FZ_FRAME_D8	0x10
#define FZ_FRAME_X19	0x50
#define FZ_FRAME_FP	0xa0
#define FZ_FRAME_PC	0xa8
#define FZ_FRAME_SIZE	0xb0

/* The saved registers, as (DWARF number, offset): x19 to x28, fp, and the address of return. */
#define FZ_FRAME_REGISTERS(_)                                                            \
	_(19, FZ_FRAME_X19) _(20, FZ_FRAME_X19 + 8) _(21, FZ_FRAME_X19 + 16)             \
	_(22, FZ_FRAME_X19 + 24) _(23, FZ_FRAME_X19 + 32) _(24, FZ_FRAME_X19 + 40)       \
	_(25, FZ_FRAME_X19 + 48) _(26, FZ_FRAME_X19 + 56) _(27, FZ_FRAME_X19 + 64)       \
	_(28, FZ_FRAME_X19 + 72) _(29, FZ_FRAME_FP) _(30, FZ_FRAME_PC)
/* The DWARF number of the stack pointer, whose value is FZ_FRAME_SIZE above the frame. */
#define FZ_FRAME_SP_REGISTER	31
/* The DWARF number that FZ_FRAME_REGISTERS gives to the return address. */
#define FZ_FRAME_PC_REGISTER	30

/*
 * A first frame enters fz_fiber_start this many bytes behind its beginning, which is the size of bti.
 * Unwinders look up the return address minus one, which must lie in the function, too.
 */
#define FZ_START_SKIP	4

#endif
