/* SPDX-License-Identifier: MIT */
/*
 * runtime/sched/carrier_idle.c - carriers without a processor: they sleep until another thread hands
 * them one, lets them give back stacks, or ends them because there are too many.
 */
#include "runtime/sched/sched_internal.h"

#include <asm/errno.h>

#include "runtime/base/cpus.h"
#include "runtime/base/lock.h"
#include "runtime/base/time.h"
#include "runtime/fiber/pool.h"
#include "runtime/sched/birth.h"
#include "runtime/sched/carrier.h"
#include "runtime/sched/monitor.h"

enum {
	SPARES = 1,		/* idle carriers that fz_carrier_shrink() leaves */
	ENOUGH = 4,		/* idle carriers with requests in flight, after which no other is started */
	NEAR = 4,		/* places from the front of the idle list */
	WAKE_GO = 1,		/* values of fz_carrier.wakeup */
	WAKE_END = 2,
	WAKE_SURPLUS = 3,
};

static const fz_nsec no_spare_time = 5 * FZ_MSEC;

/* Guarded by lock unless atomic. */
static struct {
	struct fz_lock lock;
	struct fz_carrier *first;	/* the carrier that became idle last */
	uint32_t count, least;		/* least: the smallest count since fz_carrier_shrink() */
	_Atomic fz_nsec none_until;	/* no spare is started before: a new thread had no room */
} idle = { .lock = FZ_LOCK(FZ_RANK_CARRIERS) };

bool fz_carrier_await(struct fz_carrier *c)
{
	uint32_t wakeup;

	for (;;) {
		/* acquire: pairs with the release in wake(). */
		while (!(wakeup = atomic_load_explicit(&c->wakeup, memory_order_acquire)))
			fz_sys_futex_wait(&c->wakeup, 0, NULL);
		if (wakeup != WAKE_SURPLUS)
			return wakeup == WAKE_GO;
		fz_pool_end_surplus();
		fz_carrier_push_idle(c);
	}
}

static void wake(struct fz_carrier *c, uint32_t what)
{
	/* release: pairs with the acquire in fz_carrier_await(). */
	atomic_store_explicit(&c->wakeup, what, memory_order_release);
	fz_sys_futex_wake(&c->wakeup, 1);
}

/* With the lock held. */
static bool is_counted(void)
{
	uint32_t n = 0;

	for (const struct fz_carrier *c = idle.first; c; c = c->idle_next)
		n++;
	return n == idle.count;
}

void fz_carrier_push_idle(struct fz_carrier *c)
{
	/* relaxed: published by the lock. */
	atomic_store_explicit(&c->wakeup, 0, memory_order_relaxed);
	fz_lock_acquire(&idle.lock);
	c->idle_next = idle.first;
	idle.first = c;
	idle.count++;
	FZ_ASSERT_SLOW(is_counted());
	fz_lock_release(&idle.lock);
	fz_monitor_note_idle_carrier();
}

bool fz_carrier_sleep(struct fz_carrier *c)
{
	if (c->ends) {
		fz_carrier_ends_to_come(1);
		return false;
	}
	fz_carrier_push_idle(c);
	return fz_carrier_await(c);
}

/* Does no processor have a request in flight?  Then no carrier has one, if it submits nothing during this look. */
static bool nothing_in_flight(void)
{
	for (uint32_t i = 0; i < fz_sched.count; i++)
		if (fz_sched.processors[i].backend.ring.in_flight)
			return false;
	return true;
}

bool fz_carrier_has_requests(struct fz_carrier *c)
{
	if (c->submitted && nothing_in_flight())
		c->submitted = false;
	return c->submitted;
}

bool fz_carrier_may_end(struct fz_carrier *c)
{
	return !fz_carrier_is_bound(c) && !fz_carrier_has_requests(c);
}

bool fz_carrier_is_undisturbed(struct fz_carrier *c)
{
	return !c->used_ring && fz_carrier_may_end(c);
}

/*
 * If any will do, take one that has used a ring, if it is near: another may be just made for a fiber that needs it
 * (fz_carrier_is_undisturbed).  idle.lock is held.
 */
static struct fz_carrier **find_any(void)
{
	struct fz_carrier **link = &idle.first;

	for (int i = 0; i < NEAR && *link; i++, link = &(*link)->idle_next)
		if ((*link)->used_ring)
			return link;
	return &idle.first;
}

/* Take a carrier off the idle list, or NULL.  fits: NULL if any will do. */
static struct fz_carrier *take_idle(bool (*fits)(struct fz_carrier *))
{
	struct fz_carrier **link, *c;

	fz_lock_acquire(&idle.lock);
	link = fits ? &idle.first : find_any();
	while ((c = *link) && fits && !fits(c))
		link = &c->idle_next;
	if (c) {
		*link = c->idle_next;
		if (--idle.count < idle.least)
			idle.least = idle.count;
		FZ_ASSERT_SLOW(is_counted());
	}
	fz_lock_release(&idle.lock);
	return c;
}

/* The idle carrier c goes on with p. */
static void give(struct fz_carrier *c, struct fz_processor *p)
{
	c->processor = p;
	/* seq_cst: as every change of owner (runtime/sched/sched_internal.h). */
	atomic_store_explicit(&p->owner, (uintptr_t)c | FZ_OWNER_RUNTIME,
			      memory_order_seq_cst);
	wake(c, WAKE_GO);
}

