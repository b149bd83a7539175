/* SPDX-License-Identifier: MIT */
/*
 * runtime/signal/route.c - brings an arrived signal to the thread that must have it: by the
 * monitor, and by threads that send to each other.
 */
#include <asm/errno.h>

#include "runtime/sched/carrier.h"
#include "runtime/sched/monitor.h"
#include "runtime/sched/park.h"
#include "runtime/sched/sched.h"
#include "runtime/signal/signal_internal.h"

/* A fiber may have a pending signal that it has not noticed. */
static _Atomic bool undelivered;

/* ---- delivery ----------------------------------------------------------- */

void fz_signal_undelivered(void)
{
	/* release: pairs with fz_signal_route(). */
	atomic_store_explicit(&undelivered, true, memory_order_release);
	fz_monitor_poke();
}

void fz_signal_deliver(struct fz_fiber *f, struct fz_signode *node)
{
	bool first = !fz_signal_due(f);
	uint64_t due;

	fz_sigqueue_add(f, node);
	/*
	 * f may change its mask while it is read here: then the monitor finds that f has a signal
	 * due.
	 */
	due = fz_signal_due(f);
	if (due && fz_wake_due(f))
		return;
	/* release: pairs with fz_signal_route(). */
	atomic_store_explicit(&undelivered, true, memory_order_release);
	/*
	 * Interrupt f at once: f must handle this signal before it sees what the sender does next.
	 * Only the first of a burst, since one interrupt for each would cost too much; the monitor
	 * repeats an interrupt that came at a bad moment.
	 */
	if (first && due && f != fz_self())
		fz_signal_interrupt(f, due);
}

void fz_signal_give_back(struct fz_fiber *self)
{
	struct fz_signode *node;

	while ((node = fz_sigqueue_take(self, ~(uint64_t)0))) {
		if (node->directed)
			fz_signode_free(node);
		else
			fz_signal_inbox_add(node);
	}
}

/* ---- by the monitor ----------------------------------------------------- */

struct choice {
	uint64_t bit;
	struct fz_fiber *waits, *takes;
};

static bool accepts(const struct fz_fiber *f, uint64_t bit)
{
	return (f->sig.sigwait_set | ~f->mask) & bit;
}

static bool choose(struct fz_fiber *f, void *arg)
{
	struct choice *c = arg;

	if (f->kind != FZ_KIND_FIBER)
		return false;
	if (f->sig.sigwait_set & c->bit)
		c->waits = f;
	else if (!(f->mask & c->bit))
		c->takes = f;
	return c->waits != NULL;
}

struct delivery {
	struct fz_signode *node;
	int maker;		/* tid of the thread that the kernel prefers to the main thread, or 0 */
	bool to_handlers_only;
	enum { NOBODY, DELIVERED, BY_DEFAULT } outcome;
};

/* Under the registry's lock, so that f does not end meanwhile. */
static void deliver_to(struct fz_fiber *f, struct delivery *d)
{
	uint64_t bit = fz_signal_bit(d->node->sig);

	if (f->kind != FZ_KIND_FIBER || !accepts(f, bit) ||
	    (d->to_handlers_only && f->sig.sigwait_set & bit))
		return;
	if (f->sig.sigwait_set & bit || (uintptr_t)fz_signal_action_get(d->node->sig).handler > 1) {
		fz_signal_deliver(f, d->node);
		d->outcome = DELIVERED;
	} else {
		d->outcome = BY_DEFAULT;
	}
}

static bool deliver_to_maker(struct fz_fiber *f, void *arg)
{
	struct delivery *d = arg;

	if (f->thread.tid != d->maker)
		return false;
	deliver_to(f, d);
	return true;
}

static bool deliver_to_main(struct fz_fiber *any, void *arg)
{
	(void)any;
	if (fz_fiber_main())
		deliver_to(fz_fiber_main(), arg);
	return true;
}

struct search {
	struct delivery *delivery;
	struct choice choice;
};

static bool deliver_to_any(struct fz_fiber *f, void *arg)
{
	struct search *s = arg;
	bool last = f->all.next == NULL;

	if (!choose(f, &s->choice) && !last)
		return false;
	f = s->choice.waits ? s->choice.waits : s->choice.takes;
	if (f)
		deliver_to(f, s->delivery);
	return true;
}

