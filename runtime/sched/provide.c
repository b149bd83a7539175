/* SPDX-License-Identifier: MIT */
#include "runtime/sched/provide.h"

#include "runtime/base/count.h"
#include "runtime/base/cpus.h"
#include "runtime/base/die.h"
#include "runtime/fiber/cputime.h"
#include "runtime/sched/carrier.h"
#include "runtime/sched/monitor.h"
#include "runtime/sched/poll_cycles.h"
#include "runtime/sched/sched_internal.h"
#include "runtime/signal/monitor_mask.h"
#include "runtime/signal/signal.h"

enum {
	/*
	 * Consecutive ticks without a carrier that is needed, before fibers are preempted.  The spawner may
	 * wait for a lock, for example of the program's allocator, whose holder waits for a processor.
	 */
	LACKING_TICKS = 20,
	STARVED_TICKS = 1,	/* in place of LACKING_TICKS while `starved` */
	/* A carrier is preempted after so many looks in a row that find half a tick of CPU time or more, or none. */
	BUSY_TICKS = 2,
};

static bool lacked;		/* a processor got no carrier since the last fz_provide_if_lacking() */
static uint32_t lacking;	/* consecutive ticks in which that happened */
static uint32_t turns;		/* times that one busy carrier alone is preempted, before all are */
static bool starved;		/* no spare carrier since `lacking` has reached LACKING_TICKS */
static uint32_t first;		/* the processor whose turn it is to get a carrier */

bool fz_provide_carrier_for(struct fz_processor *p, uintptr_t owner)
{
	bool taken = fz_processor_take(p, owner);

	if (taken && (owner & FZ_OWNER_STATE_MASK) == FZ_OWNER_USER)
		fz_count_total(FZ_TOTAL_processors_taken, 1);
	lacked |= !taken;
	return taken;
}

bool fz_provide_carrier(void)
{
	static const enum fz_owner_state order[] = { FZ_OWNER_ANNOUNCED, FZ_OWNER_FREE };
	bool failed = false;

	/* Announced processors come first: they may have requests in flight. */
	for (uint32_t i = 0; i < 2 * fz_sched.count; i++) {
		struct fz_processor *p = &fz_sched.processors[(first + i) % fz_sched.count];
		uintptr_t owner = owner_load(p);

		/* A closed processor gets a carrier elsewhere: at the monitor's look, if something is on its way to it. */
		if ((owner & FZ_OWNER_STATE_MASK) != order[i / fz_sched.count] ||
		    fz_processor_is_closed(p))
			continue;
		/* This processor needs no carrier any more: leave it to its carrier, which is in a call. */
		if (order[i / fz_sched.count] == FZ_OWNER_ANNOUNCED && !fz_processor_needs_carrier(p) &&
		    !fz_sched_has_queued())
			continue;
		if (fz_provide_carrier_for(p, owner))
			return true;
		failed = true;
	}
	return !failed;
}

static bool runs_program(struct fz_carrier *c)
{
	/* relaxed: samples; a nudge that comes too late does nothing. */
	const struct fz_fiber *f = atomic_load_explicit(&c->running, memory_order_relaxed);

	return c->tid && f && f->kind == FZ_KIND_FIBER &&
	       !atomic_load_explicit(&f->in_runtime, memory_order_relaxed);
}

struct busy_look {
	fz_nsec tick;
	bool first;			/* there is no look before to compare with */
	bool preempted;			/* a carrier has been preempted in this look */
	bool all;			/* preempt each one, not only the first */
};

/*
 * Preempt the carrier's fiber if it is CPU-bound, or blocked in a call.  A call that is interrupted
 * this way is made again (runtime/io/real_call.h).
 */
static void preempt_if_busy(struct fz_carrier *c, void *arg)
{
	struct busy_look *look = arg;
	const bool program = runs_program(c);
	const uint64_t cpu_time = program ? fz_cputime_of_tid(c->tid) : 0;
	const uint64_t used = cpu_time - c->preempt.cpu_time;
	const bool busy = !look->first && program && (used >= look->tick / 2 || !used);

	c->preempt.cpu_time = cpu_time;
	c->preempt.ticks = busy ? c->preempt.ticks + 1 : 0;
	if (c->preempt.ticks < BUSY_TICKS)
		return;
	if (look->all || !look->preempted)
		fz_signal_preempt(c);
	look->preempted = true;
}

