/* SPDX-License-Identifier: MIT */
/*
 * runtime/sched/carrier_thread.c - the kernel threads of carriers: how they are made, and how
 * they end.
 */
#include "runtime/sched/sched_internal.h"

#include <asm/errno.h>

#include "runtime/base/count.h"
#include "runtime/base/host.h"
#include "runtime/base/lock.h"
#include "runtime/base/time.h"
#include "runtime/fiber/adopt.h"
#include "runtime/fiber/stack.h"
#include "runtime/sched/carrier.h"

enum { CONTEXT_STACK = 256 * 1024 };

/*
 * Carriers whose kernel thread has ended or is about to end.  The next carriers use their
 * records and stacks.
 */
static struct {
	struct fz_lock lock;
	struct fz_carrier *first;	/* guarded by lock */
	/* Futex; while it is not 0, no carrier begins to end.  Written with the lock held. */
	_Atomic uint32_t held;
	_Atomic uint32_t to_come;	/* futex; carriers that were told to end, and have not begun */
} ended = { .lock = FZ_LOCK(FZ_RANK_CARRIERS) };

static _Atomic uint32_t made;	/* records of carriers with a number */

void fz_carrier_is_to_end(struct fz_carrier *c)
{
	c->ends = true;
	/* The processor was given up when the fiber was wired. */
	c->processor = NULL;
	/* relaxed: published with the end of the fiber. */
	atomic_store_explicit(&c->in_kernel, 1, memory_order_relaxed);
}

/* The carrier has no request in flight and no processor, so that it may end. */
static void end(struct fz_carrier *c)
{
	uint32_t held;
	bool told;

	atomic_store_explicit(&c->in_kernel, 1, memory_order_relaxed);
	/* libc still uses the stack.  It may be used again when the kernel has cleared in_kernel. */
	told = !fz_sys_failed(fz_syscall1(__NR_set_tid_address, (long)&c->in_kernel));
	fz_lock_acquire(&ended.lock);
	/* relaxed: ended.lock orders it. */
	while ((held = atomic_load_explicit(&ended.held, memory_order_relaxed))) {
		fz_lock_release(&ended.lock);
		fz_sys_futex_wait(&ended.held, held, NULL);
		fz_lock_acquire(&ended.lock);
	}
	if (told) {
		c->idle_next = ended.first;
		ended.first = c;
	} else {
		/*
		 * A filter, perhaps one that the wired thread installed, forbids set_tid_address:
		 * nobody learns when the stack is free, so lose it.
		 */
		atomic_store_explicit(&c->in_kernel, 0, memory_order_relaxed);
	}
	fz_carrier_ended(c);
	/* release: pairs with fz_carrier_await_ends(), which then finds c in the list. */
	atomic_fetch_sub_explicit(&ended.to_come, 1, memory_order_release);
	fz_lock_release(&ended.lock);
	fz_sys_futex_wake(&ended.to_come, INT32_MAX);
}

static void change_held(uint32_t by)
{
	uint32_t nested = fz_bar_handlers();

	fz_lock_acquire(&ended.lock);
	atomic_fetch_add_explicit(&ended.held, by, memory_order_relaxed);
	fz_lock_release(&ended.lock);
	fz_allow_handlers(nested);
}

/* A carrier whose kernel thread is on its way out through libc, or NULL. */
static struct fz_carrier *find_leaving(void)
{
	uint32_t nested = fz_bar_handlers();
	struct fz_carrier *c;

	fz_lock_acquire(&ended.lock);
	for (c = ended.first; c; c = c->idle_next)
		/* acquire: pairs with the kernel, which clears in_kernel. */
		if (atomic_load_explicit(&c->in_kernel, memory_order_acquire))
			break;
	fz_lock_release(&ended.lock);
	fz_allow_handlers(nested);
	return c;
}

static void await_leaving(void)
{
	/*
	 * The kernel wakes only one waiter of in_kernel, hence the timeout; and it wakes the waiter
	 * of a shared futex, hence FUTEX_WAIT without the private flag.
	 */
	const struct __kernel_timespec a_moment = fz_timespec(FZ_MSEC);
	const int wait = 0;
	struct fz_carrier *c;

	while ((c = find_leaving()))
		fz_syscall4(__NR_futex, (long)&c->in_kernel, wait, 1, (long)&a_moment);
}

void fz_carrier_hold_ends(void)
{
	change_held(1);
	await_leaving();
}

void fz_carrier_ends_to_come(uint32_t count)
{
	/* relaxed: each of them is told after this. */
	atomic_fetch_add_explicit(&ended.to_come, count, memory_order_relaxed);
}

void fz_carrier_await_ends(void)
{
	uint32_t count;

	/* acquire: pairs with end(). */
	while ((count = atomic_load_explicit(&ended.to_come, memory_order_acquire)))
		fz_sys_futex_wait(&ended.to_come, count, NULL);
	await_leaving();
}

