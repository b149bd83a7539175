/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SCHED_CARRIER_H
#define FZ_RUNTIME_SCHED_CARRIER_H

/*
 * runtime/sched/carrier.h - kernel threads that run fibers.
 *
 * A carrier has a context of its own (stack, TCB), in which it looks for work,
 * waits, and sleeps when it has no processor.  A carrier that was idle for 1 s ends, except one
 * spare, and except a carrier that submitted a request that may be in flight: the kernel would
 * cancel the request.  The record of an ended carrier stays, for the next carrier.
 */

#include "runtime/base/counters.h"
#include "runtime/fiber/fiber.h"

/*
 * What fz_sched_arrived() does with the context that a switch has left.  The carrier sets it
 * before the switch.
 */
enum fz_left {
	FZ_LEFT_NOTHING,	/* nothing: it is the carrier's own context */
	FZ_LEFT_PARKED,		/* mark its wait as parked: its context is saved */
	FZ_LEFT_YIELDED,	/* push it to the end of the run queue */
	FZ_LEFT_ENDED,		/* bury it */
	FZ_LEFT_NO_PROCESSOR,	/* push it to the global queue: the carrier has no processor */
	FZ_LEFT_MOVED,		/* give it and the processor to the carrier `successor` */
};

/* Bit 0 of fz_carrier.calls, and the step of the count in the other bits. */
enum { FZ_CARRIER_IN_CALL = 1, FZ_CARRIER_CALL = 2 };

/*
 * For runtime/signal/nudge.c.  SENT: a nudge that names the carrier is on its way to tid, which clears
 * it.  BARRED: no nudge may be sent now.  Another value: a nudge is on its way by tgkill, and this is
 * the number of its signal.
 */
enum fz_nudge { FZ_NUDGE_NONE, FZ_NUDGE_SENT, FZ_NUDGE_BARRED };

/* A field without a note is written and read by the carrier alone. */
struct fz_carrier {
	_Alignas(FZ_CACHE_LINE) struct fz_fiber *context;	/* the carrier's own */
	struct fz_processor *processor;	/* the carrier has it if processor->owner says so */
	struct fz_fiber *left;		/* the context that the last switch left */
	enum fz_left left_how;
	struct fz_processor *yields_to;	/* for FZ_LEFT_YIELDED: gets the fiber; NULL: `processor` does */
	struct fz_carrier *successor;	/* for FZ_LEFT_MOVED: off the idle list, still asleep */
	struct fz_fiber *first;		/* to run before others; set before the carrier is woken */
	uint16_t call;			/* the row of `block` for the fiber's last call (counting.h) */
	bool call_owned;		/* the carrier had its processor when the last brief call began */
	uint8_t until_sample;		/* wake-ups until the next one is timed */
	uint64_t kernel_mask;		/* the signal mask that the kernel has for tid */
	struct fz_alt_stack alt_stack;	/* the alternate stack that the kernel has for tid */
	struct fz_alt_stack report_stack;	/* const; runtime/signal/altstack.h */
	int tid;			/* the kernel's; 0 once the thread is gone */
	uint32_t number;		/* N + 1 of its name fz/N; 0: it has the name of the process */
	/* A count of real calls, and FZ_CARRIER_IN_CALL during one; the monitor samples. */
	_Atomic uint32_t calls;
	uintptr_t libc_tcb;		/* libc's record of tid; guarded by `records` in carrier.c */

	/*
	 * Futex; 0: sleep, else WAKE_* of carrier_idle.c.  Set by the thread that takes the carrier
	 * off the idle list.
	 */
	_Atomic uint32_t wakeup;
	/*
	 * The carrier has submitted requests, which may be in flight; cleared when no processor has
	 * any.
	 */
	bool submitted;
	bool used_ring;			/* its kernel thread has ever submitted, so a ring's event may reach it later, too */
	/*
	 * The carrier has made a process, to which the kernel may send a signal when the carrier
	 * ends (PR_SET_PDEATHSIG).
	 */
	bool parent;
	bool ends;			/* its fiber was wired, and has ended */
	void *stack;			/* NULL if the library did not make the kernel thread */
	size_t stack_size;
	_Atomic uint32_t nudge;		/* futex; enum fz_nudge, or a signal */
	/* The monitor asks the fiber to let others run; cleared by the carrier. */
	_Atomic bool preempted;
	_Atomic uint32_t in_kernel;	/* cleared by the kernel when its thread is gone */
	struct fz_carrier *idle_next;	/* guarded by the lock of the idle list */
	struct fz_carrier *all_next;	/* const once published */

