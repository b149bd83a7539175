/* SPDX-License-Identifier: MIT */
#include "runtime/signal/queue.h"

#include "runtime/signal/overrun.h"
#include "runtime/signal/signal_internal.h"

/*
 * Is there a node among f's arrivals that is like this one, and as valid?  A node of these changes only after f has drained
 * them.  Who reads a changed node, by acquire, then also reads another number of drains.
 */
static bool has_arrived(struct fz_fiber *f, const struct fz_signode *node)
{
	const uint64_t kind = atomic_load_explicit(&node->kind, memory_order_relaxed);
	uint64_t top = atomic_load_explicit(&f->sig.arrivals, memory_order_acquire);
	bool found = false;

	for (uint32_t at = (uint32_t)top; at && !found;) {
		const struct fz_signode *n = fz_signode_at(at - 1);

		found = atomic_load_explicit(&n->kind, memory_order_acquire) == kind;
		at = atomic_load_explicit(&n->below, memory_order_acquire);
		if (atomic_load_explicit(&f->sig.arrivals, memory_order_relaxed) != top)
			return false;
	}
	return found;
}

void fz_sigqueue_add(struct fz_fiber *f, struct fz_signode *node)
{
	uint64_t bit = fz_signal_bit(node->sig), top;

	/*
	 * Drop a second standard signal here only if the pending one cannot be void; otherwise
	 * drain() decides. relaxed: of two that are added at once, drain() keeps one.
	 */
	if (fz_signode_coalesces(node) && !fz_overrun_is_timers(node->sig) &&
	    atomic_load_explicit(&f->pending, memory_order_relaxed) & bit &&
	    (!(fz_signode_voided() & bit) || has_arrived(f, node))) {
		fz_signode_free(node);
		return;
	}
	top = atomic_load_explicit(&f->sig.arrivals, memory_order_relaxed);
	do {
		atomic_store_explicit(&node->below, (uint32_t)top, memory_order_release);
		/* release: pairs with drain(). */
	} while (!atomic_compare_exchange_weak_explicit(&f->sig.arrivals, &top, top >> 32 << 32 | (node->index + 1),
							memory_order_release, memory_order_relaxed));
	/* seq_cst: pairs with fz_wait_arm() and look_for_requests(). */
	atomic_fetch_or_explicit(&f->pending, bit, memory_order_seq_cst);
}

/* The link that points to the first node of sig; if there is none, the link that will. */
static struct fz_signode **first_of(struct fz_fiber *f, int sig)
{
	struct fz_signode **at = &f->sig.queue;

	while (*at && (*at)->sig != sig)
		at = &(*at)->next_signal;
	return at;
}

/*
 * Move the nodes from the stack of arrivals to the end of the queue. Returns the set of signals
 * moved.
 */
static uint64_t drain(struct fz_fiber *self)
{
	uint64_t top = atomic_load_explicit(&self->sig.arrivals, memory_order_relaxed), brought = 0;
	struct fz_signode *n, *in_order = NULL, *next, **first;

	/* acquire: pairs with fz_sigqueue_add(). */
	while (!atomic_compare_exchange_weak_explicit(&self->sig.arrivals, &top, ((top >> 32) + 1) << 32,
						      memory_order_acquire, memory_order_relaxed))
		continue;
	for (uint32_t at = (uint32_t)top; at; at = atomic_load_explicit(&n->below, memory_order_relaxed)) {
		n = fz_signode_at(at - 1);
		n->next = in_order;
		in_order = n;
	}
	for (n = in_order; n; n = next) {
		next = n->next;
		n->next = NULL;
		first = first_of(self, n->sig);
		if (fz_signode_coalesces(n) && fz_signode_find(*first, n->sig)) {
			fz_signode_free(n);
			continue;
		}
		brought |= fz_signal_bit(n->sig);
		if (*first) {
			(*first)->last->next = n;
		} else {
			n->next_signal = NULL;
			*first = n;
		}
		(*first)->last = n;
	}
	return brought;
}

static struct fz_signode *unlink_first(struct fz_fiber *self, int sig)
{
	struct fz_signode **first = first_of(self, sig), *n = *first;

