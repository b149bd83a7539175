/* SPDX-License-Identifier: MIT */
#include "runtime/carrier.h"

#include <asm/errno.h>
#include <linux/mman.h>

#include "runtime/adopt.h"
#include "runtime/altstack.h"
#include "runtime/host.h"
#include "runtime/sched.h"
#include "runtime/signal.h"
#include "runtime/stack.h"

enum { CONTEXT_STACK = 256 * 1024 };

static struct {
	struct fz_lock lock;		/* guards idle and the spare memory */
	struct fz_carrier *idle;
	char *spare, *spare_end;
	_Atomic uint32_t count;
	_Atomic(struct fz_carrier *) all;
} carriers;

static struct fz_carrier *alloc(void)
{
	enum { CHUNK = 64 * 1024 };
	struct fz_carrier *c = NULL;

	fz_lock_acquire(&carriers.lock);
	if ((size_t)(carriers.spare_end - carriers.spare) < sizeof(*c)) {
		long mem = fz_sys_mmap(CHUNK, PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS);

		if (fz_sys_failed(mem))
			goto out;
		carriers.spare = (char *)mem;
		carriers.spare_end = carriers.spare + CHUNK;
	}
	c = (struct fz_carrier *)carriers.spare;
	carriers.spare += sizeof(*c);
out:
	fz_lock_release(&carriers.lock);
	return c;
}

struct fz_carrier *fz_carrier_new(struct fz_fiber *context, int tid, uintptr_t libc_tcb)
{
	struct fz_carrier *c = alloc();

	if (!c)
		return NULL;
	c->context = context;
	c->tid = tid;
	c->libc_tcb = libc_tcb;
	context->kind = FZ_KIND_CARRIER;
	context->carrier = c;
	/* relaxed: a carrier's own context never leaves the runtime. */
	atomic_store_explicit(&context->in_runtime, 1, memory_order_relaxed);
	fz_sys_sigmask(2 /* SIG_SETMASK */, NULL, &c->kernel_mask);
	fz_alt_stack_carrier_started(c);
	c->all_next = atomic_load_explicit(&carriers.all, memory_order_relaxed);
	/* release: pairs with the acquire in fz_carrier_by_tid(). */
	while (!atomic_compare_exchange_weak_explicit(&carriers.all, &c->all_next, c,
						      memory_order_release,
						      memory_order_relaxed))
		continue;
	atomic_fetch_add_explicit(&carriers.count, 1, memory_order_relaxed);
	return c;
}

struct fz_carrier *fz_carrier_by_tid(int tid)
{
	struct fz_carrier *c = atomic_load_explicit(&carriers.all, memory_order_acquire);

	while (c && c->tid != tid)
		c = c->all_next;
	return c;
}

void fz_carrier_each(void (*visit)(struct fz_carrier *, void *), void *arg)
{
	/* acquire: pairs with fz_carrier_new(). */
	struct fz_carrier *c = atomic_load_explicit(&carriers.all, memory_order_acquire);

	for (; c; c = c->all_next)
		visit(c, arg);
}

uint32_t fz_carrier_count(void)
{
	return atomic_load_explicit(&carriers.count, memory_order_relaxed);
}

static void await_processor(struct fz_carrier *c)
{
	/* acquire: pairs with the release in fz_carrier_hand_off(). */
	while (!atomic_load_explicit(&c->wakeup, memory_order_acquire))
		fz_sys_futex_wait(&c->wakeup, 0, NULL);
}

static void push_idle(struct fz_carrier *c)
{
	/* relaxed: published by the lock. */
	atomic_store_explicit(&c->wakeup, 0, memory_order_relaxed);
	fz_lock_acquire(&carriers.lock);
	c->idle_next = carriers.idle;
	carriers.idle = c;
	fz_lock_release(&carriers.lock);
}

void fz_carrier_sleep(struct fz_carrier *c)
{
	/* As in go_idle(): its last mask may be out of date. */
	if (c->kernel_mask != FZ_SIGNALS_ALL)
		fz_signal_load_mask(c, FZ_SIGNALS_ALL);
	push_idle(c);
	await_processor(c);
}

bool fz_carrier_hand_off(struct fz_processor *p)
{
	struct fz_carrier *c;

	fz_lock_acquire(&carriers.lock);
	c = carriers.idle;
	if (c)
		carriers.idle = c->idle_next;
	fz_lock_release(&carriers.lock);
	if (!c)
		return false;
	c->processor = p;
	/* seq_cst: as every change of owner (runtime/sched.c). */
	atomic_store_explicit(&p->owner, (uintptr_t)c | FZ_OWNER_RUNTIME,
			      memory_order_seq_cst);
	/* release: pairs with the acquire in fz_carrier_sleep(). */
	atomic_store_explicit(&c->wakeup, 1, memory_order_release);
	fz_sys_futex_wake(&c->wakeup, 1);
	return true;
}

/* arg: a futex; 1 running, 2 out of memory. */
static void *carrier_thread(void *arg)
{
	_Atomic uint32_t *answer = arg;
	struct fz_fiber *self = fz_self();
	struct fz_carrier *c;

	self->tcb = fz_tcb_get();
	fz_adopt_cut_rseq();
	c = fz_carrier_new(self, (int)fz_sys_gettid(), self->tcb);
	if (c)
		push_idle(c);
	/* release: pairs with the acquire in start_carrier(). */
	atomic_store_explicit(answer, c ? 1 : 2, memory_order_release);
	fz_sys_futex_wake(answer, 1);
	if (!c)
		return NULL;
	await_processor(c);
	fz_sched_run_carrier(c);
}

static int start_carrier(void)
{
	_Atomic uint32_t answer = 0;
	uint32_t got;
	void *stack;
	size_t size;
	int err = fz_stack_alloc(CONTEXT_STACK, 4096, &stack, &size);

	if (!err)
		err = fz_host.thread_create(stack, size, carrier_thread, &answer);
	if (err)
		return err;
	while (!(got = atomic_load_explicit(&answer, memory_order_acquire)))
		fz_sys_futex_wait(&answer, 0, NULL);
	return got == 1 ? 0 : -ENOMEM;
}

int fz_carrier_keep_spare(void)
{
	bool spare;

	fz_lock_acquire(&carriers.lock);
	spare = carriers.idle != NULL;
	fz_lock_release(&carriers.lock);
	return spare ? 0 : start_carrier();
}

void fz_carrier_after_fork(void)
{
	__builtin_memset(&carriers, 0, sizeof(carriers));
}
