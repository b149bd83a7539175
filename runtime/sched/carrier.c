/* SPDX-License-Identifier: MIT */
#include "runtime/sched/carrier.h"

#include <asm/errno.h>
#include <linux/mman.h>

#include "runtime/base/host.h"
#include "runtime/base/time.h"
#include "runtime/fiber/adopt.h"
#include "runtime/fiber/stack.h"
#include "runtime/sched/sched.h"
#include "runtime/signal/altstack.h"
#include "runtime/signal/signal.h"

enum {
	CONTEXT_STACK = 256 * 1024,
	SPARES = 1,		/* idle ones that stay */
	WAKE_GO = 1,		/* fz_carrier.wakeup */
	WAKE_END = 2,
};

static const fz_nsec no_spare_time = 5 * FZ_MSEC;

static struct {
	struct fz_lock lock;		/* guards all but the atomic ones */
	struct fz_carrier *idle;	/* the last one first */
	uint32_t idle_count, idle_least;	/* the least since fz_carrier_shrink() */
	struct fz_carrier *ended;
	_Atomic uint32_t ends_held;	/* futex; written under the lock */
	_Atomic fz_nsec no_spare_until;	/* a new thread has found no room beside them */
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

void fz_carrier_note_submitted(void)
{
	struct fz_carrier *c = fz_self()->carrier;

	if (c)
		c->submitted = true;
}

/* No TLS in here: arch/arch.h. */
static __attribute__((noinline)) int call_as(uintptr_t tcb, int (*fn)(void *), void *arg)
{
	uintptr_t before = fz_tcb_get();
	int ret;

	fz_tcb_set(tcb);
	ret = fn(arg);
	fz_tcb_set(before);
	return ret;
}

int fz_carrier_call(const struct fz_carrier *c, int (*fn)(void *), void *arg)
{
	enum { SETMASK = 2, SIG_SETXID = 33 };
	/* A handler would take itself for another thread; libc waits for its own. */
	const uint64_t blocked = ~fz_signal_bit(SIG_SETXID);
	uint64_t mask;
	int ret;

	fz_sys_sigmask(SETMASK, &blocked, &mask);
	ret = call_as(c->libc_tcb, fn, arg);
	fz_sys_sigmask(SETMASK, &mask, NULL);
	return ret;
}

uint32_t fz_carrier_count(void)
{
	return atomic_load_explicit(&carriers.count, memory_order_relaxed);
}

static bool await_processor(struct fz_carrier *c)
{
	uint32_t wakeup;

	/* acquire: pairs with the release in wake(). */
	while (!(wakeup = atomic_load_explicit(&c->wakeup, memory_order_acquire)))
		fz_sys_futex_wait(&c->wakeup, 0, NULL);
	return wakeup == WAKE_GO;
}

static void wake(struct fz_carrier *c, uint32_t what)
{
	/* release: pairs with the acquire in await_processor(). */
	atomic_store_explicit(&c->wakeup, what, memory_order_release);
	fz_sys_futex_wake(&c->wakeup, 1);
}

static void push_idle(struct fz_carrier *c)
{
	/* relaxed: published by the lock. */
	atomic_store_explicit(&c->wakeup, 0, memory_order_relaxed);
	fz_lock_acquire(&carriers.lock);
	c->idle_next = carriers.idle;
	carriers.idle = c;
	carriers.idle_count++;
	fz_lock_release(&carriers.lock);
}

bool fz_carrier_sleep(struct fz_carrier *c)
{
	push_idle(c);
	return await_processor(c);
}

static bool hand_off(struct fz_processor *p, bool to_mortal)
{
	struct fz_carrier **link = &carriers.idle, *c;

	fz_lock_acquire(&carriers.lock);
	while ((c = *link) && to_mortal && (c->parent || !c->stack))
		link = &c->idle_next;
	if (c) {
		*link = c->idle_next;
		if (--carriers.idle_count < carriers.idle_least)
			carriers.idle_least = carriers.idle_count;
	}
	fz_lock_release(&carriers.lock);
	if (!c)
		return false;
	c->processor = p;
	/* seq_cst: as every change of owner (runtime/sched/sched_internal.h). */
	atomic_store_explicit(&p->owner, (uintptr_t)c | FZ_OWNER_RUNTIME,
			      memory_order_seq_cst);
	wake(c, WAKE_GO);
	return true;
}

bool fz_carrier_hand_off(struct fz_processor *p)
{
	return hand_off(p, false);
}

bool fz_carrier_hand_off_to_mortal(struct fz_processor *p)
{
	return hand_off(p, true);
}

/* What a new kernel thread is given; on the stack of who waits for the answer. */
struct birth {
	_Atomic uint32_t answer;	/* futex; 1 running, 2 out of memory */
	struct fz_carrier *again;	/* the record of one that has ended, or NULL */
	void *stack;
	size_t stack_size;
};

/* The record of a carrier that has ended is in the list of all still. */
static void begin_again(struct fz_carrier *c, struct fz_fiber *context)
{
	c->context = context;
	c->processor = NULL;
	c->left = NULL;
	c->left_how = FZ_LEFT_NOTHING;
	c->submitted = false;
	atomic_store_explicit(&c->nudged, false, memory_order_relaxed);
	/* relaxed: nobody looks at it before it has a processor. */
	atomic_store_explicit(&c->calls, 0, memory_order_relaxed);
	c->libc_tcb = context->tcb;
	context->kind = FZ_KIND_CARRIER;
	context->carrier = c;
	atomic_store_explicit(&context->in_runtime, 1, memory_order_relaxed);
	fz_sys_sigmask(2 /* SIG_SETMASK */, NULL, &c->kernel_mask);
	c->tid = (int)fz_sys_gettid();
	atomic_fetch_add_explicit(&carriers.count, 1, memory_order_relaxed);
}

/* No request of its is in flight, and it has no processor: nobody will miss it. */
static void end(struct fz_carrier *c)
{
	uint32_t held;

	c->tid = 0;
	atomic_fetch_sub_explicit(&carriers.count, 1, memory_order_relaxed);
	atomic_store_explicit(&c->in_kernel, 1, memory_order_relaxed);
	fz_lock_acquire(&carriers.lock);
	/* relaxed: the lock orders. */
	while ((held = atomic_load_explicit(&carriers.ends_held, memory_order_relaxed))) {
		fz_lock_release(&carriers.lock);
		fz_sys_futex_wait(&carriers.ends_held, held, NULL);
		fz_lock_acquire(&carriers.lock);
	}
	c->idle_next = carriers.ended;
	carriers.ended = c;
	fz_lock_release(&carriers.lock);
	/* libc is still to use the stack: it is free when the kernel says so. */
	fz_syscall1(__NR_set_tid_address, (long)&c->in_kernel);
}

static void change_ends_held(uint32_t by)
{
	fz_lock_acquire(&carriers.lock);
	atomic_fetch_add_explicit(&carriers.ends_held, by, memory_order_relaxed);
	fz_lock_release(&carriers.lock);
}

/* One that is on its way out, through libc. */
static struct fz_carrier *find_leaving(void)
{
	struct fz_carrier *c;

