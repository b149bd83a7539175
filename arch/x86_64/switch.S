/* SPDX-License-Identifier: MIT */
/*
 * arch/x86_64/switch.S - leave one stack, continue on another.
 *
 *	void fz_switch_*(void **save_sp, void *load_sp, uintptr_t tcb);
 *	                 rdi             rsi            rdx
 *	void fz_adopt(void **save_sp, _Atomic uint32_t *flag);
 *	              rdi             rsi
 *	long fz_clone_resume(unsigned long flags, void *load_sp, uintptr_t tcb);
 *	                     rdi                  rsi            rdx
 *
 * frame.h draws the frame.  Each function saves one frame and goes on at a frame (another one or
 * its own) with the same layout.  So the CFI stays right across the change of rsp, and a signal or
 * a debugger may stop at any instruction here.
 *
 * Not saved: the caller-saved registers, which the C caller has spilled, and the kernel's signal
 * mask, which runtime/sched/sched.c changes only when it differs.
 *
 * This file deliberately has no .note.gnu.property that declares shadow stack support: without it
 * the loader does not turn shadow stacks on.  With a shadow stack, a change of rsp alone would
 * fault.
 */
#include "frame.h"

#define NR_clone		56
#define NR_exit			60
#define NR_arch_prctl		158
#define NR_futex		202
#define ARCH_SET_FS		0x1002
#define CLONE_SETTLS		0x00080000
#define FUTEX_WAKE_PRIVATE	129
#define INT_MAX			0x7fffffff

/* What fnstenv stores (28 bytes) and where in it. */
#define X87ENV_SIZE		32
#define X87ENV_CW		0
#define X87ENV_SW		4

	/*
	 * With no_caller the CFI must hold from the first byte on: a made frame returns behind the
	 * first instruction, and unwinders look up the address one byte before.
	 */
	.macro	FUNC name, no_caller=0
	.p2align 4
	.globl	\name
	.hidden	\name
	.type	\name, @function
\name:
	.cfi_startproc
	.if \no_caller
	.cfi_undefined %rip
	.endif
	endbr64
	.endm

	.macro	ENDFUNC name
	.cfi_endproc
	.size	\name, . - \name
	.endm

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

	/* Leaves the x87 flags in r9d, for RESTORE_FRAME.  Clobbers rax. */
	.macro	SAVE_FRAME
	PUSH	%rbp
	PUSH	%rbx
	PUSH	%r12
	PUSH	%r13
	PUSH	%r14
	PUSH	%r15
	subq	$FZ_FRAME_R15, %rsp
	.cfi_adjust_cfa_offset FZ_FRAME_R15
	stmxcsr	FZ_FRAME_MXCSR(%rsp)
	fnstcw	FZ_FRAME_X87CW(%rsp)
	fnstsw	%ax
	andl	$FZ_X87_FLAGS, %eax
	movw	%ax, FZ_FRAME_X87EX(%rsp)
	movl	%eax, %r9d
	.endm

	/*
	 * The x87 flags can be loaded only with the whole environment, which is slow: load it only
	 * if the flags differ.  That is rare, since only long double arithmetic sets them.  The
	 * flags must not be left out: if the control word unmasks an exception whose flag another
	 * context has left behind, the next x87 instruction raises SIGFPE here.
	 *
	 * The environment goes below rsp, into the red zone, where the kernel puts no signal
	 * frame.  Leaves rax alone: fz_clone_resume returns it.
	 */
	.macro	RESTORE_FRAME
	ldmxcsr	FZ_FRAME_MXCSR(%rsp)
	cmpw	FZ_FRAME_X87EX(%rsp), %r9w
	jne	.Lx87_flags\@
	fldcw	FZ_FRAME_X87CW(%rsp)
.Lx87_done\@:
	.cfi_remember_state
	addq	$FZ_FRAME_R15, %rsp
	.cfi_adjust_cfa_offset -FZ_FRAME_R15
	POP	%r15
	POP	%r14
	POP	%r13
	POP	%r12
	POP	%rbx
	POP	%rbp
	ret
	.cfi_restore_state
