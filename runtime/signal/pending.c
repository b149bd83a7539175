/* SPDX-License-Identifier: MIT */
/*
 * runtime/signal/pending.c - what is pending for the process and no longer in the kernel:
 * nobody accepts it, or not yet, as while its handler runs.
 */
#include "runtime/base/lock.h"
#include "runtime/signal/signal_internal.h"

/* In the order of arrival.  Guarded by lock, which is taken in the runtime. */
static struct {
	struct fz_lock lock;
	struct fz_signode *first, *last;
	_Atomic uint64_t pending;
} kept;

uint64_t fz_signal_process_pending(void)
{
	/* relaxed: a snapshot; the fence in fz_signal_has_come() and offer() orders it. */
	return atomic_load_explicit(&kept.pending, memory_order_relaxed);
}

void fz_signal_pending_add(struct fz_signode *node)
{
	uint64_t bit = fz_signal_bit(node->sig);

	fz_lock_acquire(&kept.lock);
	if (fz_signode_coalesces(node) &&
	    atomic_load_explicit(&kept.pending, memory_order_relaxed) & bit &&
	    fz_signode_find(kept.first, node->sig)) {
		fz_signode_free(node);
	} else {
		node->next = NULL;
		if (kept.first)
			kept.last->next = node;
		else
			kept.first = node;
		kept.last = node;
		atomic_fetch_or_explicit(&kept.pending, bit, memory_order_relaxed);
	}
	fz_lock_release(&kept.lock);
}

struct fz_signode *fz_signal_pending_take(uint64_t accept)
{
	struct fz_signode *taken = NULL, **taken_end = &taken, *n, *next;
	struct fz_signode *left = NULL, **left_end = &left;
	uint64_t pending = 0;

	fz_lock_acquire(&kept.lock);
	kept.last = NULL;
	for (n = kept.first; n; n = next) {
		next = n->next;
		n->next = NULL;
		if (fz_signode_is_void(n)) {
			fz_signode_free(n);
			continue;
		}
		if (fz_signal_bit(n->sig) & accept) {
			*taken_end = n;
			taken_end = &n->next;
		} else {
			*left_end = kept.last = n;
			left_end = &n->next;
			pending |= fz_signal_bit(n->sig);
		}
	}
	kept.first = left;
	atomic_store_explicit(&kept.pending, pending, memory_order_relaxed);
	fz_lock_release(&kept.lock);
	return taken;
}

void fz_signal_pending_after_fork(void)
{
	/* The nodes are lost, with what their threads would have done. */
	__builtin_memset(&kept, 0, sizeof(kept));
}
