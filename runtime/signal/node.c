/* SPDX-License-Identifier: MIT */
/*
 * runtime/signal/node.c - the nodes of runtime/signal/queue.h: where they come from, and which are void.
 */
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
 * from the node's. `ever`: signals that have been discarded, so that a bit in a thread's
 * `pending` may stand for void nodes only. It stays set: a void node may become pending at any later
 * time, if its sender was interrupted after it had made the node.
 */
static struct {
	_Atomic uint32_t count[FZ_SIGNALS + 1];
	_Atomic uint64_t ever;
} discards;

struct fz_signode *fz_signode_at(uint32_t index)
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
		/* release: pairs with has_arrived(). */
		atomic_store_explicit(&last->below, (uint32_t)old, memory_order_release);
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
		node = fz_signode_at((uint32_t)old - 1);
		new = ((old >> 32) + 1) << 32 |
		      atomic_load_explicit(&node->below, memory_order_relaxed);
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
		atomic_store_explicit(&nodes[i].below, n * CHUNK_NODES + i + 2, memory_order_relaxed);
	}
	/* release: pairs with fz_signode_at(). */
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
	/* relaxed: a signal sent during a discard may be void or not.  release: pairs with has_arrived(). */
	const uint64_t count = atomic_load_explicit(&discards.count[node->sig], memory_order_relaxed);

	atomic_store_explicit(&node->kind, count << 32 | (uint32_t)node->sig, memory_order_release);
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
	/* relaxed: the caller has the node. */
	return FZ_UNLIKELY(atomic_load_explicit(&node->kind, memory_order_relaxed) >> 32 !=
			   atomic_load_explicit(&discards.count[node->sig], memory_order_relaxed));
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

void fz_sigqueue_discard(int sig)
{
	/*
	 * relaxed: a signal that is sent meanwhile may be void or not, because it is ignored until this
	 * returns.
	 */
	atomic_fetch_or_explicit(&discards.ever, fz_signal_bit(sig), memory_order_relaxed);
	atomic_fetch_add_explicit(&discards.count[sig], 1, memory_order_relaxed);
}

uint64_t fz_signode_voided(void)
{
	return atomic_load_explicit(&discards.ever, memory_order_relaxed);
}

void fz_sigqueue_after_fork(void)
{
	atomic_store_explicit(&pool.charged, 0, memory_order_relaxed);
}
