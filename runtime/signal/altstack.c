/* SPDX-License-Identifier: MIT */
#include "runtime/signal/altstack.h"

#include <asm/errno.h>
#include <linux/mman.h>

enum { ONSTACK = 1, DISABLE = 2, REPORT_STACK = 64 * 1024 };
#define AUTODISARM (1u << 31)

static _Atomic bool for_reports, never_for_reports;

static int kernel_alt_stack(const void *stack, void *ret_old)
{
	return (int)fz_syscall2(__NR_sigaltstack, (long)stack, (long)ret_old);
}

static void record(struct fz_fiber *f, const struct fz_alt_stack *now)
{
	f->sig.alt_stack = *now;
	f->sig.alt_stack.flags &= ~ONSTACK;
	f->has_alt_stack = now->size != 0;
	/*
	 * After exec the kernel has size 0 and flags 0, and a signal frame shows that.
	 * sigaltstack refuses those values, so record DISABLE.
	 */
	if (!f->has_alt_stack)
		f->sig.alt_stack.flags = DISABLE;
}

void fz_alt_stack_init(struct fz_fiber *f)
{
	f->sig.alt_stack = (struct fz_alt_stack){ .flags = DISABLE };
	f->has_alt_stack = false;
}

void fz_alt_stack_adopt(struct fz_fiber *f, struct fz_carrier *c)
{
	struct fz_alt_stack now;

	fz_alt_stack_init(f);
	if (kernel_alt_stack(NULL, &now) == 0)
		record(f, &now);
	c->alt_stack = f->sig.alt_stack;
}

void fz_alt_stack_load(struct fz_fiber *f, struct fz_carrier *c)
{
	const struct fz_alt_stack *want = &f->sig.alt_stack;

	/*
	 * A carrier's own context runs no handlers of the program, but signals do arrive there,
	 * while the fiber whose stack is loaded runs elsewhere: unload it.
	 */
	if (f->kind != FZ_KIND_FIBER) {
		static const struct fz_alt_stack none = { .flags = DISABLE };

		if (c->alt_stack.sp && c->alt_stack.sp != c->report_stack.sp &&
		    kernel_alt_stack(&none, NULL) == 0)
			c->alt_stack = none;
		return;
	}
	if (!f->has_alt_stack && c->report_stack.sp &&
	    atomic_load_explicit(&for_reports, memory_order_relaxed))
		want = &c->report_stack;
	if (want->sp == c->alt_stack.sp && want->size == c->alt_stack.size &&
	    want->flags == c->alt_stack.flags)
		return;
	if (kernel_alt_stack(want, NULL) == 0)
		c->alt_stack = *want;
}

int fz_alt_stack_change(struct fz_fiber *self, const void *stack, void *ret_old)
{
	struct fz_alt_stack now;
	int err;

	/*
	 * While a fiber without an alternate stack is in user code, the kernel may have the
	 * carrier's stack for reports.  Unload that one, or the program would get it as the old stack.
	 */
	if (!self->has_alt_stack && self->carrier->alt_stack.sp) {
		kernel_alt_stack(&self->sig.alt_stack, NULL);
		self->carrier->alt_stack = self->sig.alt_stack;
	}
	err = kernel_alt_stack(stack, ret_old);
	if (err == 0 && stack && kernel_alt_stack(NULL, &now) == 0) {
		record(self, &now);
		self->carrier->alt_stack = self->sig.alt_stack;
	}
	fz_alt_stack_load(self, self->carrier);
	return err;
}

void fz_alt_stack_handler_began(struct fz_fiber *self)
{
	struct fz_alt_stack now;

	if (!self->has_alt_stack || !((unsigned)self->sig.alt_stack.flags & AUTODISARM) ||
	    kernel_alt_stack(NULL, &now) != 0)
		return;
	record(self, &now);
	self->carrier->alt_stack = self->sig.alt_stack;
}

bool fz_alt_stack_leave_report(struct fz_fiber *self, struct fz_alt_stack *to_be_restored)
{
	const uintptr_t here = (uintptr_t)__builtin_frame_address(0);
	struct fz_carrier *c = self->carrier;

	if (FZ_LIKELY(here - (uintptr_t)c->report_stack.sp >= c->report_stack.size) ||
	    self->kind != FZ_KIND_FIBER)
		return false;
	c->alt_stack = (struct fz_alt_stack){ .flags = DISABLE };
	*to_be_restored = c->alt_stack;
	return true;
}

void fz_alt_stack_handler_ends(struct fz_fiber *self, struct fz_alt_stack *to_be_restored)
{
	struct fz_carrier *c = self->carrier;

	/*
	 * The fiber has no alternate stack: do not restore the stack for reports of a carrier
	 * that the fiber has left since.
	 */
	if (!self->has_alt_stack && c->report_stack.size) {
		fz_alt_stack_load(self, c);
		*to_be_restored = c->alt_stack;
		return;
	}
	record(self, to_be_restored);
	c->alt_stack = self->sig.alt_stack;
}

void fz_alt_stack_for_reports(bool on)
{
	if (!on)
		atomic_store_explicit(&never_for_reports, true, memory_order_relaxed);
	/* relaxed: each carrier sees the change at its next switch. */
	atomic_store_explicit(&for_reports,
			      !atomic_load_explicit(&never_for_reports, memory_order_relaxed),
			      memory_order_relaxed);
}

void fz_alt_stack_carrier_started(struct fz_carrier *c)
{
	long mem;

	c->alt_stack = (struct fz_alt_stack){ .flags = DISABLE };
	if (!atomic_load_explicit(&for_reports, memory_order_relaxed))
		return;
	mem = fz_sys_mmap(REPORT_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
	/* AUTODISARM lets a handler that runs on this stack unload it at its return (fz_alt_stack_leave_report). */
	if (!fz_sys_failed(mem))
		c->report_stack = (struct fz_alt_stack){ (void *)mem, (int)AUTODISARM,
							 REPORT_STACK };
}
