/* SPDX-License-Identifier: MIT */
#include "runtime/sched.h"

#include <linux/mman.h>

#include "runtime/altstack.h"
#include "runtime/carrier.h"
#include "runtime/cputime.h"
#include "runtime/die.h"
#include "runtime/host.h"
#include "runtime/monitor.h"
#include "runtime/park.h"
#include "runtime/signal.h"

enum {
	FLUSH_AFTER = 128,	/* switches that a queued request may wait */
	POLL_AFTER = 128,	/* switches between looks at a busy ring */
	GLOBAL_AFTER = 61,	/* ... and at the global queue */
	REAP_MOST = 16,		/* completions at a time ... */
	REAP_BELOW = 2,		/* ... when no more than these are runnable */
	SLOT_STREAK = 32,	/* times the slot may jump the queue in a row */
};

struct fz_sched fz_sched;

static uintptr_t owner_word(struct fz_carrier *c, enum fz_owner_state state)
{
	return (uintptr_t)c | state;
}

static bool owner_cas(struct fz_processor *p, uintptr_t from, uintptr_t to)
{
	/*
	 * seq_cst: acquire takes over what the previous owner wrote, release
	 * hands over ours; and an idle carrier's WAITING must be ordered before
	 * its last look at the queues (pairs with fz_sched_kick()).
	 */
	return atomic_compare_exchange_strong_explicit(&p->owner, &from, to,
						       memory_order_seq_cst,
						       memory_order_relaxed);
}

static uintptr_t owner_load(struct fz_processor *p)
{
	/* seq_cst: pairs with owner_cas() in go_idle(), see fz_sched_kick(). */
	return atomic_load_explicit(&p->owner, memory_order_seq_cst);
}

struct fz_processor *fz_processor_of(const struct fz_fiber *self)
{
	return self->carrier->processor;
}

bool fz_sched_has_company(const struct fz_fiber *self)
{
	/* Not in the runtime, so the processor may be another's: only read. */
	struct fz_processor *p = self->carrier->processor;

	return atomic_load_explicit(&p->runq.length, memory_order_relaxed) ||
	       atomic_load_explicit(&p->runq.slot, memory_order_relaxed) ||
	       fz_backend_queued(&p->backend);
}

/* ---- finding work ------------------------------------------------------- */

static void note_kick(struct fz_processor *p, bool kicked)
{
	if (kicked)
		/* seq_cst: later pushes kick again, earlier ones are seen below. */
		atomic_store_explicit(&p->kicked, false, memory_order_seq_cst);
}

static void reap(struct fz_processor *p, uint32_t most)
{
	bool kicked = false;

	p->since_poll = 0;
	fz_backend_reap(&p->backend, most, &kicked);
	note_kick(p, kicked);
}

static void poll_backend(struct fz_processor *p)
{
	bool kicked = false;

	p->since_poll = 0;
	fz_backend_poll(&p->backend, &kicked);
	note_kick(p, kicked);
}

static void expire_timers(struct fz_processor *p)
{
	if (fz_timers_earliest(&p->timers) != FZ_FOREVER)
		fz_timers_expire(&p->timers, fz_now());
}

static struct fz_fiber *steal(struct fz_processor *p)
{
	uint32_t start = (uint32_t)(p - fz_sched.processors);

	for (uint32_t i = 1; i < fz_sched.count; i++) {
		struct fz_processor *victim =
			&fz_sched.processors[(start + i) % fz_sched.count];
		struct fz_fiber *f = fz_runq_steal(&victim->runq, &p->runq);

		if (f)
			return f;
	}
	return NULL;
}

/*
 * The slots of others: only when their processor has been running the same
 * fiber for long (the monitor says so), or it is not being run at all.
 */
static struct fz_fiber *steal_slot(struct fz_processor *p)
{
	for (uint32_t i = 0; i < fz_sched.count; i++) {
		struct fz_processor *victim = &fz_sched.processors[i];
		struct fz_fiber *f;

		/* relaxed: a hint. */
		if (victim == p ||
		    !atomic_load_explicit(&victim->yield_wanted, memory_order_relaxed))
			continue;
		f = fz_runq_pop_slot(&victim->runq);
		if (f)
			return f;
	}
	return NULL;
}

