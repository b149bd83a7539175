/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SCHED_SCHED_H
#define FZ_RUNTIME_SCHED_SCHED_H

/*
 * runtime/sched/sched.h - processors: the right to run fibers, and which carrier has it.
 *
 * fz_processor.owner says in one word which carrier has the processor and what
 * for.  All changes are compare-and-swaps, or stores by the owner in RUNTIME:
 *
 *	state      the carrier              next state
 *	FREE       none; never used yet     RUNTIME by any carrier
 *	RUNTIME    is in the runtime        USER, WAITING, ANNOUNCED by the carrier
 *	USER       is in the program        RUNTIME by the carrier, or taken
 *	ANNOUNCED  is in a call that may    RUNTIME by the carrier, or taken at any time
 *	           block for long
 *	WAITING    waits in the kernel:     RUNTIME by the carrier, or taken at any time
 *	           nothing is runnable
 *
 * Taken: made RUNTIME for another carrier, by compare-and-swap.  The loser finds
 * out when its own compare-and-swap fails (fz_enter_runtime, the idle loop).
 */

#include "runtime/backend/backend.h"
#include "runtime/base/count.h"
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
	_Atomic uint32_t idles;		/* times that it had nothing to run */
	/* Set by the monitor, cleared by pick(): the fiber has run for long, others must run. */
	_Atomic bool yield_wanted;
	/* Set by the monitor, cleared by pick(): fibers may starve; the next switch takes one. */
	_Atomic bool starving_wanted;
	/*
	 * Set by any thread, cleared by pick(): a deadline or a request may be due, or is to be
	 * submitted or cancelled, so the next switch looks at them.
	 */
	_Atomic bool poll_wanted;
	/* fz_sched_hasten() was called, and fz_sched_hasten_end() not yet; read by the monitor. */
	_Atomic bool hastened;
	/*
	 * Hints for runtime/io/follow.c.  cpu: the CPU on which a fiber of this processor was last seen to run,
	 * plus 1; 0: not known.  strangers: the share of the recent peers of its fibers that run on another CPU,
	 * in 1/1024.
	 */
	_Atomic uint32_t cpu, strangers;
	/*
	 * A closed processor runs no fibers: the process may use fewer CPUs than there are processors, or the
	 * load needs fewer.  Its carrier only waits for what arrives there.  Written by fz_provide_open().
	 */
	_Atomic bool closed;

	/* The owner adds to the list, in RUNTIME; any thread may take the whole list (runtime/fiber/pool.c). */
	_Atomic(struct fz_fiber *) free_fibers;

	/* Used by the owner alone, in RUNTIME. */
	uint32_t free_count;		/* at least the length of free_fibers */
	uint32_t next_streak;		/* consecutive times that the slot was picked */
	uint32_t starving_looks;	/* calls of pick() that saw starving_wanted */
	uint32_t since_poll;		/* switches since the last look at the ring */
	uint64_t polled_at;		/* fz_cycles() when poll_is_due() last found its pause over */
	uint64_t picked_at;		/* fz_cycles() at the last pick(); 0: not known */
	uint32_t since_flush;		/* switches since queued requests were submitted */
	int next_tid, last_tid;		/* virtual tids for new fibers: next_tid to last_tid - 1 */

	struct fz_processor_counts *counts;	/* never changes; the owner counts, in RUNTIME */
	struct fz_backend backend;
	_Atomic bool kicked;		/* its eventfd was written, and the owner has not seen it */

	_Alignas(FZ_CACHE_LINE) struct fz_runq runq;
	struct fz_timers timers;
};