void fz_carrier_end_surplus(void)
{
	struct fz_carrier *c = take_idle(NULL);

	if (c)
		wake(c, WAKE_SURPLUS);
}

bool fz_carrier_hand_off(struct fz_processor *p)
{
	struct fz_carrier *c = take_idle(NULL);

	if (c)
		give(c, p);
	return c != NULL;
}

struct fz_carrier *fz_carrier_take(bool (*fits)(struct fz_carrier *))
{
	return take_idle(fits);
}

void fz_carrier_pass_on(struct fz_carrier *from, struct fz_fiber *fiber)
{
	struct fz_processor *p = from->processor;

	from->successor->first = fiber;
	from->processor = NULL;
	give(from->successor, p);
}

/* idle.lock is held, so that an idle carrier cannot start to run and make a process. */
static bool has_no_children(void)
{
	const int exited = 4, keep = 0x1000000, now = 1;	/* WEXITED, WNOWAIT, WNOHANG */

	return fz_syscall5(__NR_waitid, 0 /* P_ALL */, 0, 0, exited | keep | now, 0) == -ECHILD;
}

/*
 * End up to `excess` idle carriers, but not the first `keep` of the list.  Called with idle.lock
 * held; releases it.
 */
static uint32_t end_idle(uint32_t excess, uint32_t keep)
{
	struct fz_carrier **link = &idle.first, *c, *leaving = NULL;
	uint32_t ended = 0;

	/* The carriers at the front were used last: they stay. */
	for (uint32_t i = 0; i < keep && *link; i++)
		link = &(*link)->idle_next;
	while (ended < excess && (c = *link)) {
		if (c->parent && has_no_children())
			c->parent = false;
		if (!fz_carrier_may_end(c)) {
			link = &c->idle_next;
			continue;
		}
		*link = c->idle_next;
		c->idle_next = leaving;
		leaving = c;
		ended++;
	}
	idle.count -= ended;
	idle.least = idle.count;
	FZ_ASSERT_SLOW(is_counted());
	fz_lock_release(&idle.lock);
	fz_carrier_ends_to_come(ended);
	while ((c = leaving)) {
		leaving = c->idle_next;
		wake(c, WAKE_END);
	}
	return ended;
}

uint32_t fz_carrier_shrink(void)
{
	fz_lock_acquire(&idle.lock);
	return end_idle(idle.least > SPARES ? idle.least - SPARES : 0, SPARES);
}

void fz_carrier_make_room(void)
{
	/* relaxed: the exact end of the pause does not matter. */
	atomic_store_explicit(&idle.none_until, fz_now() + no_spare_time,
			      memory_order_relaxed);
	fz_lock_acquire(&idle.lock);
	end_idle(UINT32_MAX, 0);
	fz_carrier_await_ends();
}

bool fz_carrier_made_room(struct fz_fiber *self, int err, int *tries)
{
	const struct __kernel_timespec pause = fz_timespec(FZ_MSEC);
	const int most = 10;

	/* acquire: pairs with fz_sched_start(). */
	if (FZ_LIKELY(err != -EAGAIN) || ++*tries > most ||
	    !atomic_load_explicit(&fz_sched.started, memory_order_acquire))
		return false;
	fz_enter_runtime(self);
	fz_carrier_make_room();
	fz_birth_await_all();
	fz_leave_runtime(self);
	/* The kernel counts the ended threads for a moment longer. */
	fz_syscall2(__NR_nanosleep, (long)&pause, 0);
	return true;
}

static bool has_spare(bool mortal)
{
	uint32_t nested = fz_bar_handlers();
	struct fz_carrier *c;
	bool enough;

	fz_lock_acquire(&idle.lock);
	for (c = idle.first; c && mortal && !fz_carrier_may_end(c); c = c->idle_next)
		continue;
	/* Each carrier without requests gets some sooner or later, and another one is asked for: end that at ENOUGH. */
	enough = mortal && idle.count >= ENOUGH;
	fz_lock_release(&idle.lock);
	fz_allow_handlers(nested);
	return c || enough;
}

bool fz_carrier_has_spare(void)
{
	return has_spare(false);
}

bool fz_carrier_is_crowded(void)
{
	/* relaxed: a hint. */
	const uint32_t cpus = fz_cpus_allowed(),
		       allowed = atomic_load_explicit(&fz_sched.allowed, memory_order_relaxed);
	uint32_t without;

	fz_lock_acquire(&idle.lock);
	without = fz_carrier_count() - idle.count;
	fz_lock_release(&idle.lock);
	for (uint32_t i = 0; i < fz_sched.count; i++) {
		const uintptr_t owner = owner_load(&fz_sched.processors[i]);

		without -= owner & ~(uintptr_t)FZ_OWNER_STATE_MASK &&
			   (owner & FZ_OWNER_STATE_MASK) != FZ_OWNER_ANNOUNCED;
	}
	/* A change between the two looks may make it negative. */
	return (int32_t)without >= (int32_t)(cpus && cpus < allowed ? cpus : allowed);
}

int fz_carrier_keep_spare(bool mortal)
{
	if (has_spare(mortal))
		return 0;
	if (fz_now() < atomic_load_explicit(&idle.none_until, memory_order_relaxed))
		return -EAGAIN;
	return fz_carrier_start();
}

void fz_carrier_idle_after_fork(void)
{
	__builtin_memset(&idle, 0, sizeof(idle));
	fz_lock_init(&idle.lock, FZ_RANK_CARRIERS);
}