/* The next fiber that p can run without waiting, or NULL. */
static struct fz_fiber *pick(struct fz_processor *p)
{
	struct fz_fiber *f;
	uint32_t switches = atomic_load_explicit(&p->switches, memory_order_relaxed);

	/* relaxed: only this carrier writes it; the monitor samples. */
	atomic_store_explicit(&p->switches, switches + 1, memory_order_relaxed);
	atomic_store_explicit(&p->yield_wanted, false, memory_order_relaxed);

	/*
	 * In a batch of completions, what was touched to wake the first fiber would
	 * be out of the cache again when it runs: wake some, run them, go on.
	 */
	if (fz_backend_has_completions(&p->backend)) {
		if (FZ_UNLIKELY(fz_backend_is_crowded(&p->backend)))
			reap(p, UINT32_MAX);
		else if (fz_runq_length(&p->runq) <= REAP_BELOW)
			reap(p, REAP_MOST);
	}
	if (++p->since_poll >= POLL_AFTER ||
	    FZ_UNLIKELY(atomic_load_explicit(&p->poll_wanted, memory_order_relaxed))) {
		atomic_store_explicit(&p->poll_wanted, false, memory_order_relaxed);
		poll_backend(p);
		expire_timers(p);
		p->since_flush = 0;
	}
	if (fz_backend_queued(&p->backend) && ++p->since_flush >= FLUSH_AFTER) {
		p->since_flush = 0;
		fz_backend_submit(&p->backend);
	}
	if (switches % GLOBAL_AFTER == 0 && (f = fz_runq_pop(&fz_sched.global)))
		return f;
	if (p->next_streak < SLOT_STREAK) {
		f = fz_runq_pop_slot(&p->runq);
		if (f) {
			p->next_streak++;
			return f;
		}
	}
	p->next_streak = 0;
	f = fz_runq_pop(&p->runq);
	if (!f)
		f = fz_runq_pop_slot(&p->runq);
	return f ? f : fz_runq_pop(&fz_sched.global);
}

/* ---- making fibers runnable --------------------------------------------- */

/* Is somebody there who could run one more fiber?  Wake one of them. */
void fz_sched_kick(void)
{
	struct fz_processor *unused = NULL;

	for (uint32_t i = 0; i < fz_sched.count; i++) {
		struct fz_processor *p = &fz_sched.processors[i];

		switch (owner_load(p) & FZ_OWNER_STATE_MASK) {
		case FZ_OWNER_WAITING:
			/* seq_cst: pairs with the store in note_kick(). */
			if (atomic_exchange_explicit(&p->kicked, true,
						     memory_order_seq_cst))
				break;
			fz_backend_kick(&p->backend);
			return;
		case FZ_OWNER_FREE:
		case FZ_OWNER_ANNOUNCED:
			if (!unused)
				unused = p;
			break;
		default:
			break;
		}
	}
	if (unused)
		fz_monitor_want_carrier();
}

/* NULL also for a fiber that is in here without one: fz_lot_wake_staying(). */
static struct fz_processor *own_processor(struct fz_fiber *self)
{
	struct fz_processor *p;

	if (self->kind != FZ_KIND_FIBER && self->kind != FZ_KIND_CARRIER)
		return NULL;
	p = self->carrier->processor;
	return p && owner_load(p) == owner_word(self->carrier, FZ_OWNER_RUNTIME) ? p : NULL;
}

void fz_sched_ready(struct fz_fiber *fiber)
{
	struct fz_processor *p = own_processor(fz_self());

	if (!p) {
		fz_runq_push(&fz_sched.global, fiber);
		fz_sched_kick();
		return;
	}
	fz_runq_push_slot(&p->runq, fiber);
	/* One in the slot is for this carrier; more is enough to share. */
	if (fz_sched.count > 1 && fz_runq_length(&p->runq))
		fz_sched_kick();
}

/* ---- switching ---------------------------------------------------------- */

