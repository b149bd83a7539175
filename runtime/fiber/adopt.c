/* SPDX-License-Identifier: MIT */
#include "runtime/fiber/adopt.h"

#include <asm/errno.h>
#include <linux/futex.h>
#include <linux/sched.h>

#include "runtime/base/host.h"
#include "runtime/base/time.h"
#include "runtime/base/uapi.h"
#include "runtime/sched/cancel.h"
#include "runtime/sched/carrier.h"
#include "runtime/sched/park.h"

/* Exported by glibc 2.35 and newer. */
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

void fz_adopt_cut_rseq(void)
{
	/*
	 * glibc registers 32 bytes, whatever __rseq_size says; from 2.40 on it registers
	 * __rseq_size if that is more.
	 */
	const long first_size = 32;
	struct fz_uapi_rseq *area;
	long err;

	if (!&__rseq_offset || !&__rseq_size || __rseq_size == 0)
		return;
	area = (void *)(fz_tcb_get() + (uintptr_t)__rseq_offset);
	err = fz_syscall4(__NR_rseq, (long)area, first_size, FZ_UAPI_RSEQ_FLAG_UNREGISTER,
			  FZ_UAPI_RSEQ_SIG);
	if (err && (long)__rseq_size > first_size)
		fz_syscall4(__NR_rseq, (long)area, (long)FZ_ROUND_UP(__rseq_size, 32),
			    FZ_UAPI_RSEQ_FLAG_UNREGISTER, FZ_UAPI_RSEQ_SIG);
	/* This tells sched_getcpu() and allocators to do without rseq. */
	area->cpu_id = (uint32_t)FZ_UAPI_RSEQ_CPU_ID_REGISTRATION_FAILED;
}

void fz_adopt_cut_signals(uintptr_t tcb)
{
	const int setxid = 0x40;	/* glibc's bit of cancelhandling: SIGSETXID was sent */

	/*
	 * acq_rel: pairs with libc, which marks threads that do not exit, and counts the
	 * answers of the marked threads; libc's handler clears the bit on this thread.
	 */
	atomic_fetch_or_explicit(fz_tcb_cancelhandling(tcb), FZ_CANCEL_EXITING,
				 memory_order_acq_rel);
	while (atomic_load_explicit(fz_tcb_cancelhandling(tcb), memory_order_acquire) & setxid)
		fz_syscall0(__NR_sched_yield);
	/* relaxed: a sender that still uses the old tid finds no thread. */
	atomic_store_explicit(fz_tcb_tid(tcb), -1, memory_order_relaxed);
}

/* The list head that libc has given to the kernel for the calling thread, whose TCB is tcb. */
static void *robust_list(uintptr_t tcb)
{
	/* The list's distance from the TCB, in all threads; 0: not known.  relaxed: one word. */
	static _Atomic uintptr_t distance;
	uintptr_t known = atomic_load_explicit(&distance, memory_order_relaxed);
	void *list = NULL;
	size_t size;

	if (FZ_LIKELY(known))
		return (void *)(tcb + known);
	fz_syscall3(__NR_get_robust_list, 0, (long)&list, (long)&size);
	if (list)
		atomic_store_explicit(&distance, (uintptr_t)list - tcb, memory_order_relaxed);
	return list;
}

static void *adopted(void *arg)
{
	struct fz_fiber *self = fz_self();
	fz_context_body *body = (fz_context_body *)(uintptr_t)arg;
	const struct __kernel_timespec late = fz_timespec(300 * FZ_MSEC);
	const uintptr_t tcb = fz_tcb_get();

	/* The creator writes the other fields meanwhile. */
	self->thread.robust_list = robust_list(tcb);
	/* relaxed: fz_adopt() publishes it. */
	atomic_store_explicit(&self->thread.being_born, 1, memory_order_relaxed);
	fz_syscall1(__NR_set_tid_address, (long)&self->thread.being_born);
	fz_syscall2(__NR_set_robust_list, 0, 3 * sizeof(void *));
	fz_adopt_cut_rseq();
	fz_adopt_cut_signals(tcb);
	/* relaxed: fz_adopt() publishes it.  The thread may be cancelled already: clear this bit only. */
	atomic_fetch_and_explicit(fz_tcb_cancelhandling(tcb), ~FZ_CANCEL_EXITING,
				  memory_order_relaxed);
	if (FZ_FAULT(late_birth))
		fz_syscall2(__NR_nanosleep, (long)&late, 0);
	/*
	 * fz_adopt() saves the context, sets in_runtime, and ends this kernel thread; it returns when a carrier
	 * runs the context.
	 */
	fz_adopt(&self->sp, &self->in_runtime);
	body(self);
	return NULL;
}

int fz_adopt_context(void *stack, size_t size, fz_context_body *body,
		     struct fz_fiber **ret_fiber)
{
	unsigned long handle = 0;
	int err = FZ_FAULT(thread_fiber) ? -EAGAIN :
		fz_host.thread_create(stack, size, adopted, (void *)(uintptr_t)body, &handle);

	if (err)
		return err;
	*ret_fiber = fz_fiber_of_handle(handle);
	(*ret_fiber)->tcb = fz_tcb_of(*ret_fiber);
	return 0;
}

bool fz_adopt_ends(struct fz_fiber *self)
{
	if (FZ_LIKELY(self->kind != FZ_KIND_HELPER))
		return false;
	/* fz_adopt_end() learns from the kernel that this kernel thread is gone. */
	fz_syscall1(__NR_set_tid_address, (long)self->thread.arg);
	return true;
}

int fz_adopt_end(struct fz_fiber *f)
{
	/* A context that is entered looks at its carrier for what the switch has left: here, nothing. */
	static struct fz_carrier nothing_left;
	const unsigned long flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND |
				    CLONE_THREAD | CLONE_SYSVSEM;
	_Atomic uint32_t runs = 1;
	uint64_t mask;
	long tid;

	f->has_alt_stack = false;
	f->carrier = &nothing_left;
	f->thread.arg = (void *)&runs;
	/* relaxed: the new kernel thread sees what was before its birth. */
	atomic_store_explicit(&f->in_runtime, 1, memory_order_relaxed);
	f->kind = FZ_KIND_HELPER;
	mask = fz_host.threads_begin();
	tid = FZ_FAULT(thread_end) ? -EAGAIN : fz_clone_resume(flags, f->sp, f->tcb);
	if (tid < 0)
		f->kind = FZ_KIND_FIBER;
	else
		/* acquire: pairs with the kernel, which clears `runs` and wakes waiters of a shared futex. */
		while (atomic_load_explicit(&runs, memory_order_acquire))
			fz_syscall4(__NR_futex, (long)&runs, FUTEX_WAIT, 1, 0);
	fz_host.threads_end(mask);
	return tid < 0 ? (int)tid : 0;
}

void fz_adopt_await(struct fz_fiber *f, const struct __kernel_timespec *timeout)
{
	while (!fz_adopt_is_over(f))
		if (fz_sys_futex_wait(&f->in_runtime, 0, timeout) == -ETIMEDOUT)
			break;
}

void fz_adopt_await_thread(struct fz_fiber *f, const struct __kernel_timespec *timeout)
{
	/*
	 * When the kernel clears being_born, it wakes one waiter, by the key of a shared futex;
	 * hence not the private flag.
	 */
	fz_syscall4(__NR_futex, (long)&f->thread.being_born, FUTEX_WAIT, 1, (long)timeout);
}