void fz_carrier_end_all(void)
{
	uint32_t nested = fz_bar_handlers();

	fz_carrier_make_room();
	fz_allow_handlers(nested);
}

void fz_carrier_let_end(void)
{
	change_held((uint32_t)-1);
	fz_sys_futex_wake(&ended.held, INT32_MAX);
}

/* The first kernel thread of the process keeps its name: ps and pkill find the process by it. */
static void name(struct fz_carrier *c)
{
	char text[16] = "fz/", digits[10];
	size_t n = 0, length = 3;
	uint32_t rest;

	/* relaxed: only the number matters. */
	if (!c->number)
		c->number = atomic_fetch_add_explicit(&made, 1, memory_order_relaxed) + 1;
	rest = c->number - 1;
	do
		digits[n++] = (char)('0' + rest % 10);
	while (rest /= 10);
	while (n)
		text[length++] = digits[--n];
	if (fz_host.name_kernel_thread)
		fz_host.name_kernel_thread(text);
}

static void *carrier_thread(void *arg)
{
	struct fz_carrier_birth *birth = arg;
	struct fz_fiber *self = fz_self();
	struct fz_carrier *c = birth->again;

	self->tcb = fz_tcb_get();
	/* relaxed: a carrier's own context never leaves the runtime. */
	atomic_store_explicit(&self->in_runtime, 1, memory_order_relaxed);
	fz_adopt_cut_rseq();
	if (c)
		fz_carrier_begin_again(c, self);
	else
		c = fz_carrier_new(self, self->tcb);
	if (c) {
		fz_count_total(FZ_TOTAL_kernel_threads, 1);
		c->stack = birth->stack;
		c->stack_size = birth->stack_size;
		name(c);
		fz_carrier_push_idle(c);
	}
	/* release: pairs with the acquire in fz_carrier_end_start(). */
	atomic_store_explicit(&birth->answer, c ? 1 : 2, memory_order_release);
	fz_sys_futex_wake(&birth->answer, 1);
	if (!c)
		return NULL;
	if (fz_carrier_await(c))
		fz_sched_run_carrier(c);
	end(c);
	return NULL;
}

/* Take the record of a carrier whose kernel thread is gone, or NULL. */
static struct fz_carrier *take_ended(void)
{
	struct fz_carrier **link, *c;

	fz_lock_acquire(&ended.lock);
	for (link = &ended.first; (c = *link); link = &c->idle_next)
		/* acquire: pairs with the kernel, which clears in_kernel. */
		if (!atomic_load_explicit(&c->in_kernel, memory_order_acquire)) {
			*link = c->idle_next;
			break;
		}
	fz_lock_release(&ended.lock);
	return c;
}

int fz_carrier_begin_start(struct fz_carrier_birth *birth)
{
	uint32_t nested = fz_bar_handlers();
	int err = 0;

	*birth = (struct fz_carrier_birth){ .again = take_ended() };

	if (birth->again) {
		birth->stack = birth->again->stack;
		birth->stack_size = birth->again->stack_size;
	} else {
		err = fz_stack_alloc(CONTEXT_STACK, 4096, &birth->stack, &birth->stack_size);
	}
	fz_allow_handlers(nested);
	if (!err)
		err = FZ_FAULT(thread_carrier) ? -EAGAIN :
			fz_host.thread_create(birth->stack, birth->stack_size, carrier_thread, birth,
					      NULL);
	if (err && birth->stack) {
		nested = fz_bar_handlers();
		if (birth->again) {
			fz_lock_acquire(&ended.lock);
			birth->again->idle_next = ended.first;
			ended.first = birth->again;
			fz_lock_release(&ended.lock);
		} else {
			fz_stack_free(birth->stack, CONTEXT_STACK, 4096);
		}
		fz_allow_handlers(nested);
	}
	return err;
}

int fz_carrier_end_start(struct fz_carrier_birth *birth)
{
	uint32_t got;

	/* acquire: pairs with carrier_thread(). */
	while (!(got = atomic_load_explicit(&birth->answer, memory_order_acquire)))
		fz_sys_futex_wait(&birth->answer, 0, NULL);
	return got == 1 ? 0 : -ENOMEM;
}

int fz_carrier_start(void)
{
	struct fz_carrier_birth birth;
	int err = fz_carrier_begin_start(&birth);

	return err ? err : fz_carrier_end_start(&birth);
}

void fz_carrier_thread_after_fork(void)
{
	__builtin_memset(&ended, 0, sizeof(ended));
	fz_lock_init(&ended.lock, FZ_RANK_CARRIERS);
	atomic_store_explicit(&made, 0, memory_order_relaxed);
}
