/* SPDX-License-Identifier: MIT */
#include "runtime/fiber/pool.h"

#include "runtime/base/time.h"
#include "runtime/fiber/adopt.h"
#include "runtime/fiber/stack.h"
#include "runtime/sched/carrier.h"
#include "runtime/sched/sched.h"
#include "runtime/sched/spawner.h"
#include "runtime/signal/queue.h"

/*
 * TRIES: how many fibers fz_pool_get() looks at; a program rarely uses more than two sizes of stacks.
 * REFUSED_MOST: failed attempts to give a fiber back, one a second, after which all fibers stay until another
 * one comes.
 */
enum { TRIES = 16, FREE_PER_PROCESSOR = 64, REFUSED_MOST = 8 };

/* Bytes of stacks that stay: KEEP_MOST, as in libc, but less, down to KEEP_LEAST, if much is left of stacks given back. */
#define KEEP_MOST ((size_t)40 << 20)
#define KEEP_LEAST ((size_t)8 << 20)

/* Free fibers, for all processors; guarded by lock, except count (atomic) and looked (the monitor's). */
static struct {
	struct fz_lock lock;
	struct fz_fiber *first;
	_Atomic uint32_t count;
	size_t bytes;			/* of the stacks */
	uint32_t least;			/* the smallest count since fz_pool_shrink() */
	uint32_t surplus;		/* fibers to give back */
	uint32_t refused;		/* failed attempts to give a fiber back since the last fiber came */
	fz_nsec looked;			/* the monitor's: when fz_pool_shrink() looked last */
} pool = { .lock = FZ_LOCK(FZ_RANK_POOL) };

/*
 * A processor's list is taken whole and put back, so that no thread sees half a change.
 * acquire: pairs with the release in put_back().
 */
static struct fz_fiber *take_all(struct fz_processor *p)
{
	return atomic_exchange_explicit(&p->free_fibers, NULL, memory_order_acquire);
}

/*
 * Only the owner adds to the list, so it is still empty after take_all().  release: pairs with
 * take_all().
 */
static void put_back(struct fz_processor *p, struct fz_fiber *list)
{
	atomic_store_explicit(&p->free_fibers, list, memory_order_release);
}

/* Add a fiber to the list for all.  refused: an attempt to give it back has just failed. */
static void put_for_all(struct fz_fiber *f, bool refused)
{
	fz_stack_trim(f->mem.stack, f->sp);
	fz_lock_acquire(&pool.lock);
	f->next = pool.first;
	pool.first = f;
	pool.bytes += f->mem.stack_size;
	pool.refused = refused ? pool.refused + 1 : 0;
	/* Give none back until the monitor's next look. */
	if (refused)
		pool.surplus = 0;
	/* relaxed, here and below: written with the lock held, a hint without it. */
	atomic_fetch_add_explicit(&pool.count, 1, memory_order_relaxed);
	fz_lock_release(&pool.lock);
}

/* A fiber has been taken from the list.  With the lock held. */
static void taken(const struct fz_fiber *f)
{
	const uint32_t count = atomic_load_explicit(&pool.count, memory_order_relaxed) - 1;

	atomic_store_explicit(&pool.count, count, memory_order_relaxed);
	pool.bytes -= f->mem.stack_size;
	if (count < pool.least)
		pool.least = count;
}

static uint32_t length_of(const struct fz_fiber *list)
{
	uint32_t n = 0;

	for (; list; list = list->next)
		n++;
	return n;
}

void fz_pool_put(struct fz_processor *p, struct fz_fiber *f)
{
	if (!p) {
		put_for_all(f, false);
		return;
	}
	f->next = take_all(p);
	if (!f->next)
		p->free_count = 0;
	if (p->free_count < FREE_PER_PROCESSOR) {
		p->free_count++;
		FZ_ASSERT_SLOW(length_of(f) == p->free_count);
		put_back(p, f);
		return;
	}
	put_back(p, f->next);
	put_for_all(f, false);
}

static bool fits(const struct fz_fiber *f, const struct fz_birth *birth)
{
	size_t size;
	void *bottom;

	fz_stack_bounds(f->mem.stack, f->mem.stack_size, &bottom, &size);
	return size >= birth->stack_size &&
	       f->mem.stack_size / 2 <= birth->stack_size + 65536 &&
	       f->mem.guard_size >= birth->guard_size;
}

