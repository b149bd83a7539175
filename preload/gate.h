/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_GATE_H
#define FZ_PRELOAD_GATE_H

/*
 * preload/gate.h - entry and exit of every interposer: finds the calling fiber, counts the
 * call, acts on a cancellation request, and returns results in libc's conventions.
 */

#include "preload/real.h"
#include "preload/stats.h"
#include "runtime/fiber/fiber.h"
#include "runtime/signal/signal.h"

/* typeof gives an alias the type of its target, but not the attributes nothrow and leaf. */
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wmissing-attributes"
#endif

#define FZ_EXPORT __attribute__((visibility("default")))
#define FZ_EXPORT_ALIAS(alias_, name_) \
	extern __typeof__(name_) alias_ __attribute__((alias(#name_), visibility("default")))

/* For an alias that libc declares with a struct of another name and equal layout (stat64). */
#define FZ_EXPORT_ALIAS64(alias_, name_)                            \
	extern __typeof__(name_) fz_alias_##alias_ __asm__(#alias_) \
		__attribute__((alias(#name_), visibility("default")))

/* Is the function a cancellation point of pthreads(7), whatever its arguments are? */
static inline bool fz_is_cancellation_point(enum fz_symbol symbol)
{
	enum { NO, CANCEL };

	switch (symbol) {
#define FZ_SYMBOL(name, rung, cancel, ...) case FZ_SYM_##name: return cancel;
#include "preload/symbols.def"
	default: return false;
	}
}

/* Act on a cancellation request, if cancellation is enabled. */
void fz_gate_cancel(struct fz_fiber *self) FZ_HIDDEN;

/*
 * Reset the runtime in the child of a fork, unless that has been done.  Called by a thread that is in
 * fork(): a handler of pthread_atfork may call the library before the library's own handler runs.
 */
void fz_fork_notice(void) FZ_HIDDEN;

/*
 * The calling fiber; or NULL, in which case the interposer makes the real call (fz_real is
 * bound). NULL for native threads, in a dormant process, and inside the runtime. In a
 * cancellation point with a request pending this function does not return, whatever the
 * arguments of the call are: as in libc. The symbol is a constant, so other functions do not
 * pay for the check. Always inline, so that the counters get the address to which the interposer
 * returns; a helper that calls this function is always inline, too, or passes that address.
 */
__attribute__((always_inline)) static inline struct fz_fiber *fz_enter_from(enum fz_symbol symbol,
									      const void *caller)
{
	struct fz_fiber *self = fz_self();
	bool fiber;

	if (FZ_UNLIKELY(!fz_real_bound))
		fz_real_bind();
	if (FZ_UNLIKELY(self->call.in_fork))
		fz_fork_notice();
	/* relaxed: only this thread and its handlers write it. */
	fiber = self->kind == FZ_KIND_FIBER &&
		!atomic_load_explicit(&self->in_runtime, memory_order_relaxed);
	if (FZ_UNLIKELY(fz_stats_wanted))
		fz_stats_count(symbol, fiber, caller);
	/* relaxed: a request that is sent later finds this fiber in the call. */
	if (fiber && fz_is_cancellation_point(symbol) &&
	    FZ_UNLIKELY(atomic_load_explicit(&self->cancel.sent, memory_order_relaxed)))
		fz_gate_cancel(self);
	return fiber ? self : NULL;
}

__attribute__((always_inline)) static inline struct fz_fiber *fz_enter(enum fz_symbol symbol)
{
	return fz_enter_from(symbol, __builtin_return_address(0));
}

/*
 * Count a call that libc makes to itself, in a body that only redirected calls of libc reach; but not in the runtime:
 * the call is then a part of what the library does.
 */
__attribute__((always_inline)) static inline void fz_count_inside(enum fz_symbol symbol)
{
	const struct fz_fiber *self = fz_self();

	/* relaxed: only this thread and its handlers write it. */
	if (FZ_UNLIKELY(fz_stats_wanted) &&
	    !atomic_load_explicit(&self->in_runtime, memory_order_relaxed))
		fz_stats_count(symbol, self->kind == FZ_KIND_FIBER, __builtin_return_address(0));
}

/*
 * Count a call that has no fz_enter(), because it is counted only if it cannot be answered at once. caller: the
 * address to which the interposer returns.
 */
static inline void fz_count_slow(enum fz_symbol symbol, const void *caller)
{
	const struct fz_fiber *self = fz_self();

	/* relaxed: only this thread and its handlers write it. */
	if (FZ_UNLIKELY(fz_stats_wanted))
		fz_stats_count(symbol,
			       self->kind == FZ_KIND_FIBER &&
				       !atomic_load_explicit(&self->in_runtime, memory_order_relaxed),
			       caller);
}

/*
 * Count a call that libc makes to itself, make it, and return its value. The call may be of an interposer, which
 * does not count again: since it is no tail call, the caller of the interposer is the library.
 */
#define FZ_COUNTED_INSIDE(symbol, call)            \
	({                                         \
		fz_count_inside(symbol);           \
		FZ_RETURNS_HERE(call);             \
	})

/*
 * Are mutexes, condition variables and the like left to libc, because no thread of this process
 * will ever be a fiber? Code that reaches libc's functions past this library then shares the locks.
 * Set once, by the constructor.
 */
extern bool fz_locks_are_libcs FZ_HIDDEN;

/* Turn -errno into -1 and errno; on success errno stays as it is. */
static inline ssize_t fz_leave(int64_t ret)
{
	if (FZ_UNLIKELY(ret < 0)) {
		/*
		 * The kernel has sent SIGPIPE or SIGXFSZ for this fiber, even if the fiber
		 * blocks it.
		 */
		if (ret == -EPIPE || ret == -EFBIG)
			fz_signal_collect(fz_self(), (int)ret);
		errno = (int)-ret;
		return -1;
	}
	return (ssize_t)ret;
}

/* Turn 0 or -errno into what pthread functions return: 0 or a positive error number. */
static inline int fz_leave_pthread(int64_t ret)
{
	return (int)-ret;
}

/* Turn -1 and errno, of a function of libc's, into what pthread functions return. */
static inline int fz_leave_pthread_by_errno(long ret)
{
	return ret ? errno : 0;
}

/*
 * Called after an announced wait for a process-shared lock: run handlers of the signals that another process
 * has sent before it released the lock.  self: the fiber that waited, or NULL.  Returns err.
 */
static inline int fz_leave_shared(struct fz_fiber *self, int err)
{
	if (self)
		fz_signal_catch_up(self);
	return err;
}

#endif