	fz_lock_acquire(&carriers.lock);
	for (c = carriers.ended; c; c = c->idle_next)
		/* acquire: pairs with the kernel's clearing it. */
		if (atomic_load_explicit(&c->in_kernel, memory_order_acquire))
			break;
	fz_lock_release(&carriers.lock);
	return c;
}

void fz_carrier_hold_ends(struct fz_fiber *self)
{
	/* The kernel wakes one, by the key of a futex that is not private. */
	const struct __kernel_timespec a_moment = fz_timespec(FZ_MSEC);
	const int wait = 0;
	struct fz_carrier *c;

	fz_enter_runtime(self);
	change_ends_held(1);
	c = find_leaving();
	fz_leave_runtime(self);
	while (c) {
		fz_syscall4(__NR_futex, (long)&c->in_kernel, wait, 1, (long)&a_moment);
		fz_enter_runtime(self);
		c = find_leaving();
		fz_leave_runtime(self);
	}
}

void fz_carrier_let_end(struct fz_fiber *self)
{
	fz_enter_runtime(self);
	change_ends_held((uint32_t)-1);
	fz_sys_futex_wake(&carriers.ends_held, INT32_MAX);
	fz_leave_runtime(self);
}

static void *carrier_thread(void *arg)
{
	struct birth *birth = arg;
	struct fz_fiber *self = fz_self();
	struct fz_carrier *c = birth->again;

	self->tcb = fz_tcb_get();
	fz_adopt_cut_rseq();
	if (c)
		begin_again(c, self);
	else
		c = fz_carrier_new(self, (int)fz_sys_gettid(), self->tcb);
	if (c) {
		c->stack = birth->stack;
		c->stack_size = birth->stack_size;
		push_idle(c);
	}
	/* release: pairs with the acquire in start_carrier(). */
	atomic_store_explicit(&birth->answer, c ? 1 : 2, memory_order_release);
	fz_sys_futex_wake(&birth->answer, 1);
	if (!c)
		return NULL;
	if (await_processor(c))
		fz_sched_run_carrier(c);
	end(c);
	return NULL;
}

/* One that has ended, and left its kernel thread. */
static struct fz_carrier *take_ended(void)
{
	struct fz_carrier **link, *c;