/* On the new context, self: deal with the one that was left. */
static void finish_switch(struct fz_fiber *self)
{
	struct fz_carrier *c = self->carrier;
	struct fz_fiber *left = c->left;
	enum fz_left how = c->left_how;

	c->left_how = FZ_LEFT_NOTHING;
	/* Only now: the kernel changes no alternate stack that is in use. */
	if (FZ_UNLIKELY(self->has_alt_stack || c->alt_stack.sp || c->report_stack.sp))
		fz_alt_stack_load(self, c);
	switch (how) {
	case FZ_LEFT_NOTHING:
		break;
	case FZ_LEFT_PARKED:
		fz_wait_context_saved(left);
		break;
	case FZ_LEFT_YIELDED:
		fz_runq_push(&c->processor->runq, left);
		break;
	case FZ_LEFT_ENDED:
		fz_fiber_buried(left);
		break;
	case FZ_LEFT_NO_PROCESSOR:
		fz_runq_push(&fz_sched.global, left);
		fz_sched_kick();
		break;
	}
}

static void switch_to(struct fz_carrier *c, struct fz_fiber *from, struct fz_fiber *to,
		      enum fz_left how)
{
	c->left = from;
	c->left_how = how;
	to->carrier = c;
	/* acquire: pairs with fz_cputime_of(); the mark is there. */
	if (FZ_UNLIKELY(atomic_load_explicit(&fz_cputime_exact, memory_order_acquire)))
		fz_cputime_switch(c, from);
	/* release: pairs with fz_cputime_sample() and running_time(). */
	atomic_store_explicit(&c->running, to, memory_order_release);
	/* A carrier's own context runs no handler of the program's. */
	if (to->kind == FZ_KIND_FIBER && to->mask != c->kernel_mask)
		fz_signal_load_mask(c, to->mask);
	fz_switch(&from->sp, to->sp, to->tcb);
	finish_switch(from);
}

/* Leave `self` for whatever is next; its own fate is `how`. */
static void switch_away(struct fz_fiber *self, enum fz_left how)
{
	struct fz_carrier *c = self->carrier;
	struct fz_fiber *next = pick(c->processor);

	if (!next)
		next = c->context;
	/* Nobody queues a fiber before its context is saved. */
	FZ_ASSERT(next != self);
	switch_to(c, self, next, how);
}

void fz_sched_arrived(struct fz_fiber *self)
{
	finish_switch(self);
}

void fz_sched_park(struct fz_fiber *self)
{
	switch_away(self, FZ_LEFT_PARKED);
}

bool fz_sched_yield(struct fz_fiber *self)
{
	struct fz_carrier *c = self->carrier;
	struct fz_fiber *next = pick(c->processor);

	if (next)
		switch_to(c, self, next, FZ_LEFT_YIELDED);
	else if (fz_backend_queued(&c->processor->backend))
		fz_backend_submit(&c->processor->backend);
	return next != NULL;
}

void fz_sched_end(struct fz_fiber *self)
{
	switch_away(self, FZ_LEFT_ENDED);
}

/* ---- having a processor ------------------------------------------------- */

/* Take any processor that is not in use. */
static bool take_unused(struct fz_carrier *c)
{
	struct fz_processor *first = c->processor;
	uint32_t start = first ? (uint32_t)(first - fz_sched.processors) : 0;

	for (uint32_t i = 0; i < fz_sched.count; i++) {
		struct fz_processor *p = &fz_sched.processors[(start + i) % fz_sched.count];
		uintptr_t owner = owner_load(p);

		switch (owner & FZ_OWNER_STATE_MASK) {
		case FZ_OWNER_WAITING:
		case FZ_OWNER_ANNOUNCED:
		case FZ_OWNER_FREE:
			if (!owner_cas(p, owner, owner_word(c, FZ_OWNER_RUNTIME)))
				break;
			c->processor = p;
			/* Its carrier sits in the kernel: send it to the idle list. */
			if ((owner & FZ_OWNER_STATE_MASK) == FZ_OWNER_WAITING) {
				fz_epoll_note_loser(&p->backend.epoll, 1);
				fz_backend_kick(&p->backend);
			}
			fz_monitor_note_activity();
			return true;
		default:
			break;
		}
	}
	return false;
}

