/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_SCHED_TRACE_H
#define FZ_RUNTIME_SCHED_TRACE_H

/*
 * runtime/sched/trace.h - events for "fiberize trace", which reads them from outside.
 *
 * Events are written only while fz_trace.until is not 0.  A tool sets that word, by
 * /proc/PID/mem, to a time soon after now, and again as long as it reads; if the tool dies, the
 * events end by themselves.  The first event maps the rings; tracing has no other memory.
 *
 * Each processor has a ring, which the carrier that has the processor writes in the runtime, so no
 * addition is atomic.  Ring 0 is for carriers without a processor and for the monitor.  Native and
 * wired threads write no event.  Old events are overwritten.  A reader takes event i of a ring if
 *
 *	events[i % FZ_TRACE_EVENTS].number == i + 1, read before the other fields, and
 *	next <= i + FZ_TRACE_EVENTS, read after them.
 */

#include "arch/arch.h"
#include "runtime/base/probe.h"
#include "runtime/fiber/fiber.h"
#include "runtime/sched/carrier.h"

enum { FZ_TRACE_EVENTS = 65536 };	/* in a ring, 4 MB; a power of 2 */

enum fz_trace_kind {
	FZ_TRACE_SWITCH = 1,	/* from tid to other; how: enum fz_left; what: enum fz_waits_for */
	FZ_TRACE_WAKE,		/* other wakes tid; what: enum fz_why */
	FZ_TRACE_ANNOUNCE,	/* tid begins a call that may wait */
	FZ_TRACE_BACK,		/* tid is in the runtime again, after an announced call or a preemption */
	FZ_TRACE_PREEMPT,	/* tid loses its processor; what: is it in a brief call? */
	FZ_TRACE_WIRE,		/* tid becomes a kernel thread; other: that one's tid */
};

/* A tid of 0 is a carrier's own context, or another thread that is no fiber. */
struct fz_trace_event {
	_Atomic uint64_t number;
	uint64_t time;			/* fz_cycles() */
	int32_t tid, other;
	uint8_t kind;			/* enum fz_trace_kind */
	uint8_t what, how;
	uint8_t opcode;			/* of a request: IORING_OP_*; 0: none */
	int32_t fd;			/* that a wait is for; -1: none */
	const void *caller;		/* where the program's call returns to; NULL: not known */
	const void *site;		/* in the library's function that was called */
	const void *fiber;		/* record of tid, or of other if tid is 0 */
	uint64_t unused;		/* an event is a cache line */
};
_Static_assert(sizeof(struct fz_trace_event) == FZ_CACHE_LINE, "an event is in one cache line");

struct fz_trace_ring {
	_Alignas(FZ_CACHE_LINE) _Atomic uint64_t next;	/* number of events ever written */
	uint64_t last;			/* the newest event's time; not in ring 0 */
	_Alignas(FZ_CACHE_LINE) struct fz_trace_event events[FZ_TRACE_EVENTS];
};

struct fz_trace {
	/* In fz_cycles(); 0: off.  Written from outside; set to 0 when it has passed. */
	_Alignas(FZ_CACHE_LINE) _Atomic uint64_t until;
	_Atomic(struct fz_trace_ring *) rings;	/* one for each processor, and ring 0; or NULL */
	_Atomic uint64_t lost;		/* events for which there was no memory */
};
extern struct fz_trace fz_trace FZ_HIDDEN;

/* Are events wanted?  Any thread. */
static inline bool fz_trace_on(void)
{
	/* relaxed: one event more or less does not matter; the functions below look again. */
	return FZ_UNLIKELY(atomic_load_explicit(&fz_trace.until, memory_order_relaxed) != 0);
}

/* Not inlined: these functions are called rarely, only if fz_trace_on(). */
#define FZ_APART __attribute__((noinline))

/* Write an event.  In the runtime, or by the monitor; call them if fz_trace_on(). */
FZ_APART void fz_trace_switch(const struct fz_carrier *c, const struct fz_fiber *from,
			      const struct fz_fiber *to, enum fz_left how);
FZ_APART void fz_trace_wake(const struct fz_fiber *woken, int why);
FZ_APART void fz_trace_announce(const struct fz_fiber *self);
FZ_APART void fz_trace_back(const struct fz_fiber *self);
FZ_APART void fz_trace_preempt(const struct fz_carrier *c);
FZ_APART void fz_trace_wire(const struct fz_fiber *self);

/*
 * Write the probe and the event: the first for a switch, the second for a carrier that loses its
 * processor.
 */
static inline void fz_trace_note_switch(const struct fz_carrier *c, const struct fz_fiber *from,
					const struct fz_fiber *to, enum fz_left how)
{
	FZ_PROBE3(switch, from->thread.tid, to->thread.tid, how);
	if (fz_trace_on())
		fz_trace_switch(c, from, to, how);
}

static inline void fz_trace_note_preempted(const struct fz_carrier *c)
{
	/* relaxed: a sample. */
	const uint32_t calls = atomic_load_explicit(&c->calls, memory_order_relaxed);

	FZ_PROBE2(preempt, c->tid, calls & FZ_CARRIER_IN_CALL);
	if (fz_trace_on())
		fz_trace_preempt(c);
}

/* By the monitor, now and then: give the memory of the rings back when nobody traces. */
void fz_trace_shrink(void);

void fz_trace_after_fork(void);

#endif
