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
 * The kernel ends a call with EINTR for more reasons than natively: a request of this kernel
 * thread has completed, or a signal came whose handler runs in another thread.  The program must
 * not notice, so the call is made again.  After a handler of this thread the call ends; it is made
 * again only if SA_RESTART applies to this call (signal(7)) and each handler that ran has
 * SA_RESTART.
 *
 * A call with a relative timeout computes the time left before each attempt.  fz_call_end() may be
 * left out if the call is not brief and raises no signal, and the fiber does not need its
 * processor back at once, as it does while it holds a lock.
 *
 * All functions: outside the runtime.  A call that is left by cancellation or longjmp needs no
 * fz_call_end().
 */

#include <asm/errno.h>

#include "runtime/base/host.h"
#include "runtime/sched/announce.h"
#include "runtime/sched/cancel.h"
#include "runtime/sched/park.h"
#include "runtime/signal/signal.h"

enum {
	FZ_CALL_RESTARTS = 1,		/* SA_RESTART applies to the call */
	/*
	 * Cancellation ends the call, unless the call has moved data.  Not for a function of libc's,
	 * which acts on cancellation itself.
	 */
	FZ_CALL_CANCELLABLE = 2,
	/* the call usually returns at once (runtime/sched/announce.h) */
	FZ_CALL_BRIEF = 4,
	/*
	 * The caller has called fz_signal_mark() itself when its call began: handlers that have run
	 * since then end the call, too.
	 */
	FZ_CALL_GOES_ON = 8,
	/*
	 * A part of the transfer is done, and its count must be returned: a cancellation ends the call
	 * with -EINTR, and the thread's next call acts on the cancellation.  With FZ_CALL_CANCELLABLE.
	 */
	FZ_CALL_BEGUN = 16,
	/*
	 * An interruption would end the call with a part of what the program waits for, and it could not go on: the fiber
	 * becomes a kernel thread (fz_announce_undisturbed).  Not with FZ_CALL_BRIEF.
	 */
	FZ_CALL_UNDISTURBED = 32,
};

struct fz_real_call {
	struct fz_fiber *self;
	uint32_t handlers;	/* self->sig.handlers_run at the start */
	unsigned flags;
	bool cancel_changed;	/* for fz_cancel_end_call() */
};

/*
 * Is there a cancellation request?  Unless FZ_CALL_BEGUN leaves it to the next call, act on it and do
 * not return.
 */
static inline bool fz_call_is_cancelled(const struct fz_real_call *call)
{
	const bool requested = fz_cancel_requested(call->self);

	if (FZ_UNLIKELY(requested) && !(call->flags & FZ_CALL_BEGUN))
		fz_host.test_cancel();
	return requested;
}

/*
 * Announce the call, and run handlers of pending signals first.  Without FZ_CALL_GOES_ON, those
 * handlers do not end the call.
 */
static inline struct fz_real_call fz_call_begin(struct fz_fiber *self, unsigned flags)
{
	struct fz_real_call call = { .self = self, .flags = flags };

	if (flags & FZ_CALL_BRIEF)
		fz_announce_brief(self);
	else if (FZ_UNLIKELY(flags & FZ_CALL_UNDISTURBED))
		fz_announce_undisturbed(self);
	else
		fz_announce(self);
	if (!(flags & FZ_CALL_GOES_ON))
		fz_signal_mark(self);
	call.handlers = self->sig.handlers_run - fz_signal_handled(self);
	if (flags & FZ_CALL_CANCELLABLE) {
		fz_call_is_cancelled(&call);
		call.cancel_changed = fz_cancel_begin_call(self);
	}
	return call;
}

/* Has a handler run in this thread since fz_call_begin(), or with FZ_CALL_GOES_ON since fz_signal_mark()? */
static inline bool fz_call_handled(const struct fz_real_call *call)
{
	return call->self->sig.handlers_run != call->handlers;
}

/*
 * Must the call be made again, because the program does not expect this result?  A call that has
 * done nothing acts on a cancellation request here, and does not return.
 */
static inline bool fz_call_again(struct fz_real_call *call, int64_t ret)
{
	bool cancellable = call->flags & FZ_CALL_CANCELLABLE, again;

	if (cancellable) {
		fz_cancel_end_call(call->self, call->cancel_changed);
		if (ret == -EINTR && fz_call_is_cancelled(call))
			return false;
	}
	again = ret == -EINTR &&
		(!fz_call_handled(call) ||
		 (call->flags & FZ_CALL_RESTARTS && fz_signal_restarts(call->self)));
	if (again && cancellable)
		call->cancel_changed = fz_cancel_begin_call(call->self);
	if (!again && ret >= 0 && !(call->flags & FZ_CALL_BRIEF))
		fz_signal_catch_up(call->self);
	return again;
}

/*
 * Take over the signal that the call has raised, and get a processor.  Returns what fz_announce_end()
 * returns.
 */
static inline bool fz_call_end(const struct fz_real_call *call, int64_t ret)
{
	/*
	 * A blocked SIGPIPE or SIGXFSZ is pending for this kernel thread, which the fiber may
	 * leave now: take it along.
	 */
	if (FZ_UNLIKELY(ret == -EPIPE || ret == -EFBIG))
		fz_signal_collect(call->self, (int)ret);
	return fz_announce_end(call->self);
}

#endif
