/* SPDX-License-Identifier: MIT */
/*
 * tests/model/invariants.c - what runtime/DESIGN.md says is true, checked at each switch, whenever
 * nobody can run, and at the end.  The files are built with FZ_DEBUG, so their own slow assertions,
 * the order of locks included, are checked as well.
 */
#include "tests/model/model.h"
#include "tests/model/reduce/reduce.h"
#include "tests/model/scenario.h"

#include "runtime/fiber/fiber.h"
#include "runtime/sched/carrier.h"
#include "runtime/sched/park.h"
#include "runtime/sched/sched.h"

/* ---- each fiber is in one place ------------------------------------------------------------ */

enum { QUEUED_MOST = 64 };

static const struct fz_fiber *queued[QUEUED_MOST];
static int queued_count;

static bool runs_somewhere(const struct fz_fiber *f)
{
	for (int i = 0; i < M.kthreads; i++)
		if (M.kt[i].state != KT_ENDED && M.kt[i].state != KT_NONE &&
		    (i == M.current ? fz_tcb_get() : M.kt[i].tcb) == f->tcb)
			return true;
	return false;
}

static void note_queued(const struct fz_fiber *f, bool is_new)
{
	reduce_read(f, 1);		/* where it is: check_at_switch() */
	reduce_read(&f->wait, sizeof(f->wait));
	reduce_read(&f->next, sizeof(f->next));
	for (int i = 0; i < queued_count; i++)
		if (queued[i] == f)
			model_fail("fiber %d is in two run queues, or twice in one", f->thread.tid);
	if (queued_count == QUEUED_MOST)
		model_outside("more queued fibers than invariants.c has room for");
	queued[queued_count++] = f;
	if ((f->wait & FZ_WAIT_STATE_MASK) == FZ_WAIT_PARKED)
		model_fail("fiber %d is in a run queue, and its wait is parked", f->thread.tid);
	/* A new one is queued while its own kernel thread still ends (birth.h). */
	if (!is_new && runs_somewhere(f))
		model_fail("fiber %d is in a run queue, and runs", f->thread.tid);
}

/* Whoever has the lock may be in the middle of a change. */
static void note_queue(const struct fz_runq *q, bool is_new)
{
	reduce_read(&q->lock.word, sizeof(q->lock.word));
	if (q->lock.word)
		return;
	reduce_read(&q->head, sizeof(q->head));
	for (const struct fz_fiber *f = q->head; f; f = f->next)
		note_queued(f, is_new);
}

static void check_places(void)
{
	queued_count = 0;
	note_queue(&fz_sched.global, false);
	note_queue(&fz_sched.births, true);
	for (uint32_t i = 0; i < fz_sched.count; i++) {
		const struct fz_runq *q = &fz_sched.processors[i].runq;

		note_queue(q, false);
		reduce_read(&q->slot, sizeof(q->slot));
		if (q->slot)
			note_queued(q->slot, false);
	}
}

/* ---- at a switch --------------------------------------------------------------------------- */

/* Remembers which fibers wait because they have yielded: these are queued without a kick. */
static void note_yield(uintptr_t tcb)
{
	const struct fz_fiber *leaves = fz_fiber_of_tcb(fz_tcb_get()), *comes = fz_fiber_of_tcb(tcb);
	const bool yields = leaves->kind == FZ_KIND_FIBER && leaves->carrier &&
			    leaves->carrier->left_how == FZ_LEFT_YIELDED;
	uint32_t kept = 0;

	for (uint32_t i = 0; i < M.yielders; i++)
		if (M.yielded[i] != comes && M.yielded[i] != leaves)
			M.yielded[kept++] = M.yielded[i];
	if (yields) {
		if (kept == sizeof(M.yielded) / sizeof(*M.yielded))
			model_outside("more fibers that have yielded than invariants.c has room for");
		M.yielded[kept++] = leaves;
	}
	M.yielders = kept;
}

static bool has_yielded(const struct fz_fiber *f)
{
	for (uint32_t i = 0; i < M.yielders; i++)
		if (M.yielded[i] == f)
			return true;
	return false;
}

/* A context runs on one kernel thread at a time, and is entered only where it was left. */
void check_at_switch(void **save_sp, void *load_sp, uintptr_t tcb)
{
	(void)save_sp;
	if (!exploring)
		return;
	if (!load_sp)
		model_fail("a context is entered that has not been saved");
	for (int i = 0; i < M.kthreads; i++)
		if (i != M.current && M.kt[i].state != KT_ENDED && M.kt[i].tcb == tcb)
			model_fail("one context on two kernel threads");
	/* Where the two are, which others look at (runs_somewhere(), one context on two kernel threads). */
	reduce_write(fz_fiber_of_tcb(fz_tcb_get()), 1);
	reduce_write(fz_fiber_of_tcb(tcb), 1);
	if (fz_fiber_of_tcb(tcb)->kind == FZ_KIND_FIBER)
		M.fiber_switches++;
	note_yield(tcb);
	check_places();
}

/* ---- nobody can run ------------------------------------------------------------------------ */

