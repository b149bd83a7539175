/* SPDX-License-Identifier: MIT */
/*
 * runtime/signal/route.c - from where a signal arrived to the thread that is to
 * have it: by the monitor, and by threads that send to each other.
 */
#include <asm/errno.h>

#include "runtime/sched/carrier.h"
#include "runtime/base/lock.h"
#include "runtime/sched/monitor.h"
#include "runtime/sched/park.h"
#include "runtime/sched/sched.h"
#include "runtime/signal/signal_internal.h"

_Atomic uint32_t fz_signal_arriving;

static struct {
	/*
	 * Whoever empties the inbox, or takes what is kept to offer it; keeps the order.  Taken
	 * in the runtime.
	 */
	struct fz_lock routing;
	/* Arrived where no handler could run; a stack, pushed in handlers. */
	_Atomic(struct fz_signode *) inbox;
	_Atomic uint64_t in_inbox;	/* standard signals coalesce there, too */
	/* Some fiber may have a pending signal and not know it. */
	_Atomic bool undelivered;

	_Atomic uint64_t signalfd_set;
	_Atomic int executing;		/* how many are in exec */
} route;

/* ---- arrival ------------------------------------------------------------ */

static void push_inbox(struct fz_signode *node)
{
	/* seq_cst: pairs with fz_signal_has_come(). */
	atomic_fetch_add_explicit(&fz_signal_arriving, 1, memory_order_seq_cst);
	node->next = atomic_load_explicit(&route.inbox, memory_order_relaxed);
	/* release: pairs with take_inbox(). */
	while (!atomic_compare_exchange_weak_explicit(&route.inbox, &node->next, node,
						      memory_order_release,
						      memory_order_relaxed))
		continue;
	fz_monitor_poke();
}

void fz_signal_leave_to_monitor(int sig, const void *info)
{
	uint64_t bit = fz_signal_bit(sig);
	struct fz_signode *node;

	node = fz_signode_arrived(sig, info, false);
	if (!node)
		return;
	/* relaxed: take_inbox() clears it before it looks. */
	if (fz_signode_coalesces(node) &&
	    atomic_fetch_or_explicit(&route.in_inbox, bit, memory_order_relaxed) & bit)
		fz_signode_free(node);
	else
		push_inbox(node);
}

/* In the order of arrival. */
static struct fz_signode *take_inbox(void)
{
	struct fz_signode *n, *next, *in_order = NULL;

	atomic_store_explicit(&route.in_inbox, 0, memory_order_relaxed);
	/* acquire: pairs with push_inbox(). */
	n = atomic_exchange_explicit(&route.inbox, NULL, memory_order_acq_rel);
	for (; n; n = next) {
		next = n->next;
		n->next = in_order;
		in_order = n;
	}
	return in_order;
}

/* ---- delivery ----------------------------------------------------------- */

void fz_signal_undelivered(void)
{
	/* release: pairs with fz_signal_route(). */
	atomic_store_explicit(&route.undelivered, true, memory_order_release);
	fz_monitor_poke();
}

void fz_signal_nudge(void)
{
	fz_signal_undelivered();
}

void fz_signal_deliver(struct fz_fiber *f, struct fz_signode *node)
{
	bool first = !fz_signal_due(f);
	uint64_t due;

	fz_sigqueue_add(f, node);
	/* Its mask may have changed while we looked: then the monitor finds it. */
	due = fz_signal_due(f);
	if (due && fz_wake_any(f, FZ_WHY_SIGNAL))
		return;
	/* release: pairs with fz_signal_route(). */
	atomic_store_explicit(&route.undelivered, true, memory_order_release);
	/*
	 * At once: it must not see what the sender does next before it has handled this.
	 * For each of a burst would be too much, and the monitor repeats it where it
	 * comes at a bad moment.
	 */
	if (first && due && f != fz_self())
		fz_signal_interrupt(f, due);
}

bool fz_signal_takes_no_notice(int sig)
{
	struct fz_action a = fz_signal_action_get(sig);

	return (uintptr_t)a.handler == 1 || (!a.handler && fz_signal_ignored_by_default(sig));
}

