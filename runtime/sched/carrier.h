/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SCHED_CARRIER_H
#define FZ_RUNTIME_SCHED_CARRIER_H

/*
 * runtime/sched/carrier.h - kernel threads that run fibers.
 *
 * A carrier has a context of its own (stack, TCB), in which it looks for work,
 * waits, and sleeps when it has no processor.  One that was idle for a second ends,
 * but for some, and unless a request that it submitted is in flight: the kernel would
 * cancel that.  Its record stays, for the next one.
 */

#include "runtime/fiber/fiber.h"

/* What becomes of the context that a switch left, decided before the switch. */
enum fz_left {
	FZ_LEFT_NOTHING,	/* the carrier's own context */
	FZ_LEFT_PARKED,		/* complete its wait */
	FZ_LEFT_YIELDED,	/* to the end of the run queue */
	FZ_LEFT_ENDED,
	FZ_LEFT_NO_PROCESSOR,	/* runnable, but the carrier has no processor */
};

/* In fz_carrier.calls. */
enum { FZ_CARRIER_IN_CALL = 1, FZ_CARRIER_CALL = 2 };

struct fz_carrier {
	/* Its own, unless noted. */
	_Alignas(FZ_CACHE_LINE) struct fz_fiber *context;
	struct fz_processor *processor;	/* has it if processor->owner says so */
	struct fz_fiber *left;
	enum fz_left left_how;
	uint64_t kernel_mask;		/* the signal mask the kernel has for it */
	struct fz_alt_stack alt_stack;	/* ... and the alternate stack */
	struct fz_alt_stack report_stack;	/* const; runtime/signal/altstack.h */
	int tid;			/* the kernel's; 0 once the thread is gone */
	/* Real calls begun and ended, and whether it is in one; the monitor samples. */
	_Atomic uint32_t calls;
	uintptr_t libc_tcb;		/* const: what libc believes runs on tid */

	_Atomic uint32_t wakeup;	/* futex: 1 = go, 2 = end; set by who pops it from idle */
	bool submitted;			/* requests, since none of all was in flight */
	/* The kernel may tell a process that it made when it ends (PR_SET_PDEATHSIG). */
	bool parent;
	void *stack;			/* ours; NULL if the kernel thread is not */
	size_t stack_size;
	/* A nudge is on its way to it; cleared by itself (runtime/signal/nudge.c). */
	_Atomic bool nudged;
	_Atomic bool preempted;		/* likewise, to let others run */
	_Atomic uint32_t in_kernel;	/* cleared by the kernel when its thread is gone */
	struct fz_carrier *idle_next;	/* guarded by the idle list's lock */
	struct fz_carrier *all_next;	/* const once published */

	/* Its own; the monitor and who asks for CPU times read them. */
	_Atomic(struct fz_fiber *) running;	/* the context that it is in */
	_Atomic uint64_t cpu_mark;	/* its CPU time as that began, if that counts */

	uint64_t seen_cpu_time;		/* the monitor's memory of its last look */
	struct {
		uint64_t cpu_time;
		uint32_t ticks;		/* that it has computed, in a row */
	} preempt;			/* ... and when it looked whom to preempt */
};

/* After this the first fz_carrier_new() does not fail.  Returns false if there is no memory. */
bool fz_carrier_prepare_first(void);

/* A carrier with this context, on the calling kernel thread.  NULL: no memory. */
struct fz_carrier *fz_carrier_new(struct fz_fiber *context, uintptr_t libc_tcb);

/*
 * See that there is at least one carrier on the idle list, by starting one on a new
 * kernel thread.  May block, for 100 us or for as long as the program's allocator
 * has its locks held: not for a thread that has a processor, nor for the monitor
 * (runtime/sched/spawner.h).  Returns 0 or -errno.
 */
int fz_carrier_keep_spare(void);
bool fz_carrier_has_spare(void);

/*
 * Give p, which the caller owns in RUNTIME, to an idle carrier and wake it.
 * Returns false if there is none; then p is still the caller's.
 */
bool fz_carrier_hand_off(struct fz_processor *p);

/* The same, but only to one that may end some day. */
bool fz_carrier_hand_off_to_mortal(struct fz_processor *p);

/* One more on the idle list; as fz_carrier_keep_spare(). */
int fz_carrier_start(void);

/* The caller's kernel thread is about to make a process: it stays while that may live. */
static inline void fz_carrier_makes_process(const struct fz_fiber *self)
{
	if (self->kind == FZ_KIND_FIBER)
		self->carrier->parent = true;
}

/*
 * Put the caller on the idle list and sleep until it has a processor.  Returns false
 * if it is to end.
 */
bool fz_carrier_sleep(struct fz_carrier *carrier);

/*
 * End carriers that were not needed since the last call.  By the monitor.  Returns
 * how many.
 */
uint32_t fz_carrier_shrink(void);

/*
 * A limit leaves no room for the kernel thread that a new thread needs for a moment: end
 * all that are idle, and make none for some milliseconds.  They are gone a little later.
 */
void fz_carrier_make_room(void);

/*
 * Around what copies the process without libc's knowledge (clone): on its way out through libc a
 * kernel thread of ours has locks of libc's, which nobody would release in the copy.  None
 * is when the first returns, and none begins to end until the other.  Outside the runtime, with
 * the making of kernel threads held as well.
 */
void fz_carrier_hold_ends(struct fz_fiber *self);
void fz_carrier_let_end(struct fz_fiber *self);

/*
 * A call that makes a process has failed with that error: is it worth another try?  Then
 * room was made for it; tries counts them.  Outside the runtime.
 */
bool fz_carrier_made_room(struct fz_fiber *self, int err, int *tries);

/* The calling kernel thread is about to submit requests. */
void fz_carrier_note_submitted(void);

/*
 * Call fn(arg) as what libc believes to run on this kernel thread, which is c's: fn sees
 * another thread's TLS, and no handler of the program runs.  Outside the runtime.
 */
int fz_carrier_call(const struct fz_carrier *c, int (*fn)(void *), void *arg);

/* The carrier that is this kernel thread, or NULL.  Signal handlers too. */
struct fz_carrier *fz_carrier_by_tid(int tid);

uint32_t fz_carrier_count(void);

/* Any thread. */
void fz_carrier_each(void (*visit)(struct fz_carrier *, void *), void *arg);

void fz_carrier_after_fork(void);

#endif