/*
 * Offer the signal in the kernel's order: a child's SIGCHLD to the thread that has made the child; then to the
 * main thread if it accepts the signal, then to a thread in sigwait for it, then to any thread that accepts it.
 */
static void offer(struct delivery *d)
{
	struct search search = { d, { .bit = fz_signal_bit(d->node->sig) } };

	/*
	 * Pairs with the fence in fz_signal_has_come(): a thread that changes its mask looks at
	 * fz_signal_arriving after that.
	 */
	atomic_thread_fence(memory_order_seq_cst);
	d->maker = fz_signal_maker(d->node->sig, (const struct fz_siginfo_head *)&d->node->info);
	if (d->maker)
		fz_fiber_each(deliver_to_maker, d);
	if (d->outcome == NOBODY)
		fz_fiber_each(deliver_to_main, d);
	if (d->outcome == NOBODY)
		fz_fiber_each(deliver_to_any, &search);
}

/*
 * No fiber accepts the signal: all block it, perhaps only until a running handler ends. Must it
 * stay in the process's queue, where it keeps its place before later signals, which are in the
 * kernel? Otherwise it goes back to the kernel, which alone knows signalfds and the masks of
 * threads that are no fibers.
 */
static bool must_stay_with_us(int sig)
{
	return !(fz_signal_left_to_kernel() & fz_signal_bit(sig)) || !fz_signal_others_exist();
}

static void find_thread(struct fz_signode *node)
{
	struct delivery d = { .node = node };
	int sig = node->sig;

	if (fz_signode_is_void(node)) {
		fz_signode_free(node);
		return;
	}
	/*
	 * Earlier signals of this number are still pending. A thread may have begun to accept them
	 * just now, and must get the earlier ones first.
	 */
	if (FZ_UNLIKELY(fz_signal_process_pending() & fz_signal_bit(sig))) {
		fz_signal_pending_add(node);
		return;
	}
	offer(&d);
	switch (d.outcome) {
	case DELIVERED:
		break;
	case BY_DEFAULT:
		fz_signode_free(node);
		if (!fz_signal_takes_no_notice(sig))
			fz_signal_default(sig);
		break;
	case NOBODY:
		if (must_stay_with_us(sig) || !fz_signal_hand_back(node))
			fz_signal_pending_add(node);
		break;
	}
}

/*
 * The standard signals that are pending for f. If such a signal is pending for the process, too, it
 * is not merged with f's: it waits until f has handled its own.
 */
static uint64_t would_merge(const struct fz_fiber *f)
{
	/* relaxed: a thread that has handled its own signal looks for the process's again. */
	return atomic_load_explicit(&f->pending, memory_order_relaxed) &
	       (fz_signal_bit(FZ_SIGNAL_FIRST_REALTIME) - 1);
}

static bool add_accepted(struct fz_fiber *f, void *arg)
{
	uint64_t *accepted = arg;

	if (f->kind == FZ_KIND_FIBER)
		*accepted |= (f->sig.sigwait_set | ~f->mask) & ~would_merge(f);
	return false;
}

/*
 * Offer the process's pending signals in set again, since a thread may accept them by now. Returns
 * the signals that must be offered again later, because a thread that begins to accept them would
 * not know of them. With the lock held.
 */
static uint64_t offer_pending(uint64_t set)
{
	bool others = fz_signal_others_exist();
	uint64_t left = fz_signal_left_to_kernel(), accepted = others ? left : 0;
	struct fz_signode *n, *next;

	/*
	 * While a signal is being offered it is in no queue, so count it as arriving. seq_cst:
	 * pairs with fz_signal_has_come().
	 */
	atomic_fetch_add_explicit(&fz_signal_arriving, 1, memory_order_seq_cst);
	fz_fiber_each(add_accepted, &accepted);
	set &= accepted & fz_signal_process_pending();
	for (n = set ? fz_signal_pending_take(set) : NULL; n; n = next) {
		next = n->next;
		find_thread(n);
	}
	/* release: what goes back to the process is pending; pairs with fz_signal_has_come(). */
	atomic_fetch_sub_explicit(&fz_signal_arriving, 1, memory_order_release);
	return fz_signal_process_pending() & (others ? ~(uint64_t)0 : ~left);
}

