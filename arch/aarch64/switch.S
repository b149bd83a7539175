/* SPDX-License-Identifier: MIT */
/*
 * arch/aarch64/switch.S - leave one stack, continue on another.
 *
 *	void fz_switch_tpidr(void **save_sp, void *load_sp, uintptr_t tcb);
 *	                     x0              x1             x2
 *	void fz_adopt(void **save_sp, _Atomic uint32_t *flag);
 *	              x0              x1
 *	long fz_clone_resume(unsigned long flags, void *load_sp, uintptr_t tcb);
 *	                     x0                   x1             x2
 *
 * frame.h draws the frame.  Each function saves one frame and goes on at a frame (another one or
 * its own) with the same layout.  So the CFI stays right across the change of sp, and a signal or
 * a debugger may stop at any instruction here.
 *
 * Not saved: the caller-saved registers, which the C caller has spilled (of v8-v15 the ABI keeps
 * the low halves only), and the kernel's signal mask, which runtime/sched/sched.c changes only
 * when it differs.
 */
#include "frame.h"

#define NR_exit			93
#define NR_futex		98
#define NR_clone		220
#define CLONE_SETTLS		0x00080000
#define FUTEX_WAKE_PRIVATE	129
#define INT_MAX			0x7fffffff

	/*
	 * With no_caller the CFI must hold from the first byte on: a made frame returns behind the
	 * first instruction, and unwinders look up the address one byte before.
	 */
	.macro	FUNC name, no_caller=0
	.p2align 4
	.globl	\name
	.hidden	\name
	.type	\name, %function
