/* SPDX-License-Identifier: MIT */
#include "runtime/sched/monitor.h"

#include "runtime/base/host.h"
#include "runtime/base/time.h"
#include "runtime/fiber/cputime.h"
#include "runtime/fiber/pool.h"
#include "runtime/fiber/stack.h"
#include "runtime/sched/cancel.h"
#include "runtime/sched/carrier.h"
#include "runtime/sched/park.h"
#include "runtime/sched/poll_cycles.h"
#include "runtime/sched/provide.h"
#include "runtime/sched/sched.h"
#include "runtime/sched/sched_internal.h"
#include "runtime/sched/spawner.h"
#include "runtime/sched/trace.h"
#include "runtime/signal/monitor_mask.h"
#include "runtime/signal/signal.h"

enum {
	CHECK_TICKS = 100,	/* between calls of fz_monitor_check_waits() when all is quiet */
	SHRINK_TICKS = 1000,	/* between calls of shrink() */
	QUIET_TICKS = 20,	/* with no processor in use before the monitor sleeps */
	FAIR_TICKS = 10,	/* ticks outside the runtime after which a fiber loses its processor in any case */
	ASKED_TICKS = 100,	/* used instead of FAIR_TICKS after fz_signal_preempt() */
	YIELD_TICKS = 2,	/* ticks for which a fiber that enters the runtime may keep others waiting */
	WAITING_TICKS = 2,	/* the same for a fiber that does not enter it; about a time slice of Linux */
	/* Longer than a time slice of the kernel, for which a carrier waits that the kernel has preempted. */
	BLOCKED_TICKS = 3,	/* ticks without CPU time after which a carrier counts as blocked */
	LARGE_STACK = 64 * 1024,	/* bytes */
};

/* What the monitor saw of a processor at its last look. */
struct look {
	_Alignas(FZ_CACHE_LINE) uintptr_t owner;
	uint32_t entries, switches, calls;
	uint64_t cpu_time;	/* of the carrier, ns; 0: not read */
	bool used_cpu;		/* the carrier has been seen to use the CPU since its last entry */
	/* Consecutive ticks in which: entries is the same; switches is the same; no CPU time is used; work waits. */
	uint32_t same_entry, same_switch, idle, waiting;
};

/* Used by the monitor alone.  Whole pages, for fz_monitor_after_fork(). */
static _Alignas(4096) struct look looks[256];
_Static_assert(sizeof(looks) % 4096 == 0, "whole pages");

static struct {
	_Atomic uint32_t wakeup;	/* futex; 1: a poke that the monitor has not seen yet */
	_Atomic bool asleep;		/* the monitor is about to sleep for longer than a tick */
	_Atomic bool want_carrier;	/* set by any thread, cleared by the monitor */
	fz_nsec next_look;		/* when the tick is over */
	uint32_t ticks;			/* ticks from the last look to the next one */
	bool needed;			/* see fz_tick_choose(): others need a processor that is in use */
	uint32_t first;			/* the processor at which a look begins */

	uintptr_t tcb;			/* set before the monitor does anything else */
	_Atomic bool cancelled;		/* pthread_cancel of the monitor has returned */
	bool cancel_seen;		/* used by the monitor alone */
	bool unchecked;			/* what fz_monitor_check_waits() returned last */
} monitor;

bool (*fz_monitor_check_waits)(fz_nsec now, uint32_t entries, bool in_use);
bool (*fz_monitor_find_deadlocks)(fz_nsec now, uint32_t entries, bool in_use);

void fz_monitor_poke(void)
{
	/* release: pairs with the acquire in the monitor's loop. */
	if (!atomic_exchange_explicit(&monitor.wakeup, 1, memory_order_release))
		fz_sys_futex_wake(&monitor.wakeup, 1);
}