static bool runnable_somewhere(void)
{
	for (uint32_t i = 0; i < fz_sched.count; i++) {
		struct fz_processor *p = &fz_sched.processors[i];

		if (p->runq.length || p->runq.slot)
			return true;
	}
	return fz_sched.global.length;
}

/* Does some thread of the scenario wait for a deadline, or a carrier for a birth (birth.h)? */
bool only_clock_helps(void)
{
	if (fz_sched.births.length && fz_sched.births_watched)
		return true;
	for (uint32_t i = 0; i < fz_sched.count; i++)
		if (fz_sched.processors[i].timers.used)
			return true;
	for (int i = 0; i < M.kthreads; i++)
		if (fz_fiber_of_tcb(M.kt[i].tcb)->kind == FZ_KIND_NATIVE &&
		    M.kt[i].state == KT_BLOCKED && M.kt[i].deadline != FOREVER)
			return true;
	return false;
}

/* A fiber that has the processor as the program's waits for a futex by a call that was not announced. */
static bool waits_unannounced(const struct kthread *kt)
{
	const struct fz_fiber *f = fz_fiber_of_tcb(kt->tcb);

	return kt->futex && f->kind == FZ_KIND_FIBER && f->carrier->processor &&
	       f->carrier->processor->owner == ((uintptr_t)f->carrier | FZ_OWNER_USER);
}

/* Is a thread in a call of the program, of which only the monitor's ticks learn that it lasts? */
static bool in_real_call(void)
{
	for (int i = 0; i < M.kthreads; i++) {
		const struct kthread *kt = &M.kt[i];

		if (kt->state == KT_BLOCKED && kt->fd < 0 && !kt->ring && (!kt->futex || waits_unannounced(kt)))
			return true;
	}
	return false;
}

/*
 * Who waits for events has the processor: one that has lost it was woken, and went to the idle list.  On a ring it may
 * have entered the kernel after the new owner has reaped its kick: then it leaves with the next completion.
 */
static bool waits_without_processor(const struct kthread *kt)
{
	const struct fz_fiber *f = fz_fiber_of_tcb(kt->tcb);

	return kt->state == KT_BLOCKED && kt->fd >= 0 && f->kind == FZ_KIND_CARRIER &&
	       (!f->carrier->processor || f->carrier->processor->owner !=
						  ((uintptr_t)f->carrier | FZ_OWNER_WAITING));
}

/*
 * Every kernel thread sleeps.  The monitor's tick mends much, but no wake-up may depend on it: so
 * nothing may be left to do but to wait for a deadline.
 */
void check_quiet(void)
{
	if (!exploring)
		return;
	check_places();
	for (int i = 0; i < M.kthreads; i++)
		if (waits_without_processor(&M.kt[i]))
			model_fail("%s is deaf: it waits for events of a processor that it has lost",
				   M.kt[i].name);
	if (!in_real_call()) {
		if (runnable_somewhere())
			model_fail("lost kick: a fiber is in a run queue, and every kernel thread sleeps");
		if (!only_clock_helps())
			model_fail("lost wake-up: every thread waits, and no deadline is to come");
	}
	if (M.seen_switches != M.fiber_switches) {
		M.seen_switches = M.fiber_switches;
		M.fires = 0;
	}
	if (++M.fires > 1000)
		model_fail("hang: only the clock goes on");
}

/* Is a fiber in the queue for which somebody must have been kicked? */
static bool has_kicked_for(const struct fz_runq *q)
{
	for (const struct fz_fiber *f = q->head; f; f = f->next)
		if (!has_yielded(f) || fz_fiber_is_cpu_bound(fz_self()))
			return true;
	return false;
}

/*
 * One thread spins, all others sleep: what is in a queue can be shared, and nobody takes it.  A fiber that has yielded to
 * one that is not CPU-bound waits until the monitor finds that it is (PROOF.md), by CPU time, of which the model has none:
 * so the run ends there.  One that the kernel has refused memory yields until it has some, and waits for nobody.
 */
void check_spin(void)
{
	bool waits = false;

	if (!exploring || fz_sched.count < 2 || M.kt[M.current].refused)
		return;
	for (uint32_t i = 0; i < fz_sched.count; i++) {
		waits |= fz_sched.processors[i].runq.head != NULL;
		if (has_kicked_for(&fz_sched.processors[i].runq))
			model_fail("lost kick: a fiber is in a run queue, one thread spins, all others sleep");
	}
	if (has_kicked_for(&fz_sched.global))
		model_fail("lost kick: a fiber is in the global queue, one thread spins, all others sleep");
	if (waits || fz_sched.global.head)
		run_over(RUN_PASSED);
}

/* All threads have ended but the main one: nobody waits, nothing is held. */
void check_end(void)
{
	for (uint32_t i = 0; i < fz_sched.count; i++) {
		reduce_read(&fz_sched.processors[i].timers.used, sizeof(fz_sched.processors[i].timers.used));
		if (fz_sched.processors[i].timers.used)
			model_fail("a deadline is left in the heap of processor %u", i);
	}
}
