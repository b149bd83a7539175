/* SPDX-License-Identifier: MIT */
/*
 * runtime/signal_route.c - from where a signal arrived to the thread that is to
 * have it: by the monitor, and by threads that send to each other.
 */
#include <asm/errno.h>
#include <ucontext.h>

#include "runtime/altstack.h"
#include "runtime/carrier.h"
#include "runtime/host.h"
#include "runtime/lock.h"
#include "runtime/monitor.h"
#include "runtime/park.h"
#include "runtime/sched.h"
#include "runtime/signal_internal.h"

_Atomic uint32_t fz_signal_arriving;

static struct {
	/* Whoever empties the inbox; keeps the order. */
	struct fz_lock routing;
	/* Arrived where no handler could run; a stack, pushed in handlers. */
	_Atomic(struct fz_signode *) inbox;
	_Atomic uint64_t in_inbox;	/* standard signals coalesce there, too */
	/* Some fiber may have a pending signal and not know it. */
	_Atomic bool undelivered;

	/*
	 * Nobody accepts these any more, or not yet: pending for the process, in the
	 * order of arrival.  Guarded by lock, taken in the runtime.
	 */
	struct fz_lock lock;
	struct fz_signode *first, *last;
	_Atomic uint64_t pending;

	_Atomic uint64_t signalfd_set;
	_Atomic int executing;		/* how many are in exec */

	void (*setxid_handler)(int, void *, void *);
	void (*cancel_handler)(int, void *, void *);
	_Atomic bool cancels_by_place;	/* fz_signal_learn_cancel() */
} route;

/* ---- arrival ------------------------------------------------------------ */

