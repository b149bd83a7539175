/* SPDX-License-Identifier: MIT */
#ifndef FZ_MODEL_SCENARIOS_SYNC_FUTEX_H
#define FZ_MODEL_SCENARIOS_SYNC_FUTEX_H

/*
 * tests/model/scenarios/sync/futex.h - futexes as programs call them, for two waiters: each wake-up that a call reports
 * ends one wait, of a waiter that it was for.  Fibers wait in the lot, native threads in the kernel.
 */
#include "tests/model/scenario.h"

#include <asm/errno.h>
#include <linux/futex.h>

#include "runtime/base/time.h"
#include "runtime/fiber/fiber.h"
#include "runtime/sync/futex.h"

enum { ALL = INT32_MAX };

static _Atomic uint32_t word, other, allowed;
static _Atomic int woken, went_on, ended_otherwise;

static inline long call(_Atomic uint32_t *w, int op, uint32_t value, long d, _Atomic uint32_t *w2, uint32_t value3)
{
	struct fz_fiber *self = fz_self();

	return fz_futex(self->kind == FZ_KIND_FIBER ? self : NULL, (uint32_t *)w, op | FUTEX_PRIVATE_FLAG, value,
			d, (uint32_t *)w2, value3);
}

/* Wake-ups of the bits may come from now on; then one call. */
static inline void wake(_Atomic uint32_t *w, int n, uint32_t bits)
{
	long ret;

	allowed |= bits;
	ret = call(w, FUTEX_WAKE_BITSET, (uint32_t)n, 0, NULL, bits);
	MODEL_CHECK(ret >= 0 && ret <= n, "%ld of %d are woken", ret, n);
	woken += (int)ret;
}

/* Returns true if a wake-up has ended the wait. */
static inline bool wait_for(_Atomic uint32_t *w, uint32_t bits, const struct __kernel_timespec *until)
{
	long ret = call(w, FUTEX_WAIT_BITSET, 0, (long)until, NULL, bits);

	if (ret == 0) {
		went_on++;
		MODEL_CHECK(allowed & bits, "a wake-up for others ends the wait for %x", bits);
	} else {
		MODEL_CHECK(ret == -EAGAIN || (until && ret == -ETIMEDOUT), "the wait fails: %ld", ret);
		ended_otherwise++;
	}
	return ret == 0;
}

/* As a program does that has nothing but the futex to order it: who comes from now on does not wait. */
static inline void change(void)
{
	atomic_store_explicit(&word, 1, memory_order_release);
}

static inline void as_many(void)
{
	MODEL_CHECK(woken == went_on, "%d wake-ups, %d waits ended by one", woken, went_on);
	MODEL_CHECK(went_on + ended_otherwise == 2, "%d of 2 waits ended", went_on + ended_otherwise);
}

#endif