	struct fz_block *block;		/* const: what the carrier counts; NULL: no calls are counted */
	/* Written by the carrier; read by the monitor and by threads that ask for CPU times. */
	_Atomic(struct fz_fiber *) running;	/* the context that the carrier is in */
	_Atomic uint64_t cpu_mark;	/* CPU time of tid when the turn of cpu_marked began, ns */
	_Atomic(const struct fz_fiber *) cpu_marked;	/* NULL: the time of this turn is not exact */
	_Atomic uint64_t cpu_exact;	/* CPU time of tid in exact turns that are over, ns */

	uint64_t cpu_sampled;		/* in other turns, ns; guarded by a lock of fiber/cputime.c */
	struct {			/* used by the monitor alone, in preempt_if_busy() */
		uint64_t cpu_time;	/* at its last look, ns */
		uint32_t ticks;		/* consecutive looks that found it busy */
	} preempt;
};

/*
 * Reserve memory so that the first fz_carrier_new(), and the one after the first
 * fz_carrier_begin_start(), do not fail.  Returns false if there is no memory.
 */
bool fz_carrier_prepare_first(void);

/* Make a carrier of the calling kernel thread, with this context.  NULL: no memory. */
struct fz_carrier *fz_carrier_new(struct fz_fiber *context, uintptr_t libc_tcb);

/*
 * Start a carrier on a new kernel thread, as the spare, if no carrier is idle.  mortal: count only
 * idle carriers that may end; but start none if several idle carriers exist already.  Returns 0 or
 * -errno.
 *
 * This may block, for 100 us or for as long as another thread holds the locks of the program's
 * allocator.  So only the spawner calls it (runtime/sched/spawner.h), and never a thread that has a
 * processor.  The monitor asks the spawner at each round.
 */
int fz_carrier_keep_spare(bool mortal);
bool fz_carrier_has_spare(void);

/*
 * Give p, which the caller owns (FZ_OWNER_RUNTIME), to an idle carrier and wake that carrier.
 * Returns false if no carrier is idle; then p is still the caller's.
 */
bool fz_carrier_hand_off(struct fz_processor *p);

/*
 * May requests be in flight that this carrier has submitted?  Their events interrupt its system
 * calls.  Any thread, while the carrier submits nothing.
 */
bool fz_carrier_has_requests(struct fz_carrier *c);

/*
 * May the kernel thread of this carrier end?  The process's first kernel thread may not, nor one
 * that has made a process, nor one with requests in flight: when their events come, the kernel
 * would complete such requests with ECANCELED, by a worker thread that may take a second to run.
 * Any thread, while the carrier submits nothing.
 */
bool fz_carrier_may_end(struct fz_carrier *c);

/*
 * May it end, and will nothing of io_uring's interrupt its system calls: neither the completion of a request nor the event of
 * a ring, which the carrier that has waited last polls until another waits?  As fz_carrier_may_end().
 */
bool fz_carrier_is_undisturbed(struct fz_carrier *c);

/*
 * Must the carrier's kernel thread stay, because it is the process's first or has made a process?
 * By the carrier.
 */
static inline bool fz_carrier_is_bound(const struct fz_carrier *c)
{
	return !c->stack || c->parent;
}

/* Take a carrier that fits off the idle list, for fz_carrier_pass_on().  NULL: there is none. */
struct fz_carrier *fz_carrier_take(bool (*fits)(struct fz_carrier *));

/*
 * Give the processor of `from`, which owns it in RUNTIME, to from->successor, which begins with
 * `fiber`.
 */
void fz_carrier_pass_on(struct fz_carrier *from, struct fz_fiber *fiber);

/* Start one more carrier, on the idle list.  Blocks and returns as fz_carrier_keep_spare(). */
int fz_carrier_start(void);

/*
 * fz_carrier_start() in two steps, so that the caller can do other work while the kernel thread
 * starts.  If fz_carrier_begin_start() returns 0, the caller must call fz_carrier_end_start(), and
 * keep `birth` until that returns.
 */
