/* SPDX-License-Identifier: MIT */
#include "runtime/sched/carrier.h"


#include "runtime/base/count.h"
#include "runtime/base/lock.h"
#include "runtime/base/role.h"
#include "runtime/sched/sched_internal.h"
#include "runtime/signal/altstack.h"
#include "runtime/signal/signal.h"

static struct {
	struct fz_lock lock;		/* guards spare and spare_end */
	char *spare, *spare_end;	/* memory for further records */
	_Atomic uint32_t count;		/* carriers whose kernel thread lives, and that are not wired */
	_Atomic(struct fz_carrier *) all;	/* all records, linked by all_next */
	/*
	 * Guards which of libc's records stands for each kernel thread (libc_tcb).  Held while libc
	 * makes all kernel threads change their ids, until all have answered.
	 */
	struct fz_lock records;
} carriers = { .lock = FZ_LOCK(FZ_RANK_CARRIERS), .records = FZ_LOCK(FZ_RANK_RECORDS) };

enum { SETMASK = 2, SIG_SETXID = 33 };

/*
 * Make room for `records` more records.  Returns false if there is no memory.  With carriers.lock held, or before
 * the process has a second thread.
 */
static bool has_room(size_t records)
{
	enum { CHUNK = 64 * 1024 };
	long mem;

	if ((size_t)(carriers.spare_end - carriers.spare) >= records * sizeof(struct fz_carrier))
		return true;
	mem = fz_sys_map_table(CHUNK);
	if (fz_sys_failed(mem))
		return false;
	carriers.spare = (char *)mem;
	carriers.spare_end = carriers.spare + CHUNK;
	return true;
}

bool fz_carrier_prepare_first(void)
{
	return has_room(2);
}

static struct fz_carrier *alloc(void)
{
	struct fz_carrier *c = NULL;

	fz_lock_acquire(&carriers.lock);
	if (has_room(1)) {
		c = (struct fz_carrier *)carriers.spare;
		carriers.spare += sizeof(*c);
	}
	fz_lock_release(&carriers.lock);
	return c;
}

static void begin(struct fz_carrier *c, struct fz_fiber *context, uintptr_t libc_tcb)
{
	c->context = context;
	c->libc_tcb = libc_tcb;
	context->kind = FZ_KIND_CARRIER;
	context->carrier = c;
	fz_sys_sigmask(2 /* SIG_SETMASK */, NULL, &c->kernel_mask);
	/* relaxed: libc has set it before this thread ran.  Read there, because a filter may forbid gettid. */
	c->tid = atomic_load_explicit(fz_tcb_tid(libc_tcb), memory_order_relaxed);
	atomic_fetch_add_explicit(&carriers.count, 1, memory_order_relaxed);
	fz_role_set(c->tid, FZ_ROLE_LIBRARY, "carrier", NULL);
}

struct fz_carrier *fz_carrier_new(struct fz_fiber *context, uintptr_t libc_tcb)
{
	struct fz_carrier *c = alloc();

	if (!c)
		return NULL;
	/* relaxed: a carrier's own context never leaves the runtime. */
	atomic_store_explicit(&context->in_runtime, 1, memory_order_relaxed);
	c->block = fz_counters_block();
	begin(c, context, libc_tcb);
	fz_alt_stack_carrier_started(c);
	c->all_next = atomic_load_explicit(&carriers.all, memory_order_relaxed);
	/* release: pairs with the acquire in fz_carrier_by_tid(). */
	while (!atomic_compare_exchange_weak_explicit(&carriers.all, &c->all_next, c,
						      memory_order_release,
						      memory_order_relaxed))
		continue;
	return c;
}

