/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_IO_BRIEF_H
#define FZ_PRELOAD_IO_BRIEF_H

/*
 * preload/io/brief.h - interposers of calls that usually return at once: the real
 * call, and the monitor knows that it is one (runtime/sched/announce.h); and of such that
 * are about to wait.
 *
 * Cancellation inside the real call unwinds past fz_leave_brief, which is well.
 */

#include "preload/gate.h"
#include "runtime/sched/announce.h"
#include "runtime/sched/sched.h"
#include "runtime/signal/signal.h"

/* The fiber that calls, or NULL, for fz_leave_brief(). */
static inline struct fz_fiber *fz_enter_brief(enum fz_symbol symbol)
{
	struct fz_fiber *self = fz_enter(symbol);

	if (self)
		fz_announce_brief(self);
	return self;
}

static inline void fz_leave_brief(struct fz_fiber *self)
{
	if (self)
		fz_announce_end(self);
}

/*
 * A real call that is about to wait, and that the kernel does not restart by itself:
 *
 *	struct fz_blocked call = fz_block(self);
 *
 *	do
 *		ret = the real call
 *	while (fz_block_again(&call, ret));
 *
 * It ends with EINTR also when a request of this kernel thread completes, or a signal
 * came that is for another thread.  Then it goes on; after a handler only if it is
 * one of the calls that SA_RESTART is for (signal(7)) and the handler has that flag.
 */
struct fz_blocked {
	struct fz_fiber *self;
	uint32_t handlers;
	bool restartable;
	int saved_errno;
};

static inline struct fz_blocked fz_block(struct fz_fiber *self)
{
	fz_announce(self);
	return (struct fz_blocked){ self, self->sig.handlers_run, false, errno };
}

static inline struct fz_blocked fz_block_restartable(struct fz_fiber *self)
{
	fz_signal_mark(self);
	fz_announce(self);
	return (struct fz_blocked){ self, self->sig.handlers_run, true, errno };
}

static inline bool fz_block_again(const struct fz_blocked *call, int64_t ret)
{
	if (ret != -1 || errno != EINTR ||
	    (call->self->sig.handlers_run != call->handlers &&
	     !(call->restartable && fz_signal_restarts(call->self))))
		return false;
	errno = call->saved_errno;
	return true;
}

#endif