void fz_signal_discard(int sig)
{
	struct fz_fiber *self = fz_self();

	/* acquire: pairs with fz_sched_start(). */
	if (!atomic_load_explicit(&fz_sched.started, memory_order_acquire) ||
	    !fz_signal_takes_no_notice(sig))
		return;
	fz_enter_runtime(self);
	fz_sigqueue_discard(sig);
	/* Those on their way, so that none that comes later is taken for one of them. */
	fz_signal_route_arrived();
	/* And those that are kept. */
	if (fz_signal_process_pending() & fz_signal_bit(sig))
		fz_signal_pending_take(0);
	fz_leave_runtime(self);
	/* What is void is no longer before what else is pending for a thread. */
	fz_signal_undelivered();
}

void fz_signal_note_signalfd(uint64_t set)
{
	atomic_fetch_or_explicit(&route.signalfd_set, set, memory_order_relaxed);
}

/* A signalfd sees what is pending in the kernel only.  If no thread takes it there. */
static bool leave_to_signalfd(int sig)
{
	uint64_t bit = fz_signal_bit(sig);

	return atomic_load_explicit(&route.signalfd_set, memory_order_relaxed) & bit &&
	       fz_signal_left_to_kernel() & bit;
}

int fz_signal_send(struct fz_fiber *f, int sig, const struct fz_siginfo *info, bool limited)
{
	struct fz_fiber *self = fz_self();
	uint64_t bit = fz_signal_bit(sig);
	struct fz_signode *node;

	if (sig == SIG_KILL || sig == SIG_STOP) {
		fz_signal_default(sig);
		return 0;
	}
	/* It blocks it, as do all: the kernel keeps it. */
	if (f->mask & bit && leave_to_signalfd(sig) && !(f->sig.sigwait_set & bit)) {
		const struct fz_siginfo_head *head = (const void *)info;

		if (head->code != CODE_QUEUE)
			return (int)fz_syscall2(__NR_kill, fz_sys_getpid(), sig);
		return (int)fz_syscall3(__NR_rt_sigqueueinfo, fz_sys_getpid(), sig, (long)info);
	}
	if (!((f->mask | f->sig.sigwait_set) & bit)) {
		if (fz_signal_takes_no_notice(sig))
			return 0;
		if (!fz_signal_action_get(sig).handler) {
			fz_signal_default(sig);
			return 0;
		}
	}
	node = fz_signode_new(sig, info, true, limited);
	if (!node)
		return -EAGAIN;
	fz_enter_runtime(self);
	fz_signal_deliver(f, node);
	fz_leave_runtime(self);
	if (f != self)
		fz_monitor_poke();
	return 0;
}

