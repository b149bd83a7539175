/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_IO_REAL_CALL_H
#define FZ_RUNTIME_IO_REAL_CALL_H

/*
 * runtime/io/real_call.h - a real call that is about to wait, from announcement to result.
 *
 *	struct fz_real_call call = fz_call_begin(self, FZ_CALL_RESTARTS);
 *
 *	do
 *		ret = the real call, as a result or -errno
 *	while (fz_call_again(&call, ret));
 *	fz_call_end(&call, ret);
 *
 * The kernel ends a call with EINTR for more reasons than natively: a request of this
 * kernel thread has completed, or a signal came whose handler runs on another thread.
 * The program must not notice, so the call is made again.  After a handler of this
 * thread, the call ends; it is made again only if it is one that SA_RESTART is for
 * (signal(7)) and each handler that ran has this flag.
 *
 * A call with a relative timeout computes what is left of it before each attempt.
 * fz_call_end() may be left out if the call is not brief and raises no signal, where the
 * fiber does not need its processor back at once, as while it holds a lock.
 *
 * All of these: outside the runtime.  A call left by cancellation or longjmp needs no end.
 */

#include <asm/errno.h>

#include "runtime/sched/announce.h"
#include "runtime/sched/cancel.h"
#include "runtime/sched/park.h"
#include "runtime/signal/signal.h"

enum {
	FZ_CALL_RESTARTS = 1,		/* SA_RESTART is for it */
	FZ_CALL_CANCELLABLE = 2,	/* cancellation ends it; libc's own calls see to that */
	FZ_CALL_BRIEF = 4,		/* it usually returns at once (runtime/sched/announce.h) */
};

struct fz_real_call {
	struct fz_fiber *self;
	/* handlers_run at the start.  A caller without FZ_CALL_RESTARTS may set an earlier count. */
	uint32_t handlers;
	unsigned flags;
	bool cancel_changed;	/* for fz_cancel_end_call() */
};

/*
 * Announces it, and runs handlers for what is pending: they do not end the call, but
 * fz_signal_restarts() counts their flags, for a caller that has set an earlier count.
 */
static inline struct fz_real_call fz_call_begin(struct fz_fiber *self, unsigned flags)
{
	struct fz_real_call call = { .self = self, .flags = flags };

	fz_signal_mark(self);
	if (flags & FZ_CALL_BRIEF)
		fz_announce_brief(self);
	else
		fz_announce(self);
	call.handlers = self->sig.handlers_run;
	if (flags & FZ_CALL_CANCELLABLE)
		call.cancel_changed = fz_cancel_begin_call(self);
	return call;
}

/* Has a handler of this thread run since the start? */
static inline bool fz_call_handled(const struct fz_real_call *call)
{
	return call->self->sig.handlers_run != call->handlers;
}

/* Does the program expect this result, or is the call to be made again? */
static inline bool fz_call_again(struct fz_real_call *call, int64_t ret)
{
	bool cancellable = call->flags & FZ_CALL_CANCELLABLE, again;

	if (cancellable)
		fz_cancel_end_call(call->self, call->cancel_changed);
	again = ret == -EINTR &&
		(!fz_call_handled(call) ||
		 (call->flags & FZ_CALL_RESTARTS && fz_signal_restarts(call->self)));
	if (again && cancellable)
		call->cancel_changed = fz_cancel_begin_call(call->self);
	return again;
}

/*
 * A call of any kind is over, announced by fz_announce() or fz_announce_brief(): take the
 * signal that it has raised, and get a processor.  Returns what fz_announce_end() does.
 */
static inline bool fz_call_over(struct fz_fiber *self, int64_t ret)
{
	/* Blocked, the signal is pending for this kernel thread, which the fiber may leave now. */
	if (FZ_UNLIKELY(ret == -EPIPE || ret == -EFBIG))
		fz_signal_collect(self, (int)ret);
	return fz_announce_end(self);
}

static inline bool fz_call_end(const struct fz_real_call *call, int64_t ret)
{
	return fz_call_over(call->self, ret);
}

#endif
