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
 * The assembler includes it, too: numbers only.  frame.c asserts that its struct agrees.
 */

#define FZ_FRAME_FPCR	0x00
#define FZ_FRAME_FPSR	0x08
#define FZ_FRAME_D8	0x10
#define FZ_FRAME_X19	0x50
#define FZ_FRAME_FP	0xa0
#define FZ_FRAME_PC	0xa8
#define FZ_FRAME_SIZE	0xb0

/*
 * A first frame enters fz_fiber_start this many bytes behind its beginning, the size of bti:
 * unwinders look up the return address minus one, which must lie in the function.
 */
#define FZ_START_SKIP	4

#endif
