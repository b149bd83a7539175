/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_GATE_H
#define FZ_PRELOAD_GATE_H

/*
 * preload/gate.h - the way in and out of every interposer: who calls, may it
 * park; results in libc's conventions.
 */

#include "preload/real.h"
#include "runtime/fiber/fiber.h"
#include "runtime/signal/signal.h"

/* An alias is declared with the type of its target, not with its nothrow and leaf. */
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wmissing-attributes"
#endif

#define FZ_EXPORT __attribute__((visibility("default")))
#define FZ_EXPORT_ALIAS(alias_, name_) \
	extern __typeof__(name_) alias_ __attribute__((alias(#name_), visibility("default")))

/* The same where libc declares the alias with a struct that is the same by another name. */
#define FZ_EXPORT_ALIAS64(alias_, name_)                            \
	extern __typeof__(name_) fz_alias_##alias_ __asm__(#alias_) \
		__attribute__((alias(#name_), visibility("default")))

/* Calls per symbol; counted only if statistics were asked for. */
extern bool fz_stats_wanted FZ_HIDDEN;
extern _Atomic uint64_t fz_stats_calls[FZ_SYM_COUNT][2] FZ_HIDDEN;

/* Is it one of pthreads(7)'s cancellation points? */
static inline bool fz_is_cancellation_point(enum fz_symbol symbol)
{
	switch (symbol) {
#define FZ_CANCELLATION_POINT(name) case FZ_SYM_##name:
#include "preload/cancel.def"
#undef FZ_CANCELLATION_POINT
		return true;
	default:
		return false;
	}
}

/* Act on a cancellation request, if cancellation is enabled. */
void fz_gate_cancel(struct fz_fiber *self) FZ_HIDDEN;

/*
 * The fiber that calls, or NULL: then make the real call (fz_real is bound).
 * NULL for native threads, the dormant process, and the runtime's own threads.
 * A cancellation point with a request pending does not come back, whatever its
 * arguments are: as in libc.  The symbol is a constant, so others pay nothing.
 */
static inline struct fz_fiber *fz_enter(enum fz_symbol symbol)
{
	struct fz_fiber *self = fz_self();
	/* relaxed: only this thread and its handlers write it. */
	bool fiber = self->kind == FZ_KIND_FIBER &&
		     !atomic_load_explicit(&self->in_runtime, memory_order_relaxed);

	if (FZ_UNLIKELY(!fz_real_bound))
		fz_real_bind();
	if (FZ_UNLIKELY(fz_stats_wanted))
		atomic_fetch_add_explicit(&fz_stats_calls[symbol][fiber], 1,
					  memory_order_relaxed);
	/* relaxed: a request that comes later finds us in the call. */
	if (fiber && fz_is_cancellation_point(symbol) &&
	    FZ_UNLIKELY(atomic_load_explicit(&self->cancel.sent, memory_order_relaxed)))
		fz_gate_cancel(self);
	return fiber ? self : NULL;
}

/*
 * Decided as the library is loaded: no thread will ever be a fiber, so libc's own locks
 * do, which code that has libc's functions by other ways shares.
 */
extern bool fz_locks_are_libcs FZ_HIDDEN;

/* -errno to -1 and errno; errno is untouched on success. */
static inline ssize_t fz_leave(int64_t ret)
{
	if (FZ_UNLIKELY(ret < 0)) {
		/* The kernel's signal was for this fiber, blocked or not. */
		if (ret == -EPIPE || ret == -EFBIG)
			fz_signal_collect(fz_self(), (int)ret);
		errno = (int)-ret;
		return -1;
	}
	return (ssize_t)ret;
}

/* 0 or -errno to what pthread functions return: 0 or a positive error number. */
static inline int fz_leave_pthread(int64_t ret)
{
	return (int)-ret;
}

#endif