/* The record of a carrier that has ended stays in carriers.all, so it is not added again. */
void fz_carrier_begin_again(struct fz_carrier *c, struct fz_fiber *context)
{
	c->processor = NULL;
	c->left = NULL;
	c->left_how = FZ_LEFT_NOTHING;
	c->call = 0;
	c->submitted = c->used_ring = c->ends = false;
	atomic_store_explicit(&c->nudge, FZ_NUDGE_NONE, memory_order_relaxed);
	/* relaxed: no thread looks at calls before the carrier has a processor. */
	atomic_store_explicit(&c->calls, 0, memory_order_relaxed);
	/* The new kernel thread's clock begins at 0. */
	atomic_store_explicit(&c->cpu_exact, 0, memory_order_relaxed);
	c->cpu_sampled = 0;
	begin(c, context, context->tcb);
}

void fz_carrier_ended(struct fz_carrier *c)
{
	fz_role_end(c->tid);
	c->tid = 0;
	atomic_fetch_sub_explicit(&carriers.count, 1, memory_order_relaxed);
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

void fz_carrier_note_submitted(void)
{
	struct fz_carrier *c = fz_self()->carrier;

	if (c)
		c->submitted = c->used_ring = true;
}

/* Must not touch thread-local variables: see arch/arch.h. */
static __attribute__((noinline)) void call_as(uintptr_t tcb, void (*fn)(void *), void *arg)
{
	uintptr_t before = fz_tcb_get();

	fz_tcb_set(tcb);
	fn(arg);
	fz_tcb_set(before);
}

bool fz_carrier_change_ids(struct fz_fiber *self, void (*fn)(void *), void *arg)
{
	/*
	 * Block all signals, because a handler of the program would run with another thread's TLS;
	 * but not SIGSETXID, for whose handler libc waits.
	 */
	const uint64_t blocked = ~fz_signal_bit(SIG_SETXID);
	uintptr_t tcb = fz_tcb_get();
	uint64_t mask;
	bool allowed;

	fz_sys_sigmask(SETMASK, &blocked, &mask);
	fz_lock_acquire(&carriers.records);
	if (fz_is_fiber(self))
		tcb = self->carrier->libc_tcb;
	/* Not on the first kernel thread, if another fiber runs there: its record is in use by the main thread, elsewhere. */
	allowed = tcb == fz_tcb_get() || tcb == self->carrier->context->tcb;
	if (allowed) {
		/* The caller stays on this kernel thread even if it waits for a lock of libc's. */
		self->call.blocks = true;
		call_as(tcb, fn, arg);
		self->call.blocks = false;
	}
	fz_lock_release(&carriers.records);
	fz_sys_sigmask(SETMASK, &mask, NULL);
	return allowed;
}

static void set_record(struct fz_carrier *c, uintptr_t tcb)
{
	c->libc_tcb = tcb;
	/* relaxed: the lock orders it for libc's changes of ids. */
	atomic_store_explicit(fz_tcb_tid(tcb), c->tid, memory_order_relaxed);
}

void fz_carrier_take_record(struct fz_carrier *c, uintptr_t tcb)
{
	const uintptr_t before = c->libc_tcb;
	struct fz_carrier *other = atomic_load_explicit(&carriers.all, memory_order_acquire);

	fz_lock_acquire(&carriers.records);
	while (other && (other->libc_tcb != tcb || !other->tid))
		other = other->all_next;
	if (other != c) {
		set_record(c, tcb);
		/* The main thread takes its own record away from the first kernel thread, which gets c's old record. */
		if (other)
			set_record(other, before);
		else
			/* No kernel thread has this record now; libc finds no thread with tid -1. */
			atomic_store_explicit(fz_tcb_tid(before), -1, memory_order_relaxed);
	}
	fz_lock_release(&carriers.records);
	atomic_fetch_add_explicit(&carriers.count, tcb == c->context->tcb ? 1 : (uint32_t)-1,
				  memory_order_relaxed);
}

uint32_t fz_carrier_count(void)
{
	return atomic_load_explicit(&carriers.count, memory_order_relaxed);
}

void fz_carrier_after_fork(void)
{
	__builtin_memset(&carriers, 0, sizeof(carriers));
	fz_lock_init(&carriers.lock, FZ_RANK_CARRIERS);
	fz_lock_init(&carriers.records, FZ_RANK_RECORDS);
	fz_carrier_idle_after_fork();
	fz_carrier_thread_after_fork();
}