.Lx87_flags\@:
	fnstenv	-X87ENV_SIZE(%rsp)
	movzwl	FZ_FRAME_X87CW(%rsp), %ecx
	movw	%cx, X87ENV_CW - X87ENV_SIZE(%rsp)
	movzwl	X87ENV_SW - X87ENV_SIZE(%rsp), %ecx
	andl	$~FZ_X87_FLAGS, %ecx
	orw	FZ_FRAME_X87EX(%rsp), %cx
	movw	%cx, X87ENV_SW - X87ENV_SIZE(%rsp)
	fldenv	-X87ENV_SIZE(%rsp)
	jmp	.Lx87_done\@
	.endm

	.text

/*
 * The gs base belongs to the program, which can set it by an instruction.  Reading it costs about
 * 5 cycles, writing it about 100, so it is written only if the two contexts differ.
 */
FUNC fz_switch_fsgsbase
	SAVE_FRAME
	rdgsbase %rax
	movq	%rax, FZ_FRAME_GSBASE(%rsp)
	movq	%rsp, (%rdi)
	movq	%rsi, %rsp
	wrfsbase %rdx
	movq	FZ_FRAME_GSBASE(%rsp), %rcx
	cmpq	%rcx, %rax
	jne	2f
1:	RESTORE_FRAME
2:	wrgsbase %rcx
	jmp	1b
ENDFUNC fz_switch_fsgsbase

FUNC fz_switch_prctl
	SAVE_FRAME
	movq	%rsp, (%rdi)
	movq	%rsi, %rsp
	/* The system call clobbers rax, rcx and r11; RESTORE_FRAME does not need their values. */
	movl	$ARCH_SET_FS, %edi
	movq	%rdx, %rsi
	movl	$NR_arch_prctl, %eax
	syscall
	testl	%eax, %eax
	jz	1f
	/* A filter forbids the call, or tcb is no address: never run with another context's TLS. */
	movq	fz_switch_refused(%rip), %rax
	testq	%rax, %rax
	jz	2f
	andq	$-16, %rsp
	call	*%rax
2:	ud2
1:	RESTORE_FRAME
ENDFUNC fz_switch_prctl

FUNC fz_adopt
	SAVE_FRAME
	xorl	%eax, %eax
	cmpb	$0, fz_cpu_fsgsbase(%rip)
	je	1f
	rdgsbase %rax
1:	movq	%rax, FZ_FRAME_GSBASE(%rsp)
	movq	%rsp, (%rdi)
	movl	$1, (%rsi)	/* release: x86 does not reorder stores */
	/* From here on use registers only: stack and TCB have a new owner. */
	movq	%rsi, %rdi
	movl	$FUTEX_WAKE_PRIVATE, %esi
	movl	$INT_MAX, %edx
	movl	$NR_futex, %eax
	syscall
	xorl	%edi, %edi
	movl	$NR_exit, %eax
	syscall
	ud2
ENDFUNC fz_adopt

/*
 * The parent saves a frame, too, though it only returns.  So parent and child leave by one path, and
 * the CFI is right for both of them at every instruction.
 */
FUNC fz_clone_resume
	SAVE_FRAME
	orq	$CLONE_SETTLS, %rdi
	movq	%rdx, %r8	/* tls; rsi already is the child's stack pointer */
	xorl	%edx, %edx
	xorl	%r10d, %r10d
	movl	$NR_clone, %eax
	syscall
	RESTORE_FRAME
ENDFUNC fz_clone_resume

/*
 * The outermost function of a context: fn is in r12, its argument in r13.  It has no caller, and the CFI
 * says so; otherwise unwinders would walk off the top of the stack.  It is entered behind the endbr64,
 * see FZ_START_SKIP.
 */
FUNC fz_fiber_start no_caller=1
	xorl	%ebp, %ebp	/* ends frame-pointer walks too */
	movq	%r13, %rdi
	callq	*%r12
	ud2			/* fn never returns: it exits the fiber */
ENDFUNC fz_fiber_start

	.section .note.GNU-stack, "", @progbits