static struct fz_fiber *take_fitting(struct fz_fiber **list, const struct fz_birth *birth,
				     uint32_t tries)
{
	for (; *list && tries; tries--, list = &(*list)->next) {
		struct fz_fiber *f = *list;

		if (!fits(f, birth))
			continue;
		*list = f->next;
		return f;
	}
	return NULL;
}

static struct fz_fiber *get_of_all(const struct fz_birth *birth, uint32_t tries)
{
	struct fz_fiber *f;

	/* relaxed: count is a hint. */
	if (!atomic_load_explicit(&pool.count, memory_order_relaxed))
		return NULL;
	fz_lock_acquire(&pool.lock);
	f = take_fitting(&pool.first, birth, tries);
	if (f)
		taken(f);
	fz_lock_release(&pool.lock);
	return f;
}

struct fz_fiber *fz_pool_get(struct fz_processor *p, const struct fz_birth *birth)
{
	struct fz_fiber *f, *list = p ? take_all(p) : NULL;

	if (list) {
		f = take_fitting(&list, birth, TRIES);
		put_back(p, list);
		if (f) {
			p->free_count--;
			return f;
		}
	}
	return get_of_all(birth, TRIES);
}

static size_t to_keep(void)
{
	const size_t left = fz_stack_left();

	return left < KEEP_MOST - KEEP_LEAST ? KEEP_MOST - left : KEEP_LEAST;
}

/* Move the free fibers of all processors to the list for all. */
static void gather(void)
{
	for (uint32_t i = 0; i < fz_sched.count; i++) {
		struct fz_fiber *next, *f = take_all(&fz_sched.processors[i]);

		for (; f; f = next) {
			next = f->next;
			put_for_all(f, false);
		}
	}
}

struct fz_fiber *fz_pool_search(const struct fz_birth *birth)
{
	gather();
	return get_of_all(birth, UINT32_MAX);
}

bool fz_pool_shrink(void)
{
	const fz_nsec now = fz_now();
	const size_t keep = to_keep();
	bool too_many, work;

	if (now >= pool.looked + FZ_SEC) {
		pool.looked = now;
		fz_lock_acquire(&pool.lock);
		pool.surplus = pool.least;
		fz_lock_release(&pool.lock);
		gather();
		fz_lock_acquire(&pool.lock);
		pool.least = atomic_load_explicit(&pool.count, memory_order_relaxed);
		fz_lock_release(&pool.lock);
	}
	fz_lock_acquire(&pool.lock);
	too_many = pool.bytes > keep && pool.refused < REFUSED_MOST;
	work = too_many && pool.surplus;
	fz_lock_release(&pool.lock);
	if (work)
		fz_carrier_end_surplus();
	return too_many;
}

static struct fz_fiber *take_surplus(bool any)
{
	const size_t keep = to_keep();
	struct fz_fiber *f = NULL;

	fz_lock_acquire(&pool.lock);
	if ((pool.surplus || (any && !pool.refused)) && pool.bytes > keep &&
	    pool.refused < REFUSED_MOST) {
		f = pool.first;
		pool.first = f->next;
		pool.surplus -= pool.surplus != 0;
		taken(f);
	}
	fz_lock_release(&pool.lock);
	return f;
}

void fz_pool_end_surplus(void)
{
	struct fz_fiber *f;

	while ((f = take_surplus(false))) {
		const struct fz_fiber_mem mem = f->mem;

		fz_sigqueue_clear(f);
		if (!fz_stack_can_give_back() || fz_adopt_end(f)) {
			put_for_all(f, true);
			return;
		}
		fz_stack_give_back(mem.stack, mem.stack_size, mem.guard_size, f, sizeof(*f));
	}
	fz_stack_drop_reserve();
}

void fz_pool_end_one(struct fz_fiber *self)
{
	struct fz_fiber_mem mem;
	struct fz_fiber *f;
	int err;

	fz_enter_runtime(self);
	f = fz_stack_can_give_back() ? take_surplus(true) : NULL;
	if (f)
		fz_sigqueue_clear(f);
	fz_leave_runtime(self);
	if (!f)
		return;
	mem = f->mem;
	fz_spawner_turn_begin(self);
	err = fz_adopt_end(f);
	fz_spawner_turn_end(self);
	fz_enter_runtime(self);
	if (err)
		put_for_all(f, true);
	else
		fz_stack_give_back(mem.stack, mem.stack_size, mem.guard_size, f, sizeof(*f));
	fz_leave_runtime(self);
}

void fz_pool_after_fork(void)
{
	__builtin_memset(&pool, 0, sizeof(pool));
	fz_lock_init(&pool.lock, FZ_RANK_POOL);
}