/* The state of the scheduler.  processors, count and monitor_tid do not change after the start. */
struct fz_sched {
	struct fz_processor *processors;
	uint32_t count;
	_Atomic uint32_t open;		/* how many of them are not closed: the first ones */
	_Atomic uint32_t allowed;	/* how many may be open, by the CPU limit */
	_Atomic bool quiet_wanted;	/* a fiber that is alone found no processor to move to */
	_Atomic bool started;
	int monitor_tid;		/* its scheduling policy is that of all fibers that are not wired */
	struct fz_runq global;		/* fibers made runnable by a thread without a processor */
	struct fz_runq births;		/* new fibers (runtime/sched/birth.h) */
	_Atomic bool births_watched;	/* a carrier waits for them: birth.h */
	/*
	 * Cycles of fz_cycles() between two looks at the ring of a busy processor; 0: not known.
	 * Written by the monitor.
	 */
	_Atomic uint64_t poll_cycles;
	_Atomic bool cycles_are_cheap;	/* fz_cycles() takes less than 100 ns.  Written by the monitor after the start. */
};
extern struct fz_sched fz_sched FZ_HIDDEN;

/*
 * Leave dormancy: make processors, the first carrier, the monitor, the carrier spawner, and a
 * fiber of the calling thread, which is the process's main thread.  Returns 0; or -errno with
 * a reason for people in *ret_why, and then nothing has changed.
 */
int fz_sched_start(uint32_t processors, enum fz_backend_kind backend, const char **ret_why);

/* In the child of a fork: the runtime is dormant again. */
void fz_sched_after_fork(void);

/*
 * Bracket for everything that touches the scheduler on the calling thread.  In between the
 * processor cannot be taken away, and no handler of the program runs; a native thread has no
 * processor, but is safe from handlers, too.  fz_leave_runtime() may run signal handlers and
 * act on an asynchronous cancellation; call it with no lock held.
 */
void fz_enter_runtime(struct fz_fiber *self);
void fz_leave_runtime(struct fz_fiber *self);

/*
 * In the runtime, with no lock held: around a system call of the library's that may last.  In between the processor can
 * be taken away, as in the program's code, but no handler runs.  The fiber may have another carrier and processor then.
 */
void fz_block_in_runtime(struct fz_fiber *self);
void fz_block_in_runtime_end(struct fz_fiber *self);

/* A running fiber's processor.  Stale after anything that may park. */
struct fz_processor *fz_processor_of(const struct fz_fiber *self);

/* Like fz_processor_of(), but any thread may call it: NULL if the calling thread is no fiber. */
struct fz_processor *fz_processor_or_none(const struct fz_fiber *self);

/* Would a request of the caller be submitted together with requests of others?  A hint. */
bool fz_sched_has_company(const struct fz_fiber *self);

/* Make a fiber runnable.  Any thread in the runtime. */
void fz_sched_ready(struct fz_fiber *fiber);

/* Park the calling fiber, whose wait is armed.  In the runtime. */
void fz_sched_park(struct fz_fiber *self);

/*
 * Let another fiber run; the caller goes to the end of the queue.  In the runtime.
 * Returns false if no other fiber was runnable.
 */
bool fz_sched_yield(struct fz_fiber *self);

/*
 * Like fz_sched_yield(), but the caller goes to the end of the queue of processor `to`.  In the runtime.
 * If no other fiber is runnable, the caller stays: this processor would steal it back at once.
 */
void fz_sched_yield_to(struct fz_fiber *self, struct fz_processor *to);

/*
 * Like fz_sched_yield(), when no carrier is free: this carrier takes over a processor that has
 * work and no carrier, and leaves its own to the monitor.  In the runtime.
 */
void fz_sched_rotate(struct fz_fiber *self);

/*
 * fz_sched_yield() from outside the runtime.  Returns false if the caller cannot yield: it
 * is no fiber, or it is a handler that interrupted the runtime, or it is making a kernel
 * thread, with all signals blocked.
 */
bool fz_sched_give_way(struct fz_fiber *self);

/*
 * Look at the backend, and let fibers run whose requests are complete or whose deadlines have
 * passed.  Called by a fiber, outside the runtime.
 */
void fz_sched_poll_and_yield(struct fz_fiber *self);

/* The calling fiber has ended.  In the runtime.  Returns in its next life. */
void fz_sched_end(struct fz_fiber *self);

