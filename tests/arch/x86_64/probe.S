/* SPDX-License-Identifier: MIT */
/*
 * tests/arch/x86_64/probe.S - fill and compare callee-saved registers.
 */
	.text

	.macro	PUSH reg
	pushq	\reg
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset \reg, 0
	.endm

	.macro	POP reg
	popq	\reg
	.cfi_adjust_cfa_offset -8
	.cfi_restore \reg
	.endm

	.macro	COMPARE reg, index
	xorl	%ecx, %ecx
	cmpq	8 * \index(%rdx), \reg
	setne	%cl
	shlq	$\index, %rcx
	orq	%rcx, %rax
	.endm

/* rdi fn, rsi a, rdx b, rcx c, r8 pattern: rbx rbp r12 r13 r14 r15 */
	.globl	probe_call
	.type	probe_call, @function
probe_call:
	.cfi_startproc
	PUSH	%rbp
	PUSH	%rbx
	PUSH	%r12
	PUSH	%r13
	PUSH	%r14
	PUSH	%r15
	pushq	%r8
	.cfi_adjust_cfa_offset 8
	movq	%rdi, %rax
	movq	%rsi, %rdi
	movq	%rdx, %rsi
	movq	%rcx, %rdx
	movq	0(%r8), %rbx
	movq	8(%r8), %rbp
	movq	16(%r8), %r12
	movq	24(%r8), %r13
	movq	32(%r8), %r14
	movq	40(%r8), %r15
	callq	*%rax
	movq	(%rsp), %rdx
	xorl	%eax, %eax
	COMPARE	%rbx, 0
	COMPARE	%rbp, 1
	COMPARE	%r12, 2
	COMPARE	%r13, 3
	COMPARE	%r14, 4
	COMPARE	%r15, 5
	addq	$8, %rsp
	.cfi_adjust_cfa_offset -8
	POP	%r15
	POP	%r14
	POP	%r13
	POP	%r12
	POP	%rbx
	POP	%rbp
	ret
	.cfi_endproc
	.size	probe_call, . - probe_call

	.globl	probe_entry
	.type	probe_entry, @function
probe_entry:
	.cfi_startproc
	movq	%rsp, (%rdi)
	jmp	*8(%rdi)
	.cfi_endproc
	.size	probe_entry, . - probe_entry

	.section .note.GNU-stack, "", @progbits