bool fz_monitor_is_asleep(void)
{
	/*
	 * Requeue the sleeper from its futex to the same futex: the kernel returns how many
	 * sleepers it moved.  If a filter forbids the call, the monitor counts as awake.
	 */
	return fz_syscall6(__NR_futex, (long)&monitor.wakeup, FUTEX_CMP_REQUEUE_PRIVATE, 0, 1,
			   (long)&monitor.wakeup, 0) == 1;
}

void fz_monitor_note_activity(void)
{
	/* seq_cst: pairs with the store of `asleep` in fz_monitor_run(). */
	if (FZ_UNLIKELY(atomic_load_explicit(&monitor.asleep, memory_order_seq_cst)))
		fz_monitor_poke();
}

void fz_monitor_want_carrier(void)
{
	/* If it was set already, the monitor tries again at its next tick, or when a carrier has become idle. */
	if (!atomic_exchange_explicit(&monitor.want_carrier, true, memory_order_acq_rel))
		fz_monitor_poke();
}

void fz_monitor_lack_carrier(void)
{
	/* relaxed: the lock of the idle list, taken afterwards, publishes it to fz_monitor_note_idle_carrier(). */
	atomic_store_explicit(&monitor.want_carrier, true, memory_order_relaxed);
}

void fz_monitor_note_idle_carrier(void)
{
	/* relaxed: ordered by the lock of the idle list, which the caller has released; see fz_monitor_lack_carrier(). */
	if (FZ_UNLIKELY(atomic_load_explicit(&monitor.want_carrier, memory_order_relaxed)))
		fz_monitor_poke();
}

unsigned long fz_monitor_handle(void)
{
	fz_monitor_update_mask();
	return monitor.tcb + (uintptr_t)fz_layout.handle;
}

bool fz_monitor_is_cancelled(void)
{
	/* relaxed: a thread that misses it cancels the monitor once more. */
	return atomic_load_explicit(&monitor.cancelled, memory_order_relaxed);
}

void fz_monitor_set_cancelled(void)
{
	/* release: pairs with look_whether_cancelled(). */
	atomic_store_explicit(&monitor.cancelled, true, memory_order_release);
}

static void look_whether_cancelled(void)
{
	if (FZ_UNLIKELY(!monitor.cancel_seen &&
			atomic_load_explicit(&monitor.cancelled, memory_order_acquire))) {
		monitor.cancel_seen = true;
		fz_cancel_disable(fz_self());
		fz_signal_learn_cancel();
	}
}

static struct fz_carrier *carrier_of(uintptr_t owner)
{
	return (struct fz_carrier *)(owner & ~(uintptr_t)FZ_OWNER_STATE_MASK);
}

/* Is the carrier in the call that it was in at the last look (runtime/sched/announce.h)? */
static bool is_long_call(struct look *look, struct fz_carrier *c, enum fz_owner_state state, bool same)
{
	uint32_t before = look->calls;

	if (state != FZ_OWNER_USER || !c)
		return false;
	/* relaxed: a sample. */
	look->calls = atomic_load_explicit(&c->calls, memory_order_relaxed);
	return same && look->calls == before && before & FZ_CARRIER_IN_CALL;
}

/*
 * p's carrier has not entered the runtime since the last look: has it stopped, in a call that the
 * library does not see, or because its fiber has been CPU-bound for too long?  before: the
 * carrier's CPU time at that look, ns; 0: not known.
 */
static bool has_stopped(struct fz_processor *p, struct look *look, uint64_t before, bool work)
{
	look->waiting = work ? look->waiting + 1 : 0;
	look->idle = before && look->cpu_time == before ? look->idle + 1 : 0;
	if (!work && look->same_entry < 2 * FAIR_TICKS)
		return false;
	/* Requests in flight need a carrier that receives their completions. */
	if (!work && !fz_backend_in_flight(&p->backend))
		return false;
	return look->idle >= BLOCKED_TICKS || look->same_entry >= FAIR_TICKS ||
	       look->waiting >= (fz_carrier_is_crowded() ? 1 : WAITING_TICKS);
}