/*
 * End a switch; runs on the new context.  A context that runs for the first time calls this first.
 */
void fz_sched_arrived(struct fz_fiber *self);

/*
 * Move the calling fiber, with its processor, to a carrier that fits: fz_carrier_may_end(), or fz_carrier_is_undisturbed().
 * In the runtime.  Returns false if no such carrier is idle.
 */
bool fz_sched_move(struct fz_fiber *self, bool (*fits)(struct fz_carrier *));

/*
 * Give the caller's processor to another carrier, because the caller stops being a fiber.  In the
 * runtime.
 */
void fz_sched_give_up(struct fz_fiber *self);

/*
 * Run fibers until the carrier must end.  By the carrier, in its own context, with a processor
 * or without.
 */
void fz_sched_run_carrier(struct fz_carrier *carrier);

/*
 * Does the processor have something to do: a queued fiber, a completed request, a deadline that
 * has passed?  Any thread; a hint.
 */
bool fz_processor_has_work(struct fz_processor *p, fz_nsec now);

/* See that a carrier looks at the run queues soon.  Any thread in the runtime. */
void fz_sched_kick(void);

/*
 * Make p's owner submit the requests queued on its ring, and cancel the requests that it is asked to cancel
 * (fz_ring_ask_cancel).  The owner does so at its next switch; if it waits in the kernel, it has submitted
 * already, and is kicked to cancel.  If it does not switch, the monitor gives p to another carrier.  This is a
 * hint: call it again until the work is done, then call fz_sched_hasten_end().  In the runtime.
 */
void fz_sched_hasten(struct fz_processor *p);

static inline void fz_sched_hasten_end(struct fz_processor *p)
{
	/* relaxed: a thread that still waits sets it again. */
	atomic_store_explicit(&p->hastened, false, memory_order_relaxed);
}

/* Take a fiber from another processor, or NULL.  By the owner of p. */
struct fz_fiber *fz_processor_steal(struct fz_processor *p);

/* Is p closed?  Any thread; the owner, in RUNTIME, must then not run fibers on it. */
static inline bool fz_processor_is_closed(const struct fz_processor *p)
{
	/* relaxed: a carrier that misses a change sees it at its next switch. */
	return FZ_UNLIKELY(atomic_load_explicit(&p->closed, memory_order_relaxed));
}

/*
 * By the monitor: take p from the carrier in seen_owner and give p to an idle carrier.  Returns
 * false if p's owner has changed, or if no carrier is idle; in the second case p becomes ANNOUNCED.
 */
bool fz_processor_take(struct fz_processor *p, uintptr_t seen_owner);

/*
 * By the monitor: p's carrier sits in a long call, so make p ANNOUNCED: any carrier that needs p may take it
 * then.  A thread that queued a fiber while p was still USER has kicked nobody for it.  The monitor's next look
 * finds that fiber, and there is a next look: the monitor sleeps only when it has found no processor in use for
 * several ticks.
 */
void fz_processor_announce(struct fz_processor *p, uintptr_t seen_owner);

/*
 * To be called before and after a lock is held, by a thread that may be outside the runtime and have no
 * processor.  Between the two calls no handler of the program runs on this thread.  fz_allow_handlers() takes
 * what fz_bar_handlers() returned; it does not look for signals that have arrived meanwhile: the monitor does.
 */
static inline uint32_t fz_bar_handlers(void)
{
	struct fz_fiber *self = fz_self();
	/* relaxed, and signal fences: only handlers on this thread look. */
	uint32_t nested = atomic_load_explicit(&self->in_runtime, memory_order_relaxed);

	atomic_store_explicit(&self->in_runtime, 1, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	return nested;
}

static inline void fz_allow_handlers(uint32_t nested)
{
	atomic_signal_fence(memory_order_seq_cst);
	atomic_store_explicit(&fz_self()->in_runtime, nested, memory_order_relaxed);
}

#endif