/* Make a carrier that waits in the kernel idle, so that it can serve another processor.  Take from the processors in turn. */
static void take_from_waiting(void)
{
	for (uint32_t i = 0; i < fz_sched.count; i++) {
		struct fz_processor *p = &fz_sched.processors[(first + i) % fz_sched.count];
		uintptr_t owner = owner_load(p);

		/* Without a carrier in between: the backend counts the leaving carrier before p has a new owner. */
		if ((owner & FZ_OWNER_STATE_MASK) == FZ_OWNER_WAITING &&
		    owner_cas(p, owner, owner_word(NULL, FZ_OWNER_RUNTIME))) {
			fz_processor_send_off(p);
			atomic_store_explicit(&p->owner, owner_word(NULL, FZ_OWNER_ANNOUNCED), memory_order_seq_cst);
			first = (first + i + 1) % fz_sched.count;
			return;
		}
	}
}

static uint32_t queued(void)
{
	uint32_t n = fz_runq_length(&fz_sched.global);

	for (uint32_t i = 0; i < fz_sched.count; i++)
		n += fz_runq_length(&fz_sched.processors[i].runq);
	return n;
}

uint32_t fz_provide_if_lacking(fz_nsec tick)
{
	struct busy_look look = { .tick = tick };
	uint32_t most;

	if (FZ_LIKELY(!lacked && !lacking))
		return first;
	lacking = lacked ? lacking + 1 : 0;
	lacked = false;
	if (fz_carrier_has_spare())
		starved = false;
	most = starved ? STARVED_TICKS : LACKING_TICKS;
	if (FZ_LIKELY(lacking < most))
		return first;
	look.first = lacking == most;
	/*
	 * Usually preempt only one carrier, which passes through the queue while the others stay: so any two
	 * fibers meet.  If all switched together, two fibers that wait for each other in the kernel (both ends
	 * of a FIFO) would meet only if they were neighbours in the queue.
	 */
	look.all = !turns;
	starved |= lacking > LACKING_TICKS;
	/* Perhaps the system allows no more kernel threads: use a carrier that waits. */
	take_from_waiting();
	/* All carriers: those without a processor, too. */
	fz_carrier_each(preempt_if_busy, &look);
	if (look.preempted)
		turns = look.all ? queued() + 1 : turns - 1;
	return first;
}

void fz_sched_rotate(struct fz_fiber *self)
{
	struct fz_carrier *c = self->carrier;
	struct fz_processor *p = c->processor;
	const uint32_t start = (uint32_t)(p - fz_sched.processors);

	for (uint32_t i = 1; i < fz_sched.count; i++) {
		struct fz_processor *q = &fz_sched.processors[(start + i) % fz_sched.count];
		uintptr_t owner = owner_load(q);
		enum fz_owner_state state = owner & FZ_OWNER_STATE_MASK;

		if ((state != FZ_OWNER_ANNOUNCED && state != FZ_OWNER_FREE) || fz_processor_is_closed(q) ||
		    !fz_processor_needs_carrier(q) || !owner_cas(q, owner, owner_word(c, FZ_OWNER_RUNTIME)))
			continue;
		if (fz_backend_queued(&p->backend))
			fz_backend_submit(&p->backend);
		c->processor = q;
		/* seq_cst: pairs with the monitor's loads of owner, which find ANNOUNCED. */
		atomic_store_explicit(&p->owner, owner_word(NULL, FZ_OWNER_ANNOUNCED),
				      memory_order_seq_cst);
		fz_monitor_want_carrier();
		break;
	}
	/* relaxed: only the owner reads it, which is this carrier. */
	atomic_store_explicit(&c->processor->poll_wanted, true, memory_order_relaxed);
	fz_sched_yield(self);
}

/* ---- as many processors as CPUs, and as the load needs -------------------- */

enum {
	FOLLOW_MS = 500,	/* between two looks at the quotas */
	WINDOW_TICKS = 64,	/* the window over which the load is measured */
	WAIT_US = 30,		/* mean time that a runnable fiber may wait until it runs */
	OFTEN = 8,		/* as many stay open as ran at once at one look of eight */
	HOLD_LEAST = 4, HOLD_MOST = 256,	/* windows after growth in which none is closed */
};

/* Does the monitor follow the limit? */
static _Atomic bool follows;
static fz_nsec next_follow;

/* Used by the monitor alone. */
static struct load {
	fz_nsec looked;		/* when the last look was */
	uint32_t ticks;		/* ticks of the window so far, by plan */
	uint64_t us, busy_us;	/* length of the window; time that processors ran in it, added up */
	uint16_t at_once[FZ_PROCESSORS_MOST + 1];	/* [n]: ticks at which n processors ran */
	uint64_t runs;		/* switches to fibers before the window began */
	uint32_t idles;		/* sum of fz_processor.idles at the last look */
	bool full;		/* at the last look all open processors ran, and fibers were queued */
	uint32_t hold, held;	/* windows without closing: after growth; still left of them */
	uint32_t calm;		/* windows without growth */
	bool said;
} load;