static void get_processor_slowly(struct fz_fiber *self)
{
	struct fz_carrier *c = self->carrier;

	if (take_unused(c))
		return;
	/*
	 * Queue up.  The carrier's context pushes us once we are off the stack,
	 * and sleeps; we continue on whatever carrier picks us.
	 */
	c->processor = NULL;
	switch_to(c, self, c->context, FZ_LEFT_NO_PROCESSOR);
}

bool fz_sched_move(struct fz_fiber *self)
{
	struct fz_carrier *c = self->carrier;

	if (!fz_carrier_hand_off(c->processor))
		return false;
	c->processor = NULL;
	switch_to(c, self, c->context, FZ_LEFT_NO_PROCESSOR);
	return true;
}

static bool back_from_announced(struct fz_processor *p, struct fz_carrier *c)
{
	if (!owner_cas(p, owner_word(c, FZ_OWNER_ANNOUNCED), owner_word(c, FZ_OWNER_RUNTIME)))
		return false;
	/* It took long, perhaps, and the monitor went to sleep. */
	fz_monitor_note_activity();
	return true;
}

/*
 * More than the runtime uses of a fiber's stack (measured: 2.9 KB), and the stacks that can
 * spare it.
 */
enum { ROOM_NEEDED = 3072, LARGE_STACK = 65536 };

/*
 * The program is about to run off its stack, and would in the middle of the runtime: let it
 * fault here, where a handler of its own may run, and leave by siglongjmp.  Of another
 * stack than the thread's nothing is known.
 */
static inline void probe_stack(const struct fz_fiber *self)
{
	const char *here = __builtin_frame_address(0), *low = self->stack;

	if (FZ_UNLIKELY((uintptr_t)here - (uintptr_t)low < ROOM_NEEDED) && self->guard_size &&
	    self->stack_size >= LARGE_STACK)
		/* The guard's last byte, read for nothing else. */
		__asm__ volatile("" : : "r"(low[-1]));
}