struct fz_carrier_birth {
	_Atomic uint32_t answer;	/* futex; 1: it runs, 2: out of memory */
	struct fz_carrier *again;	/* the record of an ended carrier, or NULL */
	void *stack;
	size_t stack_size;
};

int fz_carrier_begin_start(struct fz_carrier_birth *birth);
int fz_carrier_end_start(struct fz_carrier_birth *birth);

/* The calling kernel thread is about to make a process: it stays while the process may live. */
static inline void fz_carrier_makes_process(const struct fz_fiber *self)
{
	if (self->kind == FZ_KIND_FIBER)
		self->carrier->parent = true;
}

/*
 * Put the calling carrier on the idle list and sleep until it has a processor.  Returns false
 * if the carrier must end.
 */
bool fz_carrier_sleep(struct fz_carrier *carrier);

/* By the monitor: end the carriers that were not needed since the last call.  Returns how many. */
uint32_t fz_carrier_shrink(void);

/* By the monitor: let an idle carrier call fz_pool_end_surplus(). */
void fz_carrier_end_surplus(void);

/*
 * Call when a limit refused the kernel thread that each new thread needs for a moment: end all idle
 * carriers, wait until their kernel threads have left libc, and start no spare for 5 ms.  The
 * kernel counts the ended kernel threads for a moment longer.  In the runtime; needs no processor.
 */
void fz_carrier_make_room(void);

/*
 * fz_carrier_ends_to_come(): `count` carriers are about to be told to end.
 * fz_carrier_await_ends(): wait until all carriers that were told to end have left libc.
 */
void fz_carrier_ends_to_come(uint32_t count);
void fz_carrier_await_ends(void);

/*
 * By fz_sched_start() when it fails, before there are fibers: end all carriers and wait until their
 * kernel threads are gone.
 */
void fz_carrier_end_all(void);

/*
 * For a call that copies the process without libc's knowledge (clone).  A carrier's kernel thread
 * that ends holds locks of libc's on its way out, which would stay locked in the copy.  When
 * fz_carrier_hold_ends() returns, no carrier is on its way out, and none begins to end until
 * fz_carrier_let_end().  Any thread, while the making of kernel threads is held as well; blocks,
 * and needs no processor.
 */
void fz_carrier_hold_ends(void);
void fz_carrier_let_end(void);

/*
 * A call that makes a process has failed with err, -errno.  Returns true if idle carriers were ended to
 * make room, and the call is worth another try; *tries counts the tries.  Outside the runtime.
 */
bool fz_carrier_made_room(struct fz_fiber *self, int err, int *tries);

/* Let the calling carrier's own context end the kernel thread when it is entered next. */
void fz_carrier_is_to_end(struct fz_carrier *c);

/* The calling kernel thread is about to submit requests. */
void fz_carrier_note_submitted(void);

/*
 * Call fn(arg), in which libc makes all kernel threads change their ids, with the TLS of libc's
 * record of the caller's kernel thread; no handler of the program runs.  Returns false, without
 * the call, if the caller is on the process's first kernel thread, whose record is in use by the
 * main thread.  Outside the runtime; any thread.
 */
bool fz_carrier_change_ids(struct fz_fiber *self, void (*fn)(void *), void *arg);

/*
 * Change which of libc's thread records stands for c's kernel thread, which is the caller's: tcb is
 * the record of a fiber that has just been wired, or, when that fiber has ended, the record of the
 * carrier's own context.  Only one record has the kernel thread's tid, so that libc tells each
 * kernel thread once about a change of ids.
 */
void fz_carrier_take_record(struct fz_carrier *c, uintptr_t tcb);

/* The carrier whose kernel thread has this tid, or NULL.  Any context, signal handlers too. */
struct fz_carrier *fz_carrier_by_tid(int tid);

/* How many carriers there are, without wired ones and ended ones.  Any thread; a hint. */
uint32_t fz_carrier_count(void);

/*
 * Do at least as many carriers run without a processor as the process may use CPUs?  A carrier that
 * gets a processor would then wait for a CPU behind them.  A carrier runs on without a processor if
 * the monitor takes the processor while its fiber uses the CPU.  A hint; any thread.
 */
bool fz_carrier_is_crowded(void);

/* Call visit(carrier, arg) for the record of each carrier, also of an ended one (its tid is 0).  Any thread. */
void fz_carrier_each(void (*visit)(struct fz_carrier *, void *), void *arg);

void fz_carrier_after_fork(void);

#endif