void fz_signal_give_back(struct fz_fiber *self)
{
	struct fz_signode *node;

	while ((node = fz_sigqueue_take(self, ~(uint64_t)0))) {
		if (node->directed)
			fz_signode_free(node);
		else
			push_inbox(node);
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
	bool to_handlers_only;
	enum { NOBODY, DELIVERED, BY_DEFAULT } outcome;
};

/* Under the registry's lock, so that whoever is chosen does not end meanwhile. */
static bool deliver_to_main(struct fz_fiber *any, void *arg)
{
	struct delivery *d = arg;
	struct fz_fiber *f = fz_fiber_main();
	uint64_t bit = fz_signal_bit(d->node->sig);

	(void)any;
	if (!f || f->kind != FZ_KIND_FIBER || !accepts(f, bit) ||
	    (d->to_handlers_only && f->sig.sigwait_set & bit))
		return true;
	if (f->sig.sigwait_set & bit || (uintptr_t)fz_signal_action_get(d->node->sig).handler > 1) {
		fz_signal_deliver(f, d->node);
		d->outcome = DELIVERED;
	} else {
		d->outcome = BY_DEFAULT;
	}
	return true;
}

struct search {
	struct delivery *delivery;
	struct choice choice;
};

static bool deliver_to_any(struct fz_fiber *f, void *arg)
{
	struct search *s = arg;
	struct delivery *d = s->delivery;
	bool last = f->all.next == NULL;

	if (!choose(f, &s->choice) && !last)
		return false;
	if (s->choice.waits && d->to_handlers_only)
		return true;
	if (s->choice.waits) {
		fz_signal_deliver(s->choice.waits, d->node);
		d->outcome = DELIVERED;
	} else if (s->choice.takes) {
		if ((uintptr_t)fz_signal_action_get(d->node->sig).handler > 1) {
			fz_signal_deliver(s->choice.takes, d->node);
			d->outcome = DELIVERED;
		} else {
			d->outcome = BY_DEFAULT;
		}
	}
	return true;
}

/* The main thread if it accepts it, then who waits for it, then anyone: as the kernel does. */
static void offer(struct delivery *d)
{
	struct search search = { d, { .bit = fz_signal_bit(d->node->sig) } };

	/* Who changes its mask looks at fz_signal_arriving after that. */
	atomic_thread_fence(memory_order_seq_cst);
	fz_fiber_each(deliver_to_main, d);
	if (d->outcome == NOBODY)
		fz_fiber_each(deliver_to_any, &search);
}

/*
 * No fiber accepts it, but other threads may: the kernel knows, which has it pending from
 * now on.  False if it has no room for it.
 */
static bool hand_back(struct fz_signode *node)
{
	struct fz_siginfo_head *head = (struct fz_siginfo_head *)&node->info;
	int code = head->code;

	if (!fz_signode_settle(node)) {
		fz_signode_free(node);
		return true;
	}
	if (code == CODE_TKILL || (code >= 0 && code < CODE_MAX))
		head->code = CODE_HANDED_BACK - code;
	if (fz_syscall3(__NR_rt_sigqueueinfo, fz_sys_getpid(), node->sig, (long)head)) {
		head->code = code;
		return false;
	}
	fz_signode_free(node);
	return true;
}

static bool send_to_own_thread(const void *info, int sig)
{
	return fz_syscall4(__NR_rt_tgsigqueueinfo, fz_sys_getpid(), fz_sys_gettid(), sig,
			   (long)info) == 0;
}

bool fz_signal_to_kernel(struct fz_signode *node)
{
	struct fz_siginfo_head *head = (struct fz_siginfo_head *)&node->info;

	if (!node->directed)
		return hand_back(node);
	if (head->code == CODE_QUEUE)
		head->error = FZ_SIGNAL_DIRECTED;
	if (!send_to_own_thread(head, node->sig))
		return false;
	fz_signode_free(node);
	return true;
}

/* In order, to the end of a list. */
static void take_own(struct fz_fiber *self, struct fz_signode **end)
{
	struct fz_signode *node;

	while ((node = fz_sigqueue_take(self, ~(uint64_t)0))) {
		*end = node;
		end = &node->next;
	}
}

static void keep_in_kernel(int by)
{
	/* relaxed: the monitor answers after it has seen it. */
	atomic_fetch_add_explicit(&route.executing, by, memory_order_relaxed);
	fz_monitor_update_mask();
}

void fz_signal_before_exec(struct fz_fiber *self)
{
	struct fz_signode *pending, *next, **end = &pending;

	keep_in_kernel(1);
	fz_enter_runtime(self);
	/* relaxed: the monitor has left its handlers. */
	if (atomic_load_explicit(&fz_signal_arriving, memory_order_relaxed))
		fz_signal_route_arrived();
	fz_lock_acquire(&route.routing);
	pending = fz_signal_pending_take(~(uint64_t)0);
	fz_lock_release(&route.routing);
	fz_leave_runtime(self);
	if (!pending && !atomic_load_explicit(&self->pending, memory_order_relaxed))
		return;
	while (*end)
		end = &(*end)->next;
	take_own(self, end);
	/* What is pending for a kernel thread stays there if the call fails. */
	fz_fiber_wire(self);
	for (; pending; pending = next) {
		next = pending->next;
		if (fz_signode_settle(pending))
			send_to_own_thread(&pending->info, pending->sig);
		fz_signode_free(pending);
	}
}

void fz_signal_after_exec(void)
{
	keep_in_kernel(-1);
}

bool fz_signal_executing(void)
{
	return FZ_UNLIKELY(atomic_load_explicit(&route.executing, memory_order_relaxed));
}

/*
 * Nobody accepts it: blocked by all meanwhile, or until the handler has ended that runs.
 * With us it stays in order before what the kernel has; but the kernel alone knows of
 * threads that are no fibers, and of signalfds.
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
	/* Somebody may accept it only now: not before those that came first. */
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
		if (must_stay_with_us(sig) || !hand_back(node))
			fz_signal_pending_add(node);
		break;
	}
}