/*
 * Let other fibers run on a processor whose carrier has stopped: take the processor.  If many
 * carriers already run without a processor (fz_carrier_is_crowded), preempt the fiber by a signal
 * instead, once it has used the CPU.
 */
static void let_others_run(struct fz_processor *p, const struct look *look)
{
	struct fz_carrier *c = carrier_of(look->owner);
	/* relaxed: if the carrier switches meanwhile, the next look sees it. */
	const struct fz_fiber *f = atomic_load_explicit(&c->running, memory_order_relaxed);
	/* relaxed: a hint.  True while the signal is on its way: the carrier may have to wait for its CPU to take it. */
	const bool asked = atomic_load_explicit(&c->preempted, memory_order_relaxed);

	/* A handler's frame takes up to 4 KB of the stack. */
	if (look->same_entry >= (asked ? ASKED_TICKS : FAIR_TICKS) ||
	    f->mem.stack_size < LARGE_STACK || !fz_carrier_is_crowded()) {
		fz_trace_note_preempted(c);
		fz_provide_carrier_for(p, look->owner);
	} else if (look->used_cpu) {
		fz_trace_note_preempted(c);
		fz_signal_preempt(c);
	}
}

static void found_running(struct fz_carrier *c)
{
	/*
	 * relaxed: if the carrier switches meanwhile, either fiber will do; the score of a carrier's own
	 * context means nothing.
	 */
	fz_fiber_found_running(atomic_load_explicit(&c->running, memory_order_relaxed));
}

/*
 * Has the fiber that runs now made no call yet, on a processor with few switches since the last
 * look?  While the program makes CPU-bound threads, such a fiber is preempted after one tick, so
 * each new thread delays the threads behind it by one tick only.
 */
static bool has_begun(const struct look *look, uint32_t entries, uint32_t switches)
{
	enum { FEW = 2 };
	const uint32_t switched = switches - look->switches;

	return switched <= FEW && entries - look->entries <= switched;
}

/* Returns true if the processor is in use. */
static bool look_at(struct fz_processor *p, struct look *look, fz_nsec now)
{
	uintptr_t owner = owner_load(p);
	enum fz_owner_state state = owner & FZ_OWNER_STATE_MASK;
	/* relaxed: samples. */
	uint32_t entries = atomic_load_explicit(&p->entries, memory_order_relaxed);
	uint32_t switches = atomic_load_explicit(&p->switches, memory_order_relaxed);
	bool work, used_cpu, same = look->entries == entries && look->owner == owner;
	bool begun = look->owner == owner && has_begun(look, entries, switches);
	uint64_t before = look->owner == owner ? look->cpu_time : 0;

	look->same_entry = same ? look->same_entry + 1 : 0;
	look->same_switch = look->switches == switches ? look->same_switch + 1 : 0;
	look->owner = owner;
	look->entries = entries;
	look->switches = switches;
	look->cpu_time = 0;
	if (state == FZ_OWNER_FREE || state == FZ_OWNER_WAITING)
		return false;
	if (carrier_of(owner))
		fz_cputime_sample(carrier_of(owner));
	monitor.needed |= fz_processor_needs_carrier(p);
	work = fz_processor_has_work(p, now) || fz_processor_is_awaited(p);
	if (work)
		atomic_store_explicit(&p->starving_wanted, true, memory_order_relaxed);
	/* Switches may be far apart: the next switch must look at timers and the backend. */
	if (fz_timers_earliest(&p->timers) <= now || fz_backend_queued(&p->backend) ||
	    fz_backend_wants_poll(&p->backend))
		atomic_store_explicit(&p->poll_wanted, true, memory_order_relaxed);
	if (state == FZ_OWNER_ANNOUNCED || is_long_call(look, carrier_of(owner), state, same)) {
		/* Requests in flight and deadlines need a carrier that waits for them. */
		work |= fz_backend_in_flight(&p->backend) || p->timers.used;
		if (state == FZ_OWNER_USER)
			fz_trace_note_preempted(carrier_of(owner));
		if (work)
			fz_provide_carrier_for(p, owner);
		else if (state == FZ_OWNER_USER)
			fz_processor_announce(p, owner);
		return work;
	}
	if (state != FZ_OWNER_USER || !carrier_of(owner))
		return true;
	look->cpu_time = fz_cputime_of_tid(carrier_of(owner)->tid);
	/* With less CPU time than that, the kernel runs other threads first, or the carrier is in a call. */
	used_cpu = before && look->cpu_time >= before + monitor.ticks * FZ_TICK_US * FZ_USEC / 4;
	look->used_cpu = used_cpu || (same && look->used_cpu);
	begun = begun && used_cpu && fz_runq_length(&fz_sched.births) && fz_carrier_is_crowded();
	/*
	 * One tick does not make a fiber CPU-bound, two do.  Count two for `begun`: the fiber then
	 * queues behind new fibers.
	 */
	for (int ticks = begun ? 2 : used_cpu; ticks; ticks--)
		found_running(carrier_of(owner));
	if (work && look->same_switch >= YIELD_TICKS)
		atomic_store_explicit(&p->yield_wanted, true, memory_order_relaxed);
	if (!same)
		look->idle = look->waiting = 0;
	if (same ? has_stopped(p, look, before, work || fz_backend_has_arrivals(&p->backend)) : begun)
		let_others_run(p, look);
	return true;
}

