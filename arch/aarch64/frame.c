/* SPDX-License-Identifier: MIT */
/*
 * arch/aarch64/frame.c - make and read frames.
 */
#include "frame.h"

#include "arch/arch.h"

/* What lies at the saved stack pointer; frame.h draws it. */
struct frame {
	uint64_t fpcr, fpsr;
	uint64_t d8_15[8];
	uint64_t x19, x20, x21_28[8];
	uint64_t fp, pc;
};

_Static_assert(offsetof(struct frame, fpcr) == FZ_FRAME_FPCR &&
	       offsetof(struct frame, fpsr) == FZ_FRAME_FPSR &&
	       offsetof(struct frame, d8_15) == FZ_FRAME_D8 &&
	       offsetof(struct frame, x19) == FZ_FRAME_X19 &&
	       offsetof(struct frame, fp) == FZ_FRAME_FP &&
	       offsetof(struct frame, pc) == FZ_FRAME_PC &&
	       sizeof(struct frame) == FZ_FRAME_SIZE,
	       "struct frame is what switch.S stores");
_Static_assert(sizeof(struct frame) + 32 <= FZ_FRAME_ROOM,
	       "a first frame fits, wherever stack_top is");

fz_switch_fn *fz_switch = fz_switch_tpidr;

void (*fz_switch_refused)(void);

void fz_arch_init(unsigned long hwcap2)
{
	/* tpidr_el0 belongs to user space on every aarch64 CPU. */
	(void)hwcap2;
}

void fz_frame_inherit(void *sp)
{
	struct frame *f = sp;

	__asm__ volatile("mrs %0, fpcr" : "=r"(f->fpcr));
	__asm__ volatile("mrs %0, fpsr" : "=r"(f->fpsr));
}

void *fz_frame_make(void *stack_top, void (*fn)(void *), void *arg)
{
	/* Two zero words above the frame, like the frame record of an outermost frame. */
	uint64_t *top = (uint64_t *)((uintptr_t)stack_top & ~(uintptr_t)15) - 2;
	struct frame *f = (struct frame *)top - 1;

	top[0] = top[1] = 0;
	*f = (struct frame){
		.x19 = (uint64_t)fn,
		.x20 = (uint64_t)arg,
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
	return ((const struct frame *)sp)->fp;
}

uintptr_t fz_frame_cfa(const void *sp)
{
	return (uintptr_t)((const struct frame *)sp + 1);
}
