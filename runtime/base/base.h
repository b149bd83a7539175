/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_BASE_BASE_H
#define FZ_RUNTIME_BASE_BASE_H

/*
 * runtime/base/base.h - what every file of the runtime uses: time, branch prediction, rounding, assertions.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Nanoseconds of CLOCK_MONOTONIC: the only unit of time inside runtime/. */
typedef uint64_t fz_nsec;
#define FZ_FOREVER UINT64_MAX
#define FZ_USEC ((fz_nsec)1000)
#define FZ_MSEC ((fz_nsec)1000000)
#define FZ_SEC ((fz_nsec)1000000000)

#define FZ_LIKELY(x) __builtin_expect(!!(x), 1)
#define FZ_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define FZ_CACHE_LINE 64
#define FZ_HIDDEN __attribute__((visibility("hidden")))

#define fz_container_of(ptr, type, member) \
	((type *)(void *)((char *)(ptr) - offsetof(type, member)))

#define FZ_ROUND_UP(n, to) (((n) + (to) - 1) / (to) * (to))

/* Checks an invariant of the library itself, never an argument of the program.  Always on. */
#define FZ_ASSERT(cond) \
	(FZ_LIKELY(cond) ? (void)0 : fz_assert_failed(#cond, __FILE__, __LINE__))

/* Like FZ_ASSERT, but in debug builds only (make DEBUG=1): it may walk lists. */
#ifdef FZ_DEBUG
#define FZ_ASSERT_SLOW(cond) FZ_ASSERT(cond)
#define FZ_DEBUG_ONLY(statement) statement
#else
#define FZ_ASSERT_SLOW(cond) ((void)(0 && (cond)))
#define FZ_DEBUG_ONLY(statement)
#endif

/* Raise *bound to value if *bound is less.  relaxed: readers use nothing but the bound. */
static inline void fz_raise_to(_Atomic int *bound, int value)
{
	int old = atomic_load_explicit(bound, memory_order_relaxed);

	while (value > old &&
	       !atomic_compare_exchange_weak_explicit(bound, &old, value, memory_order_relaxed,
						      memory_order_relaxed))
		continue;
}

_Noreturn void fz_assert_failed(const char *cond, const char *file, int line);

#endif
