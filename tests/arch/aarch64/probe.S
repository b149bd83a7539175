/* SPDX-License-Identifier: MIT */
/*
 * tests/arch/aarch64/probe.S - fill and compare callee-saved registers.
 */
	.text

	.macro	COMPARE reg, index
	ldr	x12, [x10, #8 * \index]
	cmp	\reg, x12
	cset	x12, ne
	orr	x0, x0, x12, lsl #\index
	.endm

	.macro	COMPARE_FP reg, index
	fmov	x11, \reg
	COMPARE	x11, \index
	.endm

/* x0 fn, x1 a, x2 b, x3 c, x4 pattern: x19 ... x29, d8 ... d15 */
	.globl	probe_call
	.type	probe_call, %function
probe_call:
	.cfi_startproc
	hint	#34
	sub	sp, sp, #176
	.cfi_adjust_cfa_offset 176
	stp	x29, x30, [sp]
	.cfi_rel_offset x29, 0
	.cfi_rel_offset x30, 8
	stp	x19, x20, [sp, #16]
	.cfi_rel_offset x19, 16
	.cfi_rel_offset x20, 24
	stp	x21, x22, [sp, #32]
	.cfi_rel_offset x21, 32
	.cfi_rel_offset x22, 40
	stp	x23, x24, [sp, #48]
	.cfi_rel_offset x23, 48
	.cfi_rel_offset x24, 56
	stp	x25, x26, [sp, #64]
	.cfi_rel_offset x25, 64
	.cfi_rel_offset x26, 72
	stp	x27, x28, [sp, #80]
	.cfi_rel_offset x27, 80
	.cfi_rel_offset x28, 88
	stp	d8, d9, [sp, #96]
	.cfi_rel_offset d8, 96
	.cfi_rel_offset d9, 104
	stp	d10, d11, [sp, #112]
	.cfi_rel_offset d10, 112
	.cfi_rel_offset d11, 120
	stp	d12, d13, [sp, #128]
	.cfi_rel_offset d12, 128
	.cfi_rel_offset d13, 136
	stp	d14, d15, [sp, #144]
	.cfi_rel_offset d14, 144
	.cfi_rel_offset d15, 152
	str	x4, [sp, #160]
	mov	x9, x0
	mov	x10, x4
	mov	x0, x1
	mov	x1, x2
	mov	x2, x3
	ldp	x19, x20, [x10]
	ldp	x21, x22, [x10, #16]
	ldp	x23, x24, [x10, #32]
	ldp	x25, x26, [x10, #48]
	ldp	x27, x28, [x10, #64]
	ldr	x29, [x10, #80]
	ldp	d8, d9, [x10, #88]
	ldp	d10, d11, [x10, #104]
	ldp	d12, d13, [x10, #120]
	ldp	d14, d15, [x10, #136]
	blr	x9
	ldr	x10, [sp, #160]
	mov	x0, #0
	COMPARE	x19, 0
	COMPARE	x20, 1
	COMPARE	x21, 2
	COMPARE	x22, 3
	COMPARE	x23, 4
	COMPARE	x24, 5
	COMPARE	x25, 6
	COMPARE	x26, 7
	COMPARE	x27, 8
	COMPARE	x28, 9
	COMPARE	x29, 10
	COMPARE_FP d8, 11
	COMPARE_FP d9, 12
	COMPARE_FP d10, 13
	COMPARE_FP d11, 14
	COMPARE_FP d12, 15
	COMPARE_FP d13, 16
	COMPARE_FP d14, 17
	COMPARE_FP d15, 18
	ldp	d14, d15, [sp, #144]
	ldp	d12, d13, [sp, #128]
	ldp	d10, d11, [sp, #112]
	ldp	d8, d9, [sp, #96]
	ldp	x27, x28, [sp, #80]
	ldp	x25, x26, [sp, #64]
	ldp	x23, x24, [sp, #48]
	ldp	x21, x22, [sp, #32]
	ldp	x19, x20, [sp, #16]
	ldp	x29, x30, [sp]
	add	sp, sp, #176
	ret
	.cfi_endproc
	.size	probe_call, . - probe_call

	.globl	probe_entry
	.type	probe_entry, %function
probe_entry:
	.cfi_startproc
	hint	#34
	mov	x9, sp
	str	x9, [x0]
	ldr	x16, [x0, #8]
	br	x16
	.cfi_endproc
	.size	probe_entry, . - probe_entry

	.section .note.GNU-stack, "", %progbits
