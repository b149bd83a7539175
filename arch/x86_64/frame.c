/* SPDX-License-Identifier: MIT */
/*
 * arch/x86_64/frame.c - make and read frames; choose the variant of fz_switch.
 */
#include "frame.h"

#include "arch/arch.h"

/* HWCAP2_FSGSBASE: the kernel has set CR4.FSGSBASE (Linux 5.9). */
#define HWCAP2_FSGSBASE_BIT 2UL

/* What lies at the saved stack pointer; frame.h draws it. */
struct frame {
	uint32_t mxcsr;
	uint16_t x87cw;
	uint16_t x87ex;
	uint64_t gs_base;
	uint64_t r15, r14, r13, r12, rbx, rbp;
	uint64_t pc;
};

_Static_assert(offsetof(struct frame, mxcsr) == FZ_FRAME_MXCSR &&
	       offsetof(struct frame, x87cw) == FZ_FRAME_X87CW &&
	       offsetof(struct frame, x87ex) == FZ_FRAME_X87EX &&
	       offsetof(struct frame, gs_base) == FZ_FRAME_GSBASE &&
	       offsetof(struct frame, r15) == FZ_FRAME_R15 &&
	       offsetof(struct frame, rbp) == FZ_FRAME_RBP &&
	       offsetof(struct frame, pc) == FZ_FRAME_PC &&
	       sizeof(struct frame) == FZ_FRAME_SIZE,
	       "struct frame is what switch.S pushes");
_Static_assert(sizeof(struct frame) + 32 <= FZ_FRAME_ROOM,
	       "a first frame fits, wherever stack_top is");

/* The variant that works everywhere, until fz_arch_init() chooses. */
fz_switch_fn *fz_switch = fz_switch_prctl;
void (*fz_switch_refused)(void);
unsigned char fz_cpu_fsgsbase;

void fz_arch_init(unsigned long hwcap2)
{
	fz_cpu_fsgsbase = !!(hwcap2 & HWCAP2_FSGSBASE_BIT);
	fz_switch = fz_cpu_fsgsbase ? fz_switch_fsgsbase : fz_switch_prctl;
}

void fz_frame_inherit(void *sp)
{
	struct frame *f = sp;
	uint16_t sw;

	__asm__ volatile("stmxcsr %0" : "=m"(f->mxcsr));
	__asm__ volatile("fnstcw %0" : "=m"(f->x87cw));
	__asm__ volatile("fnstsw %0" : "=a"(sw));
	f->x87ex = sw & FZ_X87_FLAGS;
	if (fz_cpu_fsgsbase)
		__asm__ volatile("rdgsbase %0" : "=r"(f->gs_base));
}

void *fz_frame_make(void *stack_top, void (*fn)(void *), void *arg)
{
	/*
	 * fz_fiber_start is entered with rsp at a multiple of 16, so that its call leaves fn with
	 * the alignment that the ABI promises.  The two words above the frame are zero for stack
	 * walkers that look for a return address there.
	 */
	uint64_t *top = (uint64_t *)((uintptr_t)stack_top & ~(uintptr_t)15) - 2;
	struct frame *f = (struct frame *)top - 1;

	top[0] = top[1] = 0;
	*f = (struct frame){
		.r12 = (uint64_t)fn,
		.r13 = (uint64_t)arg,
		.pc = (uint64_t)fz_fiber_start + FZ_START_SKIP,
	};
	fz_frame_inherit(f);
	return f;
}

uintptr_t fz_frame_pc(const void *sp)
{
	return ((const struct frame *)sp)->pc;
}

uintptr_t fz_frame_fp(const void *sp)
{
	return ((const struct frame *)sp)->rbp;
}

uintptr_t fz_frame_cfa(const void *sp)
{
	return (uintptr_t)((const struct frame *)sp + 1);
}
