/* SPDX-License-Identifier: MIT */
#include "runtime/signal/queue.h"

#include <linux/resource.h>

#include "runtime/signal/overrun.h"
#include "runtime/signal/signal_internal.h"

enum { CHUNK_NODES = 256, CHUNKS = 8192, FIRST_NODES = 32 };

/*
 * Never unmapped, so reading a node that another thread has just taken from the free list is
 * harmless: the compare-and-swap then fails, because of the tag in the upper half of `free`.
 */
static struct {
	_Atomic uint64_t free;		/* tag << 32 | index + 1 */
	_Atomic uint32_t chunks;
	_Atomic(struct fz_signode *) chunk[CHUNKS];
	_Atomic uint64_t charged;
} pool;

/*
 * A node is void if its signal has been discarded after the node was made: count[sig] then differs
 * from node->discards. `ever`: signals that have been discarded, so that a bit in a thread's
 * `pending` may stand for void nodes only. It stays set: a void node may become pending at any later
 * time, if its sender was interrupted after it had made the node.
 */
static struct {
	_Atomic uint32_t count[FZ_SIGNALS + 1];
	_Atomic uint64_t ever;
} discards;

static struct fz_signode *node_at(uint32_t index)
{
	/* acquire: pairs with the release in grow(). */
	return atomic_load_explicit(&pool.chunk[index / CHUNK_NODES], memory_order_acquire) +
	       index % CHUNK_NODES;
}

/* Put a chain of free nodes onto the free list. */
static void push_free(struct fz_signode *first, struct fz_signode *last)
{
	uint64_t old = atomic_load_explicit(&pool.free, memory_order_relaxed), new;

	do {
		atomic_store_explicit(&last->next_free, (uint32_t)old, memory_order_relaxed);
		new = ((old >> 32) + 1) << 32 | (first->index + 1);
		/* release: pairs with the acquire in pop_free(). */
	} while (!atomic_compare_exchange_weak_explicit(&pool.free, &old, new,
							memory_order_release,
							memory_order_relaxed));
}

static struct fz_signode *pop_free(void)
{
	/* acquire: pairs with push_free(). */
	uint64_t old = atomic_load_explicit(&pool.free, memory_order_acquire), new;
	struct fz_signode *node;

	do {
		if (!(uint32_t)old)
			return NULL;
		node = node_at((uint32_t)old - 1);
		new = ((old >> 32) + 1) << 32 |
		      atomic_load_explicit(&node->next_free, memory_order_relaxed);
	} while (!atomic_compare_exchange_weak_explicit(&pool.free, &old, new,
							memory_order_acquire,
							memory_order_acquire));
	return node;
}

/*
 * The first chunk is small and static, so that a standard signal arrives even if the kernel gives
 * no more memory, as natively.
 */
static bool grow(void)
{
	static struct fz_signode first[FIRST_NODES];
	static _Atomic bool first_is_taken;
	const size_t size = CHUNK_NODES * sizeof(*first);	/* bytes */
	/* relaxed: the first chunk is new; the exchange only decides which thread adds it. */
	const bool is_first = !atomic_exchange_explicit(&first_is_taken, true, memory_order_relaxed);
	const uint32_t count = is_first ? FIRST_NODES : CHUNK_NODES;
	struct fz_signode *nodes;
	long mem = is_first ? (long)first : fz_sys_map_table(size);
	uint32_t n;

	if (fz_sys_failed(mem))
		return false;
	nodes = (struct fz_signode *)mem;
	n = atomic_fetch_add_explicit(&pool.chunks, 1, memory_order_relaxed);
	if (n >= CHUNKS) {
		atomic_fetch_sub_explicit(&pool.chunks, 1, memory_order_relaxed);
		fz_sys_unmap_table(nodes, size);
		return false;
	}
	for (uint32_t i = 0; i < count; i++) {
		nodes[i].index = n * CHUNK_NODES + i;
		atomic_store_explicit(&nodes[i].next_free, n * CHUNK_NODES + i + 2,
				      memory_order_relaxed);
	}
	/* release: pairs with node_at(). */
	atomic_store_explicit(&pool.chunk[n], nodes, memory_order_release);
	push_free(&nodes[0], &nodes[count - 1]);
	return true;
}

/*
 * Charge one signal against RLIMIT_SIGPENDING. The kernel counts per user, the library per
 * process.
 */
static bool charge_one(void)
{
	struct rlimit64 limit;

	if (fz_syscall4(__NR_prlimit64, 0, RLIMIT_SIGPENDING, 0, (long)&limit))
		return false;
	/* relaxed: a count. */
	if (atomic_fetch_add_explicit(&pool.charged, 1, memory_order_relaxed) < limit.rlim_cur)
		return true;
	atomic_fetch_sub_explicit(&pool.charged, 1, memory_order_relaxed);
	return false;
}

