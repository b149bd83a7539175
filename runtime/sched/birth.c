/* SPDX-License-Identifier: MIT */
#include "runtime/sched/birth.h"

#include "runtime/base/time.h"
#include "runtime/fiber/adopt.h"
#include "runtime/sched/sched.h"

void fz_birth_begin(struct fz_fiber *fiber)
{
	const bool first = !fiber->thread.recycled;

	if (first)
		fz_runq_push(&fz_sched.births, fiber);
	else
		fz_sched_ready(fiber);
	/*
	 * A program that makes a thread wants two threads to run at a time, so wake a carrier.  A
	 * carrier that watches the births needs no kick: it wakes soon by itself.
	 */
	if (!first || fz_birth_is_unwatched())
		fz_sched_kick();
}

struct fz_fiber *fz_birth_pop(void)
{
	enum { TRIES = 8 };
	struct fz_runq *const q = &fz_sched.births;
	struct fz_fiber *before = NULL, *f;

	/* relaxed: as in fz_runq_pop(). */
	if (FZ_LIKELY(atomic_load_explicit(&q->length, memory_order_relaxed) == 0))
		return NULL;
	fz_lock_acquire(&q->lock);
	f = q->head;
	for (int tries = 1; f && !fz_adopt_is_over(f); tries++) {
		before = f;
		f = tries < TRIES ? f->next : NULL;
	}
	if (f)
		fz_runq_remove_after(q, before);
	fz_lock_release(&q->lock);
	return f;
}

bool fz_birth_is_unwatched(void)
{
	/* relaxed: after a wrong answer the monitor wakes a carrier at its next look. */
	return fz_runq_length(&fz_sched.births) &&
	       !atomic_load_explicit(&fz_sched.births_watched, memory_order_relaxed);
}

bool fz_birth_watch_begin(void)
{
	/* relaxed: nothing is published by it. */
	return fz_birth_is_unwatched() &&
	       !atomic_exchange_explicit(&fz_sched.births_watched, true, memory_order_relaxed);
}

void fz_birth_watch_end(void)
{
	atomic_store_explicit(&fz_sched.births_watched, false, memory_order_relaxed);
}

bool fz_birth_await(void)
{
	const struct __kernel_timespec most = fz_timespec(FZ_MSEC);
	struct fz_fiber *f;

	fz_lock_acquire(&fz_sched.births.lock);
	f = fz_sched.births.head;
	fz_lock_release(&fz_sched.births.lock);
	if (f)
		fz_adopt_await(f, &most);
	return f != NULL;
}

static struct fz_fiber *find_unborn(void)
{
	struct fz_fiber *f;

	fz_lock_acquire(&fz_sched.births.lock);
	for (f = fz_sched.births.head; f && fz_adopt_is_over(f); f = f->next)
		continue;
	fz_lock_release(&fz_sched.births.lock);
	return f;
}

static bool has_thread(struct fz_fiber *f, void *ret_fiber)
{
	if (!fz_adopt_has_thread(f))
		return false;
	*(struct fz_fiber **)ret_fiber = f;
	return true;
}

bool fz_birth_await_all(void)
{
	const struct __kernel_timespec most = fz_timespec(FZ_MSEC);
	struct fz_fiber *f;
	bool waited = false;

	/*
	 * A fiber found here may run the program's code or have ended by now: in_runtime is 0 then,
	 * and nothing would wake this thread.  Hence the timeouts.
	 */
	for (; (f = find_unborn()); waited = true)
		fz_adopt_await(f, &most);
	for (; fz_fiber_each(has_thread, &f); waited = true)
		fz_adopt_await_thread(f, &most);
	return waited;
}