	if (!n)
		return NULL;
	*first = n->next ? n->next : n->next_signal;
	if (n->next) {
		n->next->last = n->last;
		n->next->next_signal = n->next_signal;
	}
	n->next = NULL;
	return n;
}

/* Clear the bit of sig in `pending` if the queue has no node of sig any more. */
static void update_bit(struct fz_fiber *self, int sig)
{
	uint64_t brought;

	if (*first_of(self, sig))
		return;
	/* seq_cst: pairs with fz_sigqueue_add(). */
	atomic_fetch_and_explicit(&self->pending, ~fz_signal_bit(sig), memory_order_seq_cst);
	/* If a node was added since the queue was read, its bit is cleared now: set it again. */
	brought = drain(self);
	if (brought)
		atomic_fetch_or_explicit(&self->pending, brought, memory_order_seq_cst);
}

static struct fz_signode *take(struct fz_fiber *self, uint64_t accept)
{
	uint64_t due;
	struct fz_signode *n;
	int sig;

	drain(self);
	/* seq_cst: pairs with fz_sigqueue_add(). */
	due = atomic_load_explicit(&self->pending, memory_order_seq_cst) & accept;
	if (!due)
		return NULL;
	sig = __builtin_ctzll(due) + 1;
	n = unlink_first(self, sig);
	update_bit(self, sig);
	return n;
}

/*
 * Set in_runtime, so that no handler runs while nodes are taken. relaxed, and signal fences: only
 * handlers on this thread read in_runtime.
 */
static uint32_t begin_taking(struct fz_fiber *self)
{
	uint32_t before = atomic_load_explicit(&self->in_runtime, memory_order_relaxed);

	atomic_store_explicit(&self->in_runtime, 1, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	return before;
}

static void end_taking(struct fz_fiber *self, uint32_t before)
{
	atomic_signal_fence(memory_order_seq_cst);
	atomic_store_explicit(&self->in_runtime, before, memory_order_relaxed);
}

struct fz_signode *fz_sigqueue_take(struct fz_fiber *self, uint64_t accept)
{
	uint32_t before = begin_taking(self);
	struct fz_signode *n;

	accept &= ~FZ_SIGNALS_OF_LIBC;
	do {
		n = take(self, accept);
		/* A bit may have no node left: of two signals added at once, drain() kept one. */
	} while (!n && atomic_load_explicit(&self->pending, memory_order_seq_cst) & accept);
	end_taking(self, before);
	return n;
}

struct fz_signode *fz_sigqueue_receive(struct fz_fiber *self, uint64_t accept)
{
	struct fz_signode *n;

	while ((n = fz_sigqueue_take(self, accept)) && !fz_signode_settle(n))
		fz_signode_free(n);
	return n;
}

bool fz_sigqueue_has_directed(struct fz_fiber *self, uint64_t set)
{
	uint32_t before = begin_taking(self);
	const struct fz_signode *first;
	bool directed = false;

	drain(self);
	for (first = self->sig.queue; first && !directed; first = first->next_signal)
		directed = first->directed && fz_signal_bit(first->sig) & set;
	end_taking(self, before);
	return directed;
}

static void purge(struct fz_fiber *self, uint64_t set)
{
	struct fz_signode *n;

	drain(self);
	for (; set; set &= set - 1) {
		int sig = __builtin_ctzll(set) + 1;

		/* Void nodes are older than valid ones, and so come first. */
		while ((n = *first_of(self, sig)) && fz_signode_is_void(n))
			fz_signode_free(unlink_first(self, sig));
		update_bit(self, sig);
	}
}

void fz_sigqueue_purge(struct fz_fiber *self)
{
	/* relaxed: a snapshot. */
	uint64_t set = atomic_load_explicit(&self->pending, memory_order_relaxed) &
		       fz_signode_voided();
	uint32_t before;

	if (FZ_LIKELY(!set))
		return;
	before = begin_taking(self);
	purge(self, set);
	end_taking(self, before);
}

void fz_sigqueue_clear(struct fz_fiber *f)
{
	drain(f);
	while (f->sig.queue)
		fz_signode_free(unlink_first(f, f->sig.queue->sig));
	atomic_store_explicit(&f->pending, 0, memory_order_relaxed);
}