\name:
	.cfi_startproc
	.if \no_caller
	.cfi_undefined x30
	.endif
	hint	#34		/* bti c, for old assemblers */
	.endm

	.macro	ENDFUNC name
	.cfi_endproc
	.size	\name, . - \name
	.endm

	/* Leaves fpcr in x9 and fpsr in x10, for RESTORE_FRAME. */
	.macro	SAVE_FRAME
	sub	sp, sp, #FZ_FRAME_SIZE
	.cfi_adjust_cfa_offset FZ_FRAME_SIZE
	stp	x29, x30, [sp, #FZ_FRAME_FP]
	.cfi_rel_offset x29, FZ_FRAME_FP
	.cfi_rel_offset x30, FZ_FRAME_PC
	stp	x19, x20, [sp, #FZ_FRAME_X19]
	.cfi_rel_offset x19, FZ_FRAME_X19
	.cfi_rel_offset x20, FZ_FRAME_X19 + 0x08
	stp	x21, x22, [sp, #FZ_FRAME_X19 + 0x10]
	.cfi_rel_offset x21, FZ_FRAME_X19 + 0x10
	.cfi_rel_offset x22, FZ_FRAME_X19 + 0x18
	stp	x23, x24, [sp, #FZ_FRAME_X19 + 0x20]
	.cfi_rel_offset x23, FZ_FRAME_X19 + 0x20
	.cfi_rel_offset x24, FZ_FRAME_X19 + 0x28
	stp	x25, x26, [sp, #FZ_FRAME_X19 + 0x30]
	.cfi_rel_offset x25, FZ_FRAME_X19 + 0x30
	.cfi_rel_offset x26, FZ_FRAME_X19 + 0x38
	stp	x27, x28, [sp, #FZ_FRAME_X19 + 0x40]
	.cfi_rel_offset x27, FZ_FRAME_X19 + 0x40
	.cfi_rel_offset x28, FZ_FRAME_X19 + 0x48
	stp	d8, d9, [sp, #FZ_FRAME_D8]
	.cfi_rel_offset d8, FZ_FRAME_D8
	.cfi_rel_offset d9, FZ_FRAME_D8 + 0x08
	stp	d10, d11, [sp, #FZ_FRAME_D8 + 0x10]
	.cfi_rel_offset d10, FZ_FRAME_D8 + 0x10
	.cfi_rel_offset d11, FZ_FRAME_D8 + 0x18
	stp	d12, d13, [sp, #FZ_FRAME_D8 + 0x20]
	.cfi_rel_offset d12, FZ_FRAME_D8 + 0x20
	.cfi_rel_offset d13, FZ_FRAME_D8 + 0x28
	stp	d14, d15, [sp, #FZ_FRAME_D8 + 0x30]
	.cfi_rel_offset d14, FZ_FRAME_D8 + 0x30
	.cfi_rel_offset d15, FZ_FRAME_D8 + 0x38
	mrs	x9, fpcr
	mrs	x10, fpsr
	stp	x9, x10, [sp, #FZ_FRAME_FPCR]
	.endm

	/*
	 * Writing fpcr drains the floating-point pipeline on many CPUs, and the value nearly
	 * always stays: write it only if it differs.  Leaves x0 alone: fz_clone_resume returns it.
	 */
	.macro	RESTORE_FRAME
	ldp	x11, x12, [sp, #FZ_FRAME_FPCR]
	cmp	x11, x9
	b.eq	.Lfpcr_done\@
	msr	fpcr, x11
.Lfpcr_done\@:
	cmp	x12, x10
	b.eq	.Lfpsr_done\@
	msr	fpsr, x12
.Lfpsr_done\@:
	ldp	d8, d9, [sp, #FZ_FRAME_D8]
	.cfi_restore d8
	.cfi_restore d9
	ldp	d10, d11, [sp, #FZ_FRAME_D8 + 0x10]
	.cfi_restore d10
	.cfi_restore d11
	ldp	d12, d13, [sp, #FZ_FRAME_D8 + 0x20]
	.cfi_restore d12
	.cfi_restore d13
	ldp	d14, d15, [sp, #FZ_FRAME_D8 + 0x30]
	.cfi_restore d14
	.cfi_restore d15
	ldp	x19, x20, [sp, #FZ_FRAME_X19]
	.cfi_restore x19
	.cfi_restore x20
	ldp	x21, x22, [sp, #FZ_FRAME_X19 + 0x10]
	.cfi_restore x21
	.cfi_restore x22
	ldp	x23, x24, [sp, #FZ_FRAME_X19 + 0x20]
	.cfi_restore x23
	.cfi_restore x24
	ldp	x25, x26, [sp, #FZ_FRAME_X19 + 0x30]
	.cfi_restore x25
	.cfi_restore x26
	ldp	x27, x28, [sp, #FZ_FRAME_X19 + 0x40]
	.cfi_restore x27
	.cfi_restore x28
	ldp	x29, x30, [sp, #FZ_FRAME_FP]
	.cfi_restore x29
	.cfi_restore x30
	add	sp, sp, #FZ_FRAME_SIZE
	.cfi_adjust_cfa_offset -FZ_FRAME_SIZE
	ret
	.endm

	.text

FUNC fz_switch_tpidr
	SAVE_FRAME
	mov	x11, sp
	str	x11, [x0]
	mov	sp, x1
	msr	tpidr_el0, x2
	RESTORE_FRAME
ENDFUNC fz_switch_tpidr

FUNC fz_adopt
	SAVE_FRAME
	mov	x11, sp
	str	x11, [x0]
	mov	w12, #1
	stlr	w12, [x1]
	/* From here on use registers only: stack and TCB have a new owner. */
	mov	x0, x1
	mov	x1, #FUTEX_WAKE_PRIVATE
	mov	w2, #INT_MAX
	mov	x8, #NR_futex
	svc	#0
	mov	x0, #0
	mov	x8, #NR_exit
	svc	#0
	brk	#1
ENDFUNC fz_adopt

/*
 * The parent saves a frame, too, though it only returns.  So parent and child leave by one path, and
 * the CFI is right for both of them at every instruction.
 */
FUNC fz_clone_resume
	SAVE_FRAME
	orr	x0, x0, #CLONE_SETTLS
	mov	x3, x2		/* tls; x1 already is the child's stack pointer */
	mov	x2, #0
	mov	x4, #0
	mov	x8, #NR_clone
	svc	#0
	RESTORE_FRAME
ENDFUNC fz_clone_resume

/*
 * The outermost function of a context: fn is in x19, its argument in x20.  It has no caller, and the CFI
 * says so; otherwise unwinders would walk off the top of the stack.  It is entered behind the bti, see
 * FZ_START_SKIP.
 */
FUNC fz_fiber_start no_caller=1
	mov	x29, #0		/* ends frame-pointer walks too */
	mov	x30, #0
	mov	x0, x20
	blr	x19
	brk	#1		/* fn never returns: it exits the fiber */
ENDFUNC fz_fiber_start

/*
 * Every function above begins with bti.  Declare that: one object file without this declaration takes
 * the protection (BTI) from the whole library.  The words: name size, value size, type
 * NT_GNU_PROPERTY_TYPE_0; GNU_PROPERTY_AARCH64_FEATURE_1_AND, its size, FEATURE_1_BTI, padding.
 */
	.section .note.gnu.property, "a", %note
	.p2align 3
	.word	4, 16, 5
	.asciz	"GNU"
	.word	0xc0000000, 4, 1, 0

	.section .note.GNU-stack, "", %progbits
