/* SPDX-License-Identifier: MIT */
#include "runtime/fiber/pool.h"

#include "runtime/fiber/stack.h"
#include "runtime/sched/sched.h"

/* TRIES: how many fibers to look at; a program rarely uses more than two sizes of stacks. */
enum { TRIES = 16, FREE_PER_PROCESSOR = 64 };

/* The pool of all processors; guarded by lock unless atomic. */
static struct {
	struct fz_lock lock;
	struct fz_fiber *first;
	_Atomic uint32_t count;
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

static void put_for_all(struct fz_fiber *f)
{
	fz_stack_trim(f->mem.stack, f->sp);
	fz_lock_acquire(&pool.lock);
	f->next = pool.first;
	pool.first = f;
	fz_lock_release(&pool.lock);
	atomic_fetch_add_explicit(&pool.count, 1, memory_order_relaxed);
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
		put_for_all(f);
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
	put_for_all(f);
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
	fz_lock_release(&pool.lock);
	if (f)
		atomic_fetch_sub_explicit(&pool.count, 1, memory_order_relaxed);
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

struct fz_fiber *fz_pool_search(const struct fz_birth *birth)
{
	for (uint32_t i = 0; i < fz_sched.count; i++) {
		struct fz_fiber *next, *f = take_all(&fz_sched.processors[i]);

		for (; f; f = next) {
			next = f->next;
			put_for_all(f);
		}
	}
	return get_of_all(birth, UINT32_MAX);
}

void fz_pool_after_fork(void)
{
	__builtin_memset(&pool, 0, sizeof(pool));
	fz_lock_init(&pool.lock, FZ_RANK_POOL);
}