/* The one for the process is another one than that for the thread, which goes first. */
static uint64_t would_merge(const struct fz_fiber *f)
{
	/* relaxed: who has taken it looks again. */
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
 * Somebody may accept by now what nobody did.  Returns what must be tried again: who
 * accepts it next does not know of it.  With the lock held.
 */
static uint64_t offer_pending(uint64_t set)
{
	bool others = fz_signal_others_exist();
	uint64_t left = fz_signal_left_to_kernel(), accepted = others ? left : 0;
	struct fz_signode *n, *next;

	/* seq_cst: pairs with fz_signal_has_come(); they are on their way. */
	atomic_fetch_add_explicit(&fz_signal_arriving, 1, memory_order_seq_cst);
	fz_fiber_each(add_accepted, &accepted);
	set &= accepted & fz_signal_process_pending();
	for (n = set ? fz_signal_pending_take(set) : NULL; n; n = next) {
		next = n->next;
		find_thread(n);
	}
	atomic_fetch_sub_explicit(&fz_signal_arriving, 1, memory_order_relaxed);
	return fz_signal_process_pending() & (others ? ~(uint64_t)0 : ~left);
}

/* What came first goes first.  With the lock held. */
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

	for (n = take_inbox(); n; n = next) {
		next = n->next;
		offer_pending_before(n->sig);
		find_thread(n);
		count++;
	}
	/* relaxed: they are where who looks next finds them. */
	atomic_fetch_sub_explicit(&fz_signal_arriving, count, memory_order_relaxed);
}

void fz_signal_route_arrived(void)
{
	fz_lock_acquire(&route.routing);
	route_inbox();
	fz_lock_release(&route.routing);
}

bool fz_signal_route(void)
{
	bool again = false, kept = false;

	fz_lock_acquire(&route.routing);
	if (FZ_UNLIKELY(fz_signal_process_pending()))
		offer_pending(~(uint64_t)0);
	route_inbox();
	if (FZ_UNLIKELY(fz_signal_process_pending()))
		kept = offer_pending(0) != 0;
	fz_lock_release(&route.routing);
	if (atomic_exchange_explicit(&route.undelivered, false, memory_order_acquire))
		fz_fiber_each(fz_signal_nudge_if_due, &again);
	if (again)
		atomic_store_explicit(&route.undelivered, true, memory_order_relaxed);
	return again || kept;
}

/* ---- by who sends, and who accepts -------------------------------------- */

bool fz_signal_send_to_process(int sig, const struct fz_siginfo *info)
{
	struct fz_fiber *self = fz_self();
	struct delivery d;

	/* Those who wait are sometimes not waiting: one way for all keeps the order. */
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
	fz_lock_acquire(&route.routing);
	route_inbox();
	offer_pending_before(sig);
	offer(&d);
	/*
	 * The kernel would give it to the monitor, some time later.  Not if all block it, and
	 * somebody waits for it only now: what came before it is still there.
	 */
	if (d.outcome == NOBODY && !(fz_signal_blocked_by_all() & fz_signal_bit(sig)) &&
	    !fz_signal_others_exist()) {
		fz_signal_pending_add(d.node);
		d.outcome = DELIVERED;
	}
	fz_lock_release(&route.routing);
	fz_leave_runtime(self);
	if (d.outcome != DELIVERED) {
		fz_signode_free(d.node);
		return false;
	}
	if (atomic_load_explicit(&route.undelivered, memory_order_relaxed) ||
	    fz_signal_process_pending())
		fz_monitor_poke();
	return true;
}

bool fz_signal_has_come(uint64_t accept)
{
	/*
	 * The caller has changed its mask: who finds the old one has announced itself, or
	 * kept the signal, before.
	 */
	atomic_thread_fence(memory_order_seq_cst);
	return fz_signal_process_pending() & accept ||
	       atomic_load_explicit(&fz_signal_arriving, memory_order_relaxed);
}

void fz_signal_take_from_process(struct fz_fiber *self, uint64_t accept)
{
	struct fz_signode *n, *next;

	fz_lock_acquire(&route.routing);
	for (n = fz_signal_pending_take(accept & ~would_merge(self)); n; n = next) {
		next = n->next;
		fz_sigqueue_add(self, n);
	}
	fz_lock_release(&route.routing);
}

void fz_signal_route_after_fork(void)
{
	fz_signal_pending_after_fork();
	/* As those that are kept. */
	atomic_store_explicit(&route.inbox, NULL, memory_order_relaxed);
	atomic_store_explicit(&fz_signal_arriving, 0, memory_order_relaxed);
	atomic_store_explicit(&route.in_inbox, 0, memory_order_relaxed);
	atomic_store_explicit(&route.executing, 0, memory_order_relaxed);
	__builtin_memset(&route.routing, 0, sizeof(route.routing));
}