	fz_lock_acquire(&carriers.lock);
	for (link = &carriers.ended; (c = *link); link = &c->idle_next)
		/* acquire: pairs with the kernel's clearing it. */
		if (!atomic_load_explicit(&c->in_kernel, memory_order_acquire)) {
			*link = c->idle_next;
			break;
		}
	fz_lock_release(&carriers.lock);
	return c;
}

static int start_carrier(void)
{
	struct birth birth = { .again = take_ended() };
	uint32_t got;
	int err = 0;

	if (birth.again) {
		birth.stack = birth.again->stack;
		birth.stack_size = birth.again->stack_size;
	} else {
		err = fz_stack_alloc(CONTEXT_STACK, 4096, &birth.stack, &birth.stack_size);
	}
	if (!err)
		err = fz_host.thread_create(birth.stack, birth.stack_size, carrier_thread,
					    &birth);
	if (err) {
		if (birth.again) {
			fz_lock_acquire(&carriers.lock);
			birth.again->idle_next = carriers.ended;
			carriers.ended = birth.again;
			fz_lock_release(&carriers.lock);
		}
		return err;
	}
	while (!(got = atomic_load_explicit(&birth.answer, memory_order_acquire)))
		fz_sys_futex_wait(&birth.answer, 0, NULL);
	return got == 1 ? 0 : -ENOMEM;
}

/* Of nobody at all, so of no idle carrier: those submit nothing meanwhile. */
static bool nothing_in_flight(void)
{
	for (uint32_t i = 0; i < fz_sched.count; i++)
		if (fz_sched.processors[i].backend.ring.in_flight)
			return false;
	return true;
}

/* With the lock held: who is idle makes none meanwhile. */
static bool has_no_children(void)
{
	const int exited = 4, keep = 0x1000000, now = 1;	/* WEXITED, WNOWAIT, WNOHANG */

	return fz_syscall5(__NR_waitid, 0 /* P_ALL */, 0, 0, exited | keep | now, 0) == -ECHILD;
}

/*
 * With the lock held, which it releases.  Up to excess of those that are idle, but not the
 * first `keep`.
 */
static uint32_t end_idle(uint32_t excess, uint32_t keep)
{
	struct fz_carrier **link = &carriers.idle, *c, *leaving = NULL;
	uint32_t ended = 0;
	bool none = excess && nothing_in_flight();

	/* The first are the ones that were used last. */
	for (uint32_t i = 0; i < keep && *link; i++)
		link = &(*link)->idle_next;
	while (ended < excess && (c = *link)) {
		if (none)
			c->submitted = false;
		if (c->parent && has_no_children())
			c->parent = false;
		if (!c->stack || c->submitted || c->parent) {
			link = &c->idle_next;
			continue;
		}
		*link = c->idle_next;
		c->idle_next = leaving;
		leaving = c;
		ended++;
	}
	carriers.idle_count -= ended;
	carriers.idle_least = carriers.idle_count;
	fz_lock_release(&carriers.lock);
	while ((c = leaving)) {
		leaving = c->idle_next;
		wake(c, WAKE_END);
	}
	return ended;
}

uint32_t fz_carrier_shrink(void)
{
	fz_lock_acquire(&carriers.lock);
	return end_idle(carriers.idle_least > SPARES ? carriers.idle_least - SPARES : 0, SPARES);
}

void fz_carrier_make_room(void)
{
	/* relaxed: when exactly they may come back does not matter. */
	atomic_store_explicit(&carriers.no_spare_until, fz_now() + no_spare_time,
			      memory_order_relaxed);
	fz_lock_acquire(&carriers.lock);
	end_idle(UINT32_MAX, 0);
}

bool fz_carrier_made_room(struct fz_fiber *self, int err, int *tries)
{
	const struct __kernel_timespec pause = fz_timespec(FZ_MSEC);
	const int most = 10;

	/* acquire: pairs with fz_sched_start(). */
	if (FZ_LIKELY(err != EAGAIN) || ++*tries > most ||
	    !atomic_load_explicit(&fz_sched.started, memory_order_acquire))
		return false;
	fz_enter_runtime(self);
	fz_carrier_make_room();
	fz_leave_runtime(self);
	fz_syscall2(__NR_nanosleep, (long)&pause, 0);
	return true;
}

bool fz_carrier_has_spare(void)
{
	bool spare;

	fz_lock_acquire(&carriers.lock);
	spare = carriers.idle != NULL;
	fz_lock_release(&carriers.lock);
	return spare;
}

int fz_carrier_start(void)
{
	return start_carrier();
}

int fz_carrier_keep_spare(void)
{
	if (fz_carrier_has_spare())
		return 0;
	if (fz_now() < atomic_load_explicit(&carriers.no_spare_until, memory_order_relaxed))
		return -EAGAIN;
	return start_carrier();
}

void fz_carrier_after_fork(void)
{
	__builtin_memset(&carriers, 0, sizeof(carriers));
}
