/* SPDX-License-Identifier: MIT */
#ifndef FZ_ARCH_X86_64_FRAME_H
#define FZ_ARCH_X86_64_FRAME_H

/*
 * arch/x86_64/frame.h - what lies at a saved stack pointer.
 *
 *	+0x00  mxcsr (4)  x87 control word (2)  x87 exception flags (2)
 *	+0x08  gs base; 0 where user space cannot read it
 *	+0x10  r15
 *	+0x18  r14
 *	+0x20  r13
 *	+0x28  r12
 *	+0x30  rbx
 *	+0x38  rbp
 *	+0x40  return address			<- CFA - 8
 *	+0x48					<- CFA: rsp after the return
 *
 * The assembler includes this file, too, so it has numbers only.  frame.c asserts that its struct agrees.
 */

#define FZ_FRAME_MXCSR	0x00
#define FZ_FRAME_X87CW	0x04
#define FZ_FRAME_X87EX	0x06
#define FZ_FRAME_GSBASE	0x08
#define FZ_FRAME_R15	0x10
#define FZ_FRAME_RBP	0x38
#define FZ_FRAME_PC	0x40
#define FZ_FRAME_SIZE	0x48

/* The saved registers, as (DWARF number, offset): r15 to rbp, and the address of return. */
#define FZ_FRAME_REGISTERS(_)                                                            \
	_(15, FZ_FRAME_R15) _(14, FZ_FRAME_R15 + 8) _(13, FZ_FRAME_R15 + 16)             \
	_(12, FZ_FRAME_R15 + 24) _(3, FZ_FRAME_R15 + 32) _(6, FZ_FRAME_RBP) _(16, FZ_FRAME_PC)
/* The DWARF number of the stack pointer, whose value is FZ_FRAME_SIZE above the frame. */
#define FZ_FRAME_SP_REGISTER	7
/* The DWARF number that FZ_FRAME_REGISTERS gives to the return address. */
#define FZ_FRAME_PC_REGISTER	16

/*
 * The x87 status bits that belong to a thread: the sticky flags IE DE ZE OE UE PE, and ES, which
 * is set while an unmasked exception waits to be raised.
 */
#define FZ_X87_FLAGS	0xbf

/*
 * A first frame enters fz_fiber_start this many bytes behind its beginning, which is the size of
 * endbr64.  Unwinders look up the return address minus one, which must lie in the function, too.
 */
#define FZ_START_SKIP	4

#endif