void fz_signode_renew(struct fz_signode *node)
{
	/* relaxed: a signal sent during a discard may be void or not. */
	node->discards = atomic_load_explicit(&discards.count[node->sig], memory_order_relaxed);
}

struct fz_signode *fz_signode_new(int sig, const void *info, bool directed, bool charge)
{
	struct fz_signode *node;

	if (charge && !charge_one())
		return NULL;
	while (!(node = pop_free()))
		if (!grow())
			break;
	if (!node) {
		if (charge)
			atomic_fetch_sub_explicit(&pool.charged, 1, memory_order_relaxed);
		return NULL;
	}
	__builtin_memcpy(&node->info, info, sizeof(node->info));
	node->next = NULL;
	node->sig = sig;
	node->directed = directed;
	node->charged = charge;
	node->counts = false;
	fz_signode_renew(node);
	return node;
}

struct fz_signode *fz_signode_arrived(int sig, const void *info, bool directed)
{
	bool counts = ((const struct fz_siginfo_head *)info)->code == CODE_TIMER;
	struct fz_signode *node;
	uint64_t ticket = 0;

	if (counts && !fz_overrun_arrived(info, &ticket))
		return NULL;
	node = fz_signode_new(sig, info, directed, false);
	if (!node) {
		fz_overrun_forget(ticket);
		return NULL;
	}
	node->counts = counts;
	node->ticket = ticket;
	return node;
}

static bool is_discarded(const struct fz_signode *node)
{
	return FZ_UNLIKELY(node->discards != atomic_load_explicit(&discards.count[node->sig],
								  memory_order_relaxed));
}

bool fz_signode_is_void(const struct fz_signode *node)
{
	return is_discarded(node) ||
	       (FZ_UNLIKELY(node->counts) && fz_overrun_is_void(node->ticket));
}

bool fz_signode_find(const struct fz_signode *n, int sig)
{
	for (; n; n = n->next)
		if (n->sig == sig && !fz_signode_is_void(n))
			return true;
	return false;
}

bool fz_signode_settle(struct fz_signode *node)
{
	if (is_discarded(node))
		return false;
	if (FZ_LIKELY(!node->counts))
		return true;
	node->counts = false;
	return fz_overrun_redeem(node->ticket, &node->info);
}

void fz_signode_free(struct fz_signode *node)
{
	if (!node)
		return;
	if (node->counts)
		fz_overrun_forget(node->ticket);
	if (node->charged)
		atomic_fetch_sub_explicit(&pool.charged, 1, memory_order_relaxed);
	push_free(node, node);
}

void fz_sigqueue_add(struct fz_fiber *f, struct fz_signode *node)
{
	uint64_t bit = fz_signal_bit(node->sig);

	/*
	 * Drop a second standard signal here only if the pending one cannot be void; otherwise
	 * drain() decides. relaxed: of two that are added at once, drain() keeps one.
	 */
	if (fz_signode_coalesces(node) && !fz_overrun_is_timers(node->sig) &&
	    !(atomic_load_explicit(&discards.ever, memory_order_relaxed) & bit) &&
	    atomic_load_explicit(&f->pending, memory_order_relaxed) & bit) {
		fz_signode_free(node);
		return;
	}
	node->next = atomic_load_explicit(&f->sig.arrivals, memory_order_relaxed);
	/* release: pairs with drain(). */
	while (!atomic_compare_exchange_weak_explicit(&f->sig.arrivals, &node->next, node,
						      memory_order_release,
						      memory_order_relaxed))
		continue;
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
	/* acquire: pairs with fz_sigqueue_add(). */
	struct fz_signode *n = atomic_exchange_explicit(&self->sig.arrivals, NULL,
							memory_order_acquire);
	struct fz_signode *in_order = NULL, *next, **first;
	uint64_t brought = 0;

	for (; n; n = next) {
		next = n->next;
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

void fz_sigqueue_discard(int sig)
{
	/*
	 * relaxed: a signal that is sent meanwhile may be void or not, because it is ignored until this
	 * returns.
	 */
	atomic_fetch_or_explicit(&discards.ever, fz_signal_bit(sig), memory_order_relaxed);
	atomic_fetch_add_explicit(&discards.count[sig], 1, memory_order_relaxed);
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
		       atomic_load_explicit(&discards.ever, memory_order_relaxed);
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

void fz_sigqueue_after_fork(void)
{
	atomic_store_explicit(&pool.charged, 0, memory_order_relaxed);
}