/* fz_processor.entries of each processor at the last look; used by the monitor alone. */
static uint32_t entries_seen[FZ_PROCESSORS_MOST];

void fz_provide_open(uint32_t open)
{
	/* relaxed, all of these: a carrier that misses a change sees it at its next switch. */
	const uint32_t before = atomic_exchange_explicit(&fz_sched.open, open, memory_order_relaxed);

	for (uint32_t i = 0; i < fz_sched.count; i++) {
		struct fz_processor *p = &fz_sched.processors[i];

		atomic_store_explicit(&p->closed, i >= open, memory_order_relaxed);
		if (i >= open)
			atomic_store_explicit(&p->yield_wanted, true, memory_order_relaxed);
	}
	/* Before fz_sched_kick() reads owners; pairs with go_idle(), which stores WAITING and then reads `closed`. */
	atomic_thread_fence(memory_order_seq_cst);
	/* One kick for fibers on processors that are closed now; or one for each processor that was closed before. */
	for (uint32_t i = before < open ? before : open - 1; i < open; i++)
		fz_sched_kick();
}

/* relaxed: written by the monitor, and by the thread that starts the runtime. */
static uint32_t allowed(void)
{
	return atomic_load_explicit(&fz_sched.allowed, memory_order_relaxed);
}

/* Does p run fibers, or calls that end soon? */
static bool runs_fibers(struct fz_processor *p, uint32_t *entries_before)
{
	/* relaxed: a sample. */
	const uint32_t entries = atomic_load_explicit(&p->entries, memory_order_relaxed);
	const enum fz_owner_state state = owner_load(p) & FZ_OWNER_STATE_MASK;
	const bool entered = entries != *entries_before;

	*entries_before = entries;
	return state == FZ_OWNER_USER || state == FZ_OWNER_RUNTIME ||
	       (state == FZ_OWNER_ANNOUNCED && entered);
}

static uint64_t runs_until_now(void)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < fz_sched.count; i++)
		n += fz_count_read(fz_sched.processors[i].counts, FZ_COUNT_switches);
	return n;
}

static void begin_window(void)
{
	load.ticks = 0;
	load.us = load.busy_us = 0;
	__builtin_memset(load.at_once, 0, sizeof(load.at_once));
	load.runs = runs_until_now();
	load.full = false;
}

static void grow_to(uint64_t open)
{
	const uint32_t twice = 2 * load.hold;

	load.hold = twice < HOLD_LEAST ? HOLD_LEAST : twice < HOLD_MOST ? twice : HOLD_MOST;
	load.held = load.hold;
	load.calm = 0;
	fz_provide_open(open < allowed() ? (uint32_t)open : allowed());
}

static void shrink_to(uint32_t open)
{
	if (fz_verbose && !load.said)
		fz_say("%u of %u processors are enough for the load now; the others open when it grows",
		       open, allowed());
	load.said = true;
	fz_provide_open(open);
}

/*
 * How many processors the load of the window needs, in eighths.  If a run of a fiber takes r, and processors run for the
 * part u of the time, a runnable fiber waits for at most about r * u / (1 - u); that must not be more than WAIT_US.  So
 * CPU-bound fibers, and others that run long, get all processors.
 */
static uint64_t eighths_needed(uint64_t runs)
{
	return 8 * load.busy_us * (WAIT_US * runs + load.busy_us) / (load.us * WAIT_US * runs);
}

/*
 * Returns the most processors that ran at once in 1/OFTEN of the looks or more.  The mean hides threads that are CPU-bound side
 * by side and then wait for each other: fewer processors would slow them, the load would fall, and more would be closed.
 */
static uint32_t often_at_once(uint32_t open)
{
	uint32_t ticks = 0;

	while (open > 1 && (ticks += load.at_once[open]) < load.ticks / OFTEN)
		open--;
	return open;
}