void fz_enter_runtime(struct fz_fiber *self)
{
	struct fz_carrier *c;
	struct fz_processor *p;

	probe_stack(self);
	FZ_ASSERT(atomic_load_explicit(&self->in_runtime, memory_order_relaxed) == 0);
	/* relaxed, and a signal fence: only handlers on this thread look. */
	atomic_store_explicit(&self->in_runtime, 1, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	if (self->kind != FZ_KIND_FIBER)
		return;
	c = self->carrier;
	p = c->processor;
	if (FZ_LIKELY(owner_cas(p, owner_word(c, FZ_OWNER_USER),
				owner_word(c, FZ_OWNER_RUNTIME))) ||
	    back_from_announced(p, c)) {
		uint32_t n = atomic_load_explicit(&p->entries, memory_order_relaxed);

		/* relaxed: the monitor samples. */
		atomic_store_explicit(&p->entries, n + 1, memory_order_relaxed);
		if (FZ_UNLIKELY(atomic_load_explicit(&p->yield_wanted,
						     memory_order_relaxed)))
			fz_sched_yield(self);
		return;
	}
	get_processor_slowly(self);
}

void fz_leave_runtime(struct fz_fiber *self)
{
	if (self->kind == FZ_KIND_FIBER) {
		struct fz_carrier *c;

		/*
		 * What has come for the process is handled before what its sender did next is
		 * seen.  relaxed: it came to this kernel thread, or the monitor will see to it.
		 */
		if (FZ_UNLIKELY(atomic_load_explicit(&fz_signal_arriving, memory_order_relaxed)) &&
		    !self->blocks)
			fz_signal_route_arrived();
		c = self->carrier;

		/* release: pairs with owner_cas() of who takes it; nobody else
		 * may change RUNTIME. */
		atomic_store_explicit(&c->processor->owner, owner_word(c, FZ_OWNER_USER),
				      memory_order_release);
	}
	atomic_signal_fence(memory_order_seq_cst);
	atomic_store_explicit(&self->in_runtime, 0, memory_order_relaxed);
	/* relaxed: who sets it after this also sends us a real signal. */
	if (FZ_UNLIKELY(atomic_load_explicit(&self->pending, memory_order_relaxed) &
			~self->mask))
		fz_signal_run_pending(self);
	/* relaxed: likewise. */
	if (FZ_UNLIKELY(atomic_load_explicit(&self->cancel_sent, memory_order_relaxed)) &&
	    fz_cancel_is_asynchronous(self))
		fz_host.test_cancel();
}

bool fz_processor_has_work(struct fz_processor *p, fz_nsec now)
{
	return fz_runq_length(&p->runq) ||
	       atomic_load_explicit(&p->runq.slot, memory_order_relaxed) ||
	       fz_runq_length(&fz_sched.global) || fz_backend_has_completions(&p->backend) ||
	       fz_timers_earliest(&p->timers) <= now;
}

bool fz_processor_take(struct fz_processor *p, uintptr_t seen_owner)
{
	struct fz_carrier *c = (void *)(seen_owner & ~(uintptr_t)FZ_OWNER_STATE_MASK);

	/* RUNTIME in nobody's name: it is ours until it is given on. */
	if (!owner_cas(p, seen_owner, owner_word(NULL, FZ_OWNER_RUNTIME)))
		return false;
	if (fz_carrier_hand_off(p))
		return true;
	/* No thread to be had yet.  Whoever comes back from a call may take it. */
	atomic_store_explicit(&p->owner, owner_word(c, FZ_OWNER_ANNOUNCED),
			      memory_order_seq_cst);
	return false;
}

void fz_processor_announce(struct fz_processor *p, uintptr_t seen_owner)
{
	struct fz_carrier *c = (void *)(seen_owner & ~(uintptr_t)FZ_OWNER_STATE_MASK);

	owner_cas(p, seen_owner, owner_word(c, FZ_OWNER_ANNOUNCED));
}

/* Requests and deadlines that somebody must wait for, besides runnable fibers. */
static bool needs_carrier(struct fz_processor *p)
{
	return fz_backend_in_flight(&p->backend) || p->timers.used || fz_processor_has_work(p, 0);
}

void fz_sched_give_up(struct fz_fiber *self)
{
	struct fz_processor *p = fz_processor_of(self);

	if (fz_backend_queued(&p->backend))
		fz_backend_submit(&p->backend);
	if (fz_carrier_hand_off(p))
		return;
	/* seq_cst: the monitor finds it by looking. */
	atomic_store_explicit(&p->owner, owner_word(NULL, FZ_OWNER_ANNOUNCED),
			      memory_order_seq_cst);
	fz_monitor_want_carrier();
}

void fz_announce(struct fz_fiber *self)
{
	struct fz_processor *p;
	bool wanted;

	if (self->kind != FZ_KIND_FIBER)
		return;
	fz_enter_runtime(self);
	p = fz_processor_of(self);
	if (fz_backend_queued(&p->backend))
		fz_backend_submit(&p->backend);
	wanted = needs_carrier(p);
	if (!wanted || !fz_carrier_hand_off(p)) {
		/* seq_cst: a pusher that misses this finds the monitor awake. */
		atomic_store_explicit(&p->owner,
				      owner_word(self->carrier, FZ_OWNER_ANNOUNCED),
				      memory_order_seq_cst);
		if (wanted)
			fz_monitor_want_carrier();
	}
	atomic_signal_fence(memory_order_seq_cst);
	atomic_store_explicit(&self->in_runtime, 0, memory_order_relaxed);
	if (FZ_UNLIKELY(atomic_load_explicit(&self->pending, memory_order_relaxed) &
			~self->mask))
		fz_signal_run_pending(self);
}

/* ---- a carrier's own context -------------------------------------------- */

/*
 * Nothing to run: wait in the kernel.  If the processor is taken meanwhile, the
 * carrier has none afterwards.
 */
static void go_idle(struct fz_carrier *c, struct fz_processor *p)
{
	uintptr_t waiting = owner_word(c, FZ_OWNER_WAITING);
	struct fz_arrivals arrivals;
	uint32_t published;
	bool work = false, kicked = false;

	arrivals.count = 0;
	if (!fz_backend_arm(&p->backend, c->tid)) {
		expire_timers(p);
		return;
	}
	/*
	 * Nothing is delivered here while it waits: the mask of the fiber that
	 * ran last may not be what that fiber has by then.
	 */
	if (c->kernel_mask != FZ_SIGNALS_ALL)
		fz_signal_load_mask(c, FZ_SIGNALS_ALL);
	published = fz_backend_publish(&p->backend);
	atomic_store_explicit(&p->owner, waiting, memory_order_seq_cst);
	/* Pushed before they could see that we wait: look once more. */
	for (uint32_t i = 0; i < fz_sched.count && !work; i++)
		work = fz_runq_length(&fz_sched.processors[i].runq) != 0;
	if (!work && !fz_runq_length(&fz_sched.global))
		fz_backend_wait(&p->backend, published, fz_timers_earliest(&p->timers),
				&arrivals);
	if (!owner_cas(p, waiting, owner_word(c, FZ_OWNER_RUNTIME))) {
		c->processor = NULL;
		fz_epoll_note_loser(&p->backend.epoll, -1);
		fz_backend_deliver(&p->backend, &arrivals, false, &kicked);
		return;
	}
	p->since_flush = p->since_poll = 0;
	fz_backend_deliver(&p->backend, &arrivals, true, &kicked);
	fz_backend_reap(&p->backend, REAP_MOST, &kicked);
	note_kick(p, kicked);
	expire_timers(p);
	fz_monitor_note_activity();
}

void fz_sched_run_carrier(struct fz_carrier *c)
{
	struct fz_fiber *self = c->context;

	for (;;) {
		struct fz_processor *p = c->processor;
		struct fz_fiber *next;

		if (!p) {
			if (!fz_carrier_sleep(c))
				return;
			continue;
		}
		next = pick(p);
		if (!next)
			next = steal(p);
		if (!next)
			next = steal_slot(p);
		if (next)
			switch_to(c, self, next, FZ_LEFT_NOTHING);
		else
			go_idle(c, p);
	}
}

/* ---- descriptors of ours ------------------------------------------------ */

uint32_t fz_sched_fd_count(void)
{
	return fz_sched.count * FZ_BACKEND_FDS;
}

int fz_sched_fd(uint32_t i)
{
	return fz_backend_fd(&fz_sched.processors[i / FZ_BACKEND_FDS].backend,
			     i % FZ_BACKEND_FDS);
}

bool fz_sched_owns_fd(int fd)
{
	if (fd < 0)
		return false;
	for (uint32_t i = 0; i < fz_sched_fd_count(); i++)
		if (fz_sched_fd(i) == fd)
			return true;
	return false;
}

int fz_sched_vacate_fd(int fd)
{
	int err = 0;

	for (uint32_t i = 0; i < fz_sched.count && !err; i++)
		err = fz_backend_vacate_fd(&fz_sched.processors[i].backend, fd);
	return err;
}

/* ---- start -------------------------------------------------------------- */

int fz_sched_start(uint32_t count, enum fz_backend_kind backend, const char **ret_why)
{
	size_t size = count * sizeof(struct fz_processor);
	long mem = fz_sys_mmap(size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
	int err;

	*ret_why = "no memory";
	if (fz_sys_failed(mem))
		return (int)mem;
	fz_sched.processors = (struct fz_processor *)mem;
	for (uint32_t i = 0; i < count; i++)
		fz_timers_init(&fz_sched.processors[i].timers);
	err = fz_backends_init(&fz_sched.processors->backend, count,
			       sizeof(struct fz_processor), backend, ret_why);
	if (err) {
		fz_syscall2(__NR_munmap, mem, (long)size);
		fz_sched.processors = NULL;
		return err;
	}
	fz_sched.count = count;
	fz_fiber_adopt_main();
	err = fz_monitor_start();
	if (err)
		fz_die("cannot start the monitor thread, error %d", -err);
	atomic_store_explicit(&fz_sched.started, true, memory_order_release);
	return 0;
}

void fz_sched_after_fork(void)
{
	if (!fz_sched.processors)
		return;
	fz_backends_fini(&fz_sched.processors->backend, fz_sched.count,
			 sizeof(struct fz_processor));
	fz_epoll_after_fork();
	fz_syscall2(__NR_munmap, (long)fz_sched.processors,
		    (long)(fz_sched.count * sizeof(struct fz_processor)));
	__builtin_memset(&fz_sched, 0, sizeof(fz_sched));
}