static void push_inbox(struct fz_signode *node)
{
	/* relaxed: a handler of this thread's, or the monitor, which looks anyway. */
	atomic_fetch_add_explicit(&fz_signal_arriving, 1, memory_order_relaxed);
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

	/* relaxed: take_inbox() clears it before it looks. */
	if (sig < FZ_SIGNAL_FIRST_REALTIME &&
	    atomic_fetch_or_explicit(&route.in_inbox, bit, memory_order_relaxed) & bit)
		return;
	node = fz_signode_new(sig, info, false, false);
	if (node)
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

/* ---- pending for the process -------------------------------------------- */

uint64_t fz_signal_process_pending(void)
{
	/* relaxed: a snapshot. */
	return atomic_load_explicit(&route.pending, memory_order_relaxed);
}

static void keep(struct fz_signode *node)
{
	uint64_t bit = fz_signal_bit(node->sig);

	fz_lock_acquire(&route.lock);
	if (node->sig < FZ_SIGNAL_FIRST_REALTIME &&
	    atomic_load_explicit(&route.pending, memory_order_relaxed) & bit) {
		fz_signode_free(node);
	} else {
		node->next = NULL;
		if (route.first)
			route.last->next = node;
		else
			route.first = node;
		route.last = node;
		atomic_fetch_or_explicit(&route.pending, bit, memory_order_relaxed);
	}
	fz_lock_release(&route.lock);
}

/* Take those whose signal is accepted out of the list. */
static struct fz_signode *unkeep(uint64_t accept)
{
	struct fz_signode *taken = NULL, **taken_end = &taken, *n, *next;
	struct fz_signode *left = NULL, **left_end = &left;
	uint64_t pending = 0;

	fz_lock_acquire(&route.lock);
	route.last = NULL;
	for (n = route.first; n; n = next) {
		next = n->next;
		n->next = NULL;
		if (fz_signal_bit(n->sig) & accept) {
			*taken_end = n;
			taken_end = &n->next;
		} else {
			*left_end = route.last = n;
			left_end = &n->next;
			pending |= fz_signal_bit(n->sig);
		}
	}
	route.first = left;
	atomic_store_explicit(&route.pending, pending, memory_order_relaxed);
	fz_lock_release(&route.lock);
	return taken;
}

void fz_signal_take_from_process(struct fz_fiber *self, uint64_t accept)
{
	struct fz_signode *next;

	for (struct fz_signode *n = unkeep(accept); n; n = next) {
		next = n->next;
		fz_sigqueue_add(self, n);
	}
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

/* Which of both is to interrupt it: what a call does then is decided by SA_RESTART. */
static int interrupting_signal(const struct fz_fiber *f, uint64_t due)
{
	for (; due; due &= due - 1)
		if (!(fz_signal_action_get(__builtin_ctzll(due) + 1).flags & FLAG_RESTART))
			return SIG_CANCEL;
	return fz_cancel_is_asynchronous(f) ? SIG_CANCEL : SIG_SETXID;
}

static void send_nudge(struct fz_carrier *c, int sig)
{
	struct fz_siginfo siginfo;

	/*
	 * They queue, and would all come at once on top of each other.  relaxed: a hint; one
	 * that finds nothing to do makes room for the next.
	 */
	if (atomic_exchange_explicit(&c->nudged, true, memory_order_relaxed))
		return;
	/* Not SI_TKILL, which is libc's own use of these signals. */
	siginfo = fz_signal_info(sig, CODE_QUEUE, (uintptr_t)c);
	if (fz_syscall4(__NR_rt_tgsigqueueinfo, fz_sys_getpid(), c->tid, sig, (long)&siginfo))
		atomic_store_explicit(&c->nudged, false, memory_order_relaxed);
}

/*
 * Running user code, where it does not look: interrupt its kernel thread.  What is
 * pending stays with the fiber, so that nothing is lost if it is not there.
 */
static void interrupt(struct fz_fiber *f, uint64_t due)
{
	if (f->carrier && !atomic_load_explicit(&f->in_runtime, memory_order_relaxed))
		send_nudge(f->carrier, interrupting_signal(f, due));
}

void fz_signal_recall(struct fz_carrier *c)
{
	/* relaxed: the signal orders it. */
	atomic_store_explicit(&c->recalled, true, memory_order_relaxed);
	send_nudge(c, SIG_SETXID);
}

static uint64_t due_to(const struct fz_fiber *f)
{
	return atomic_load_explicit(&f->pending, memory_order_seq_cst) &
	       (~f->mask | f->sigwait_set) & ~FZ_SIGNAL_HANDLED;
}

void fz_signal_deliver(struct fz_fiber *f, struct fz_signode *node)
{
	bool first = !due_to(f);
	uint64_t due;

	fz_sigqueue_add(f, node);
	if (fz_wake_any(f, FZ_WHY_SIGNAL))
		return;
	/* release: pairs with fz_signal_route(). */
	atomic_store_explicit(&route.undelivered, true, memory_order_release);
	/*
	 * At once: it must not see what the sender does next before it has handled this.
	 * For each of a burst would be too much, and the monitor repeats it where it
	 * comes at a bad moment.
	 */
	due = due_to(f);
	if (first && due && f != fz_self())
		interrupt(f, due);
}

static bool takes_no_notice(int sig)
{
	struct fz_action a = fz_signal_action_get(sig);

	return (uintptr_t)a.handler == 1 || (!a.handler && fz_signal_ignored_by_default(sig));
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
	if (f->mask & bit && leave_to_signalfd(sig) && !(f->sigwait_set & bit)) {
		const struct fz_siginfo_head *head = (const void *)info;

		if (head->code != CODE_QUEUE)
			return (int)fz_syscall2(__NR_kill, fz_sys_getpid(), sig);
		return (int)fz_syscall3(__NR_rt_sigqueueinfo, fz_sys_getpid(), sig, (long)info);
	}
	if (!((f->mask | f->sigwait_set) & bit)) {
		if (takes_no_notice(sig))
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
	return (f->sigwait_set | ~f->mask) & bit;
}

static bool choose(struct fz_fiber *f, void *arg)
{
	struct choice *c = arg;

	if (f->kind != FZ_KIND_FIBER)
		return false;
	if (f->sigwait_set & c->bit)
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
	    (d->to_handlers_only && f->sigwait_set & bit))
		return true;
	if (f->sigwait_set & bit || (uintptr_t)fz_signal_action_get(d->node->sig).handler > 1) {
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
	bool last = f->all_next == NULL;

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

	fz_fiber_each(deliver_to_main, d);
	if (d->outcome == NOBODY)
		fz_fiber_each(deliver_to_any, &search);
}

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
	offer(&d);
	fz_leave_runtime(self);
	if (d.outcome != DELIVERED) {
		fz_signode_free(d.node);
		return false;
	}
	if (atomic_load_explicit(&route.undelivered, memory_order_relaxed))
		fz_monitor_poke();
	return true;
}

/*
 * No fiber accepts it, but other threads may: the kernel knows, which has it pending from
 * now on.  False if it has no room for it.
 */
static bool hand_back(struct fz_signode *node)
{
	struct fz_siginfo_head *head = (struct fz_siginfo_head *)&node->info;
	int code = head->code;

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
	pending = unkeep(~(uint64_t)0);
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

static void find_thread(struct fz_signode *node)
{
	struct delivery d = { .node = node };
	int sig = node->sig;

	offer(&d);
	switch (d.outcome) {
	case DELIVERED:
		break;
	case BY_DEFAULT:
		fz_signode_free(node);
		if (!takes_no_notice(sig))
			fz_signal_default(sig);
		break;
	case NOBODY:
		/*
		 * Blocked by all meanwhile, or until the handler has ended that runs.  With
		 * us they stay in order before what the kernel has.
		 */
		if (!(fz_signal_left_to_kernel() & fz_signal_bit(sig)) ||
		    !fz_signal_others_exist() || !hand_back(node))
			keep(node);
		break;
	}
}

/*
 * It may be blocked in a call from which libc cancels it if a signal finds it there.  Who
 * is parked was in none when it was cancelled, and the next one looks by itself.
 */
static bool may_be_cancelled_by_place(const struct fz_fiber *f)
{
	return FZ_UNLIKELY(fz_cancel_is_unseen(f)) && f->kind == FZ_KIND_FIBER &&
	       /* relaxed: only the monitor sets it. */
	       atomic_load_explicit(&route.cancels_by_place, memory_order_relaxed) &&
	       !fz_wait_is_parked(f);
}

static bool nudge(struct fz_fiber *f, void *arg)
{
	bool *again = arg;
	uint64_t due = due_to(f);
	bool wakes = due || fz_cancel_is_asynchronous(f);

	if (!wakes && !may_be_cancelled_by_place(f))
		return false;
	*again = true;
	if (!wakes || !fz_wake_any(f, FZ_WHY_SIGNAL))
		interrupt(f, due);
	return false;
}

void fz_signal_route_arrived(void)
{
	struct fz_signode *n, *next;
	uint32_t count = 0;

	fz_lock_acquire(&route.routing);
	for (n = take_inbox(); n; n = next) {
		next = n->next;
		find_thread(n);
		count++;
	}
	/* relaxed: as in push_inbox(). */
	atomic_fetch_sub_explicit(&fz_signal_arriving, count, memory_order_relaxed);
	fz_lock_release(&route.routing);
}

/*
 * Somebody may accept by now what nobody did.  Returns whether it must be tried again:
 * who accepts it next does not know of it.
 */
static bool offer_kept(void)
{
	uint64_t stay = fz_signal_others_exist() ? 0 : fz_signal_left_to_kernel();
	struct fz_signode *next;

	for (struct fz_signode *n = unkeep(~stay); n; n = next) {
		next = n->next;
		find_thread(n);
	}
	return fz_signal_process_pending() & ~stay;
}

bool fz_signal_route(void)
{
	bool again = false, kept = false;

	fz_signal_route_arrived();
	if (FZ_UNLIKELY(fz_signal_process_pending()))
		kept = offer_kept();
	if (atomic_exchange_explicit(&route.undelivered, false, memory_order_acquire))
		fz_fiber_each(nudge, &again);
	if (again)
		atomic_store_explicit(&route.undelivered, true, memory_order_relaxed);
	return again || kept;
}

/* ---- setuid and friends ------------------------------------------------- */

void fz_signal_learn_cancel(void)
{
	static const struct __kernel_timespec none;
	uint64_t set = fz_signal_bit(SIG_CANCEL);

	/* relaxed: read by nudge(), which runs after this, and by who is nudged by it. */
	if (fz_syscall4(__NR_rt_sigtimedwait, (long)&set, 0, (long)&none, sizeof(set)) ==
	    SIG_CANCEL)
		atomic_store_explicit(&route.cancels_by_place, true, memory_order_relaxed);
}

/* Whether this interrupts a call that it cancels libc knows.  May not return. */
static void cancel_by_place(struct fz_fiber *self, uint64_t mask, void *ucontext)
{
	struct fz_siginfo info = fz_signal_info(SIG_CANCEL, CODE_TKILL, 0);

	/* It unwinds out of here. */
	fz_sys_sigmask(HOW_SETMASK, &mask, NULL);
	route.cancel_handler(SIG_CANCEL, &info, ucontext);
	/*
	 * Not if this interrupts a handler that begins or ends: what that interrupted may
	 * be such a call.  relaxed: the monitor may ask once more.
	 */
	if (mask == self->mask)
		atomic_store_explicit(&self->cancel_seen, true, memory_order_relaxed);
}

static uint64_t mask_of(const void *ucontext)
{
	uint64_t mask;

	__builtin_memcpy(&mask, &((const ucontext_t *)ucontext)->uc_sigmask, sizeof(mask));
	return mask;
}

/*
 * The next may come, once this has let signals in again.  In the middle of a switch the
 * fiber does not tell which carrier it was, but the sender does.
 */
static void nudge_is_over(const struct fz_siginfo_head *info)
{
	struct fz_carrier *c = (struct fz_carrier *)(uintptr_t)info->value;

	if (info->pid == (int)fz_sys_getpid())
		atomic_store_explicit(&c->nudged, false, memory_order_relaxed);
}

/* Asked to by fz_signal_recall(). */
static void let_others_run(struct fz_fiber *self)
{
	struct fz_carrier *c = self->carrier;

	if (FZ_LIKELY(!atomic_exchange_explicit(&c->recalled, false, memory_order_relaxed)) ||
	    self->kind != FZ_KIND_FIBER ||
	    /* In a call it is not computing, and its end is noted in the carrier. */
	    atomic_load_explicit(&c->calls, memory_order_relaxed) & FZ_CARRIER_IN_CALL)
		return;
	fz_enter_runtime(self);
	fz_sched_rotate(self);
	fz_leave_runtime(self);
}

/* See nudge(). */
static void nudged(struct fz_fiber *self, const struct fz_siginfo_head *info, void *ucontext)
{
	uint64_t mask = mask_of(ucontext);
	bool unseen;

	nudge_is_over(info);
	if (!fz_is_fiber(self) || self->between_lives ||
	    atomic_load_explicit(&self->in_runtime, memory_order_relaxed))
		return;
	/*
	 * A handler that has just begun or is about to return has another mask than we
	 * believe; the monitor will ask again.  While it sends to itself, it looks
	 * itself after that.
	 */
	/* Before the next nudge can come in here, which finds us where it is not seen. */
	unseen = atomic_load_explicit(&route.cancels_by_place, memory_order_relaxed) &&
		 fz_cancel_is_unseen(self);
	if ((mask == self->mask || self->kind == FZ_KIND_WIRED) && !self->injecting) {
		fz_sys_sigmask(HOW_SETMASK, &mask, NULL);
		fz_signal_run_pending(self);
		let_others_run(self);
		if (self->kind == FZ_KIND_FIBER)
			fz_alt_stack_handler_ends(
				self, (struct fz_alt_stack *)(void *)
					      &((ucontext_t *)ucontext)->uc_stack);
	}
	/* libc makes its own blocking calls asynchronously cancellable, or looks itself. */
	if (fz_cancel_is_asynchronous(self)) {
		fz_sys_sigmask(HOW_SETMASK, &mask, NULL);
		fz_host.test_cancel();
	}
	if (unseen)
		cancel_by_place(self, mask, ucontext);
}

/* Apart from who changes the thread pointer. */
static __attribute__((noinline)) void nudged_for_restart(const struct fz_siginfo_head *info,
							 void *ucontext)
{
	nudged(fz_self(), info, ucontext);
}

/*
 * libc makes all its threads change their ids by SIGSETXID, and its handler
 * clears a bit in the TCB it runs on: that must be the one that libc sent the
 * signal to, not that of the fiber which happens to run there.
 */
static uintptr_t setxid_target(const struct fz_carrier *c)
{
	const int setxid = 0x40;	/* glibc's bit of cancelhandling: not done yet */
	bool told = atomic_load_explicit(fz_tcb_cancelhandling(c->libc_tcb),
					 memory_order_relaxed) & setxid;

	/* A wired fiber has the kernel thread's tid too, and is told for itself. */
	return told || fz_self()->kind != FZ_KIND_WIRED ? c->libc_tcb : fz_tcb_get();
}

static void setxid_arrived(int sig, void *siginfo, void *ucontext)
{
	const struct fz_siginfo_head *info = siginfo;
	struct fz_carrier *c;
	uintptr_t tcb, target;

	if (info->code == CODE_QUEUE) {
		nudged_for_restart(info, ucontext);
		return;
	}
	c = fz_carrier_by_tid((int)fz_sys_gettid());
	tcb = fz_tcb_get();
	if (!c) {
		route.setxid_handler(sig, siginfo, ucontext);
		return;
	}
	target = setxid_target(c);
	fz_tcb_set(target);
	route.setxid_handler(sig, siginfo, ucontext);
	fz_tcb_set(tcb);
}

/* Cancelling asynchronously a native thread is libc's use of it. */
static void cancel_arrived(int sig, void *siginfo, void *ucontext)
{
	const struct fz_siginfo_head *info = siginfo;
	uint64_t mask = mask_of(ucontext);

	if (info->code == CODE_QUEUE) {
		nudged(fz_self(), info, ucontext);
	} else if (route.cancel_handler) {
		/* It unwinds out of here. */
		fz_sys_sigmask(HOW_SETMASK, &mask, NULL);
		route.cancel_handler(sig, siginfo, ucontext);
	}
}

/* Put `ours` before libc's handler of sig, if it has one; flags as it has them. */
static void guard(int sig, void (*ours)(int, void *, void *), bool always,
		  void (**libc)(int, void *, void *))
{
	struct kernel_sigaction action, any;

	if (kernel_action(sig, NULL, &action) || action.handler == ours)
		return;
	if ((uintptr_t)action.handler > 1)
		*libc = action.handler;
	else if (!always)
		return;
	/* libc's way back from a handler is what a handler of ours needs, too. */
	kernel_action(SIG_SETXID, NULL, &any);
	action.restorer = any.restorer;
	action.handler = ours;
	/*
	 * Nothing may run while the TCB is another's, nor on top of a nudge that does not count
	 * as over: that fiber may come to wait for what the next nudge is to bring about.
	 */
	action.mask = ~(uint64_t)0;
	/* Without SA_RESTART: what a nudge interrupts ends if its handlers say so. */
	action.flags = (any.flags | FLAG_SIGINFO) &
		       ~(sig == SIG_CANCEL ? (unsigned long)FLAG_RESTART : 0);
	kernel_action(sig, &action, NULL);
}

void fz_signal_guard_libc(void)
{
	guard(SIG_SETXID, setxid_arrived, false, &route.setxid_handler);
	guard(SIG_CANCEL, cancel_arrived, true, &route.cancel_handler);
}


void fz_signal_route_after_fork(void)
{
	/* The nodes are lost, with what their threads would have done. */
	atomic_store_explicit(&route.inbox, NULL, memory_order_relaxed);
	atomic_store_explicit(&fz_signal_arriving, 0, memory_order_relaxed);
	atomic_store_explicit(&route.in_inbox, 0, memory_order_relaxed);
	atomic_store_explicit(&route.pending, 0, memory_order_relaxed);
	atomic_store_explicit(&route.executing, 0, memory_order_relaxed);
	route.first = NULL;
	__builtin_memset(&route.lock, 0, sizeof(route.lock));
	__builtin_memset(&route.routing, 0, sizeof(route.routing));
}