static bool look_at_all(fz_nsec now)
{
	bool in_use = false, stuck = false;
	uint32_t entries = 0;

	monitor.needed = false;
	fz_poll_cycles_measure(now);
	fz_clock_look();
	for (uint32_t i = 0; i < fz_sched.count; i++) {
		const uint32_t at = (monitor.first + i) % fz_sched.count;
		struct fz_processor *p = &fz_sched.processors[at];

		in_use |= look_at(p, &looks[at], now);
		entries += looks[at].entries;
		/* A fiber in the slot waits behind one that stays outside the runtime: other processors may take it. */
		if (looks[at].same_entry &&
		    atomic_load_explicit(&p->runq.slot, memory_order_relaxed)) {
			atomic_store_explicit(&p->yield_wanted, true, memory_order_relaxed);
			stuck = true;
		}
	}
	if (stuck || fz_runq_length(&fz_sched.global) || fz_runq_length(&fz_sched.births))
		fz_sched_kick();
	if (fz_monitor_check_waits)
		monitor.unchecked = fz_monitor_check_waits(now, entries, in_use);
	if (FZ_UNLIKELY(fz_monitor_find_deadlocks))
		monitor.unchecked |= fz_monitor_find_deadlocks(now, entries, in_use);
	return in_use;
}

/*
 * Give back memory and carriers that are not needed.  Returns false if nothing more can be given
 * back before a fiber runs again.
 */
static bool shrink(void)
{
	const bool ended = fz_carrier_shrink() != 0;

	fz_trace_shrink();
	return fz_pool_shrink() || ended;
}

static void set_tick(fz_nsec now, uint32_t ticks)
{
	const fz_nsec tick = ticks * FZ_TICK_US * FZ_USEC;

	monitor.ticks = ticks;
	monitor.next_look = now + (FZ_FAULT(short_tick) ? tick / 100 : FZ_FAULT(long_tick) ? 100 * tick : tick);
}

/*
 * The looks count ticks, so a poke before the tick is over makes no look: otherwise a fiber would
 * seem to have run, and a call to have taken, as many ticks as there were pokes.
 */
static bool tick_is_over(fz_nsec now)
{
	/* relaxed: as in fz_tick_note_runnable(). */
	if (monitor.ticks == FZ_TICK_LONG && !atomic_load_explicit(&fz_tick_is_long, memory_order_relaxed))
		set_tick(now, 1);
	return now >= monitor.next_look;
}