/* Offer the pending signals of number sig before one that comes later. With the lock held. */
static void offer_pending_before(int sig)
{
	if (FZ_UNLIKELY(fz_signal_process_pending() & fz_signal_bit(sig)))
		offer_pending(fz_signal_bit(sig));
}

/* With the lock held. */
static void route_inbox(void)
{
	struct fz_signode *n, *next;
	uint32_t count = 0;

	for (n = fz_signal_inbox_take(); n; n = next) {
		next = n->next;
		offer_pending_before(n->sig);
		find_thread(n);
		count++;
	}
	/* release: every signal is in a queue by now, where fz_signal_has_come() finds it. */
	atomic_fetch_sub_explicit(&fz_signal_arriving, count, memory_order_release);
}

void fz_signal_route_arrived(void)
{
	fz_signal_process_lock();
	route_inbox();
	fz_signal_process_unlock();
}

bool fz_signal_route(void)
{
	bool again = false, kept = false;

	fz_signal_process_lock();
	if (FZ_UNLIKELY(fz_signal_process_pending()))
		offer_pending(~(uint64_t)0);
	route_inbox();
	if (FZ_UNLIKELY(fz_signal_process_pending()))
		kept = offer_pending(0) != 0;
	fz_signal_process_unlock();
	if (atomic_exchange_explicit(&undelivered, false, memory_order_acquire))
		fz_fiber_each(fz_signal_nudge_if_due, &again);
	if (again)
		atomic_store_explicit(&undelivered, true, memory_order_relaxed);
	return again || kept;
}

/* ---- by the sending and by the accepting thread ----------------------------- */

bool fz_signal_send_to_process(int sig, const struct fz_siginfo *info)
{
	struct fz_fiber *self = fz_self();
	struct delivery d;

	/*
	 * A signal that threads take by sigwait always goes through the kernel: such threads are
	 * not always in sigwait, and one way for all signals keeps their order.
	 */
	if ((uintptr_t)fz_signal_action_get(sig).handler <= 1 ||
	    fz_signal_waited_for() & fz_signal_bit(sig) || fz_signal_main_is_wired())
		return false;
	d = (struct delivery){
		.node = fz_signode_new(sig, info, false, true),
		.to_handlers_only = true,
	};
	if (!d.node)
		return false;
	fz_enter_runtime(self);
	fz_signal_process_lock();
	route_inbox();
	offer_pending_before(sig);
	offer(&d);
	/*
	 * Make the signal pending for the process here; the kernel would only give it to the
	 * monitor, later. But leave it to the kernel if all fibers block it, even if one has just
	 * begun sigwait for it: earlier signals of this number are still there.
	 */
	if (d.outcome == NOBODY && !(fz_signal_blocked_by_all() & fz_signal_bit(sig)) &&
	    !fz_signal_others_exist()) {
		fz_signal_pending_add(d.node);
		d.outcome = DELIVERED;
	}
	fz_signal_process_unlock();
	fz_leave_runtime(self);
	if (d.outcome != DELIVERED) {
		fz_signode_free(d.node);
		return false;
	}
	if (atomic_load_explicit(&undelivered, memory_order_relaxed) ||
	    fz_signal_process_pending())
		fz_monitor_poke();
	return true;
}

bool fz_signal_has_come(uint64_t accept)
{
	/*
	 * The caller has changed its mask. A router that still read the old mask has counted the
	 * signal in fz_signal_arriving before, or made it pending for the process. The fence pairs
	 * with the one in offer(). acquire: a signal that is arriving no more is pending.
	 */
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&fz_signal_arriving, memory_order_acquire) ||
	    fz_signal_process_pending() & accept)
		return true;
	/* offer_pending() may have taken a signal between the loads: then it is still arriving, or already pending here. */
	atomic_thread_fence(memory_order_acquire);
	return atomic_load_explicit(&fz_signal_arriving, memory_order_relaxed);
}

void fz_signal_take_from_process(struct fz_fiber *self, uint64_t accept)
{
	struct fz_signode *n, *next;

	fz_signal_process_lock();
	for (n = fz_signal_pending_take(accept & ~would_merge(self)); n; n = next) {
		next = n->next;
		fz_sigqueue_add(self, n);
	}
	fz_signal_process_unlock();
}