static void end_window(uint32_t open)
{
	const uint64_t runs = runs_until_now() - load.runs;
	const uint64_t need = eighths_needed(runs + !runs);
	/* Keep a quarter more than the load needs now: otherwise processors would be closed and opened again and again. */
	const uint64_t by_load = (need + need / 4) / 8 + 1;
	const uint32_t side_by_side = often_at_once(open);
	const uint64_t enough = by_load > side_by_side ? by_load : side_by_side;
	/* relaxed: a hint. */
	const bool quiet = atomic_exchange_explicit(&fz_sched.quiet_wanted, false, memory_order_relaxed);

	if (open < allowed() && (need / 8 >= open || quiet)) {
		grow_to(need / 8 >= open ? need / 8 + 1 : open + 1);
	} else if (load.held) {
		load.held--;
	} else {
		if (++load.calm >= load.hold) {
			load.calm = 0;
			load.hold /= 2;
		}
		/* If fibers hardly run, they may be alone (announce.h): closing processors would gain nothing. */
		if (enough < open && runs >= load.ticks)
			shrink_to(enough > open / 2 ? (uint32_t)enough : open / 2);
	}
	begin_window();
}

/* Time since the last look, us.  At most 8 times the plan: the monitor may have slept, or been delayed. */
static uint64_t passed_us(fz_nsec now, uint32_t ticks)
{
	enum { MOST = 8 };
	const uint64_t us = (now - load.looked) / FZ_USEC, most = (uint64_t)MOST * ticks * FZ_TICK_US;

	load.looked = now;
	return us < most ? us + !us : most;
}

void fz_provide_by_load(fz_nsec now, uint32_t ticks)
{
	/* relaxed, both: the monitor writes `open`; `idles` is a sample. */
	const uint32_t open = atomic_load_explicit(&fz_sched.open, memory_order_relaxed);
	const uint64_t us = passed_us(now, ticks);
	uint32_t running = 0, idles = 0;
	bool full;

	if (allowed() == 1)
		return;
	if (FZ_FAULT(wrong_load)) {
		fz_provide_open((uint32_t)(now / FZ_USEC % allowed()) + 1);
		return;
	}
	for (uint32_t i = 0; i < open; i++) {
		struct fz_processor *p = &fz_sched.processors[i];

		running += runs_fibers(p, &entries_seen[i]);
		idles += atomic_load_explicit(&p->idles, memory_order_relaxed);
	}
	full = running == open && open < allowed() &&
	       (fz_sched_has_queued() || fz_runq_length(&fz_sched.global) || fz_runq_length(&fz_sched.births));
	/* No processor has been idle since the last look, either. */
	if (full && load.full && idles == load.idles) {
		grow_to(2 * open);
		begin_window();
		return;
	}
	load.full = full;
	load.idles = idles;
	load.ticks += ticks;
	load.us += us;
	load.busy_us += running * us;
	load.at_once[running] += (uint16_t)ticks;
	if (load.ticks >= WINDOW_TICKS)
		end_window(open);
}

static uint32_t at_most_count(uint32_t open)
{
	return !open || open > fz_sched.count ? fz_sched.count : open;
}

static void allow(uint32_t open)
{
	atomic_store_explicit(&fz_sched.allowed, open, memory_order_relaxed);
	fz_provide_open(open);
}

void fz_provide_begin(uint32_t open)
{
	struct fz_fiber *self = fz_self();

	if (!open)
		return;
	fz_enter_runtime(self);
	allow(at_most_count(open));
	fz_leave_runtime(self);
	/* release: pairs with fz_provide_follow(). */
	atomic_store_explicit(&follows, true, memory_order_release);
}

void fz_provide_follow(fz_nsec now)
{
	uint32_t open, cpus;

	/* acquire: pairs with fz_provide_begin().  fz_provide_stop_following() waits for the monitor instead. */
	if (FZ_LIKELY(now < next_follow) || !atomic_load_explicit(&follows, memory_order_acquire))
		return;
	next_follow = now + FOLLOW_MS * FZ_MSEC;
	open = fz_cpus_quota();
	cpus = fz_cpus_allowed();
	open = at_most_count(cpus && cpus < open ? cpus : open);
	if (open == allowed())
		return;
	allow(open);
	if (fz_verbose)
		fz_say("the CPU limit now allows %u processor%s", open, fz_plural(open));
}

void fz_provide_stop_following(void)
{
	/* relaxed: when fz_monitor_update_mask() returns, the monitor sees it, and has ended a look that it had begun. */
	if (atomic_exchange_explicit(&follows, false, memory_order_relaxed))
		fz_monitor_update_mask();
}

void fz_provide_after_fork(void)
{
	atomic_store_explicit(&follows, false, memory_order_relaxed);
	next_follow = 0;
	lacked = starved = false;
	lacking = turns = first = 0;
	load = (struct load){ .ticks = 0 };
}