/* Returns true if a poke has come. */
static bool sleep_for(const struct __kernel_timespec *timeout)
{
	if (!atomic_load_explicit(&monitor.wakeup, memory_order_relaxed))
		fz_sys_futex_wait(&monitor.wakeup, 0, timeout);
	/* acquire: pairs with fz_monitor_poke(). */
	return atomic_exchange_explicit(&monitor.wakeup, 0, memory_order_acquire);
}

/* Sleep while nothing happens, but look each second whether CLOCK_REALTIME was set, if a fiber waits for a time of it. */
static void sleep_quietly(const struct __kernel_timespec *timeout)
{
	const struct __kernel_timespec a_second = fz_timespec(FZ_SEC);

	while (!timeout && fz_clock_is_awaited()) {
		if (sleep_for(&a_second))
			return;
		fz_clock_look();
	}
	sleep_for(timeout);
}

void fz_monitor_run(void)
{
	struct fz_fiber *self = fz_self();
	const struct __kernel_timespec a_while = fz_timespec(SHRINK_TICKS * FZ_TICK_US * FZ_USEC);
	const struct __kernel_timespec soon = fz_timespec(CHECK_TICKS * FZ_TICK_US * FZ_USEC);
	uint32_t quiet = 0, since_shrink = 0;
	bool shrunk = false;

	monitor.tcb = self->tcb;
	for (;;) {
		uint32_t wanted = fz_monitor_apply_mask();
		struct __kernel_timespec rest;
		bool again;
		fz_nsec now;

		look_whether_cancelled();
		/* Before the change of mask is reported, route all signals that came before it. */
		again = fz_signal_route();

		fz_monitor_mask_applies(wanted);
		/* Ask for a spare carrier in advance: when one is needed, a fiber may hold a lock that the spawner needs. */
		fz_spawner_want_spare();
		if (atomic_exchange_explicit(&monitor.want_carrier, false, memory_order_acquire) &&
		    !fz_provide_carrier()) {
			atomic_store_explicit(&monitor.want_carrier, true, memory_order_relaxed);
			again = true;
		}
		now = fz_now();
		if (again)
			quiet = 0;
		if (tick_is_over(now)) {
			quiet = look_at_all(now) || again ? 0 : quiet + monitor.ticks;
			since_shrink += monitor.ticks;
			fz_provide_by_load(now, monitor.ticks);
			set_tick(now, fz_tick_choose(quiet, again || monitor.needed));
			monitor.first = fz_provide_if_lacking(FZ_TICK_US * FZ_USEC);
			fz_provide_follow(now);
			if (since_shrink >= SHRINK_TICKS) {
				since_shrink = 0;
				shrink();
			}
		}
		if (quiet < QUIET_TICKS) {
			/* Carriers that are busy now may become idle: shrink again when quiet. */
			shrunk &= quiet != 0;
			rest = fz_timespec(monitor.next_look - now);
			sleep_for(&rest);
			continue;
		}
		/* seq_cst: ordered before one more look; pairs with fz_monitor_note_activity(). */
		atomic_store_explicit(&monitor.asleep, true, memory_order_seq_cst);
		if (!look_at_all(now))
			sleep_quietly(monitor.unchecked ? &soon : shrunk ? NULL : &a_while);
		atomic_store_explicit(&monitor.asleep, false, memory_order_relaxed);
		shrunk = !shrink();
		quiet = 0;
	}
	__builtin_unreachable();
}

void fz_monitor_after_fork(void)
{
	__builtin_memset(&monitor, 0, sizeof(monitor));
	fz_monitor_mask_after_fork();
	fz_sys_forget_pages(looks, sizeof(looks));
	fz_provide_after_fork();
	fz_poll_cycles_after_fork();
}
