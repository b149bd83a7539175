/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SCHED_SCHED_H
#define FZ_RUNTIME_SCHED_SCHED_H

/*
 * runtime/sched/sched.h - processors: the right to run fibers, and who has it.
 *
 * fz_processor.owner says in one word which carrier has the processor and what
 * for.  All changes are compare-and-swaps, or stores by the owner in RUNTIME:
 *
 *	FREE       never used yet           -> RUNTIME by anyone
 *	RUNTIME    its carrier is in here   -> USER, WAITING, ANNOUNCED by the carrier
 *	USER       ... in the program       -> RUNTIME by the carrier, or taken
 *	ANNOUNCED  ... in a call that may   -> likewise, at any time
 *	           block for long
 *	WAITING    ... in io_uring_enter,   -> likewise, at any time
 *	           nothing is runnable
 *
 * Taken: made RUNTIME for another carrier, by compare-and-swap.  The loser finds
 * out when its own compare-and-swap fails (fz_enter_runtime, the idle loop).
 */

#include "runtime/backend/backend.h"
#include "runtime/base/lock.h"
#include "runtime/fiber/fiber.h"
#include "runtime/sched/runq.h"
#include "runtime/sched/timer.h"

enum fz_owner_state {
	FZ_OWNER_FREE,
	FZ_OWNER_RUNTIME,
	FZ_OWNER_USER,
	FZ_OWNER_ANNOUNCED,
	FZ_OWNER_WAITING,
	FZ_OWNER_STATE_MASK = 7,
};

struct fz_processor {
	/* Carrier | enum fz_owner_state.  Any thread. */
	_Alignas(FZ_CACHE_LINE) _Atomic uintptr_t owner;

	/* Written by the owner, read by the monitor (relaxed: it only samples). */
	_Atomic uint32_t entries;	/* calls into the runtime */
	_Atomic uint32_t switches;	/* to another fiber */
	/* Written by the monitor: the fiber has run for long, let others. */
	_Atomic bool yield_wanted;
	/* ... fibers wait: each in its turn, at the next switch. */
	_Atomic bool turn_wanted;
	/* ... a deadline or a request of it is overdue, look at the next switch. */
	_Atomic bool poll_wanted;

	/* Added to by the owner, in RUNTIME; who has no memory left takes them all. */
	_Atomic(struct fz_fiber *) free_fibers;

	/* The owner's own, in RUNTIME. */
	uint32_t free_count;		/* once it has looked at the list */
	uint32_t next_streak;		/* times in a row the next slot jumped the queue */
	uint32_t turns;			/* counts: picked in turn, and what was next after it */
	uint32_t since_poll;		/* switches since the ring was looked at */
	uint64_t polled_at;		/* by fz_cycles(), if it was because of them */
	uint32_t since_flush;		/* ... since queued requests were submitted */
	int next_tid, last_tid;		/* a batch of virtual tids */

	struct fz_backend backend;
	_Atomic bool kicked;		/* its eventfd was written, not yet seen */

	_Alignas(FZ_CACHE_LINE) struct fz_runq runq;
	struct fz_timers timers;
};

/* Options and constants of a run, fixed when the runtime starts. */
struct fz_sched {
	struct fz_processor *processors;
	uint32_t count;
	_Atomic bool started;
	struct fz_runq global;		/* readied from outside any processor */
	/* By fz_cycles(), between two looks at the ring of a busy processor.  0: not known. */
	_Atomic uint64_t poll_cycles;
};
extern struct fz_sched fz_sched FZ_HIDDEN;

/*
 * Leave dormancy: make processors, the first carrier, the monitor, and a fiber
 * of the calling thread.  The process has one thread.  Returns 0 or -errno with
 * a reason for people in *ret_why; then nothing has changed.
 */
int fz_sched_start(uint32_t processors, enum fz_backend_kind backend, const char **ret_why);

/* In the child of a fork: dormant again. */
void fz_sched_after_fork(void);

/*
 * Bracket for everything that touches the scheduler on the calling thread.
 * In between the processor cannot be taken away and no handler of the program
 * runs; in a native thread only the latter.  fz_leave_runtime may run signal
 * handlers, act on nothing else, and must come with no lock held.
 */
void fz_enter_runtime(struct fz_fiber *self);
void fz_leave_runtime(struct fz_fiber *self);

/* A running fiber's processor.  Stale after anything that may park. */
struct fz_processor *fz_processor_of(const struct fz_fiber *self);

/* The same by any thread: NULL if it is no fiber. */
struct fz_processor *fz_processor_or_none(const struct fz_fiber *self);

/* Would a request of the caller share its submission with others?  A hint. */
bool fz_sched_has_company(const struct fz_fiber *self);

/* Make a fiber runnable.  Any thread in the runtime. */
void fz_sched_ready(struct fz_fiber *fiber);

/* Park the calling fiber; its wait is armed. */
void fz_sched_park(struct fz_fiber *self);

/*
 * Let others run; the caller goes to the end of the queue.  In the runtime.
 * Returns false if there were none.
 */
bool fz_sched_yield(struct fz_fiber *self);

/*
 * The same, where carriers are lacking: the caller's goes on with a processor that
 * waits for one.  In the runtime.
 */
void fz_sched_rotate(struct fz_fiber *self);

/*
 * fz_sched_yield() from outside the runtime.  Returns false if the caller cannot: it
 * is no fiber, or a handler that came while it was in the runtime, or makes a kernel
 * thread, with all signals blocked.
 */
bool fz_sched_give_way(struct fz_fiber *self);

/* Let those run first for whom something has arrived.  Outside the runtime, a fiber. */
void fz_sched_take_turns(struct fz_fiber *self);

/* The calling fiber has ended.  In the runtime.  Returns in its next life. */
void fz_sched_end(struct fz_fiber *self);

/* The first thing on a context that runs for the first time. */
void fz_sched_arrived(struct fz_fiber *self);

/*
 * Go on on another kernel thread.  In the runtime.  Returns false if there is none to
 * be had now; otherwise it may be the same again, by chance.
 */
bool fz_sched_move(struct fz_fiber *self);

/* The caller stops being a fiber: its processor is for others.  In the runtime. */
void fz_sched_give_up(struct fz_fiber *self);

/* By a carrier, in its own context, with a processor or none, until it is to end. */
void fz_sched_run_carrier(struct fz_carrier *carrier);

/*
 * Whether a processor that nobody runs could be doing something: a fiber is
 * queued, a request has completed, a deadline has passed.  Any thread; a hint.
 */
bool fz_processor_has_work(struct fz_processor *p, fz_nsec now);

/* Make sure that somebody looks at the queues.  Any thread in the runtime. */
void fz_sched_kick(void);

/* For the monitor: take p from a carrier that uses it for too long. */
bool fz_processor_take(struct fz_processor *p, uintptr_t seen_owner);

/* For the monitor: the carrier sits in a call.  Whoever needs p may take it. */
void fz_processor_announce(struct fz_processor *p, uintptr_t seen_owner);

#endif
