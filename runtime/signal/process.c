/* SPDX-License-Identifier: MIT */
/*
 * runtime/signal/process.c - signals that no thread has. The inbox holds signals that have arrived
 * where no handler could run. The process's queue holds signals that are pending for the process
 * but no longer in the kernel: no thread accepts them, or not yet, for example while a handler
 * that blocks them runs.
 */
#include "runtime/signal/signal_internal.h"

#include "runtime/base/lock.h"
#include "runtime/sched/monitor.h"

_Atomic uint32_t fz_signal_arriving;

static struct {
	/*
	 * Held to empty the inbox, and to take pending signals in order to offer them; keeps
	 * their order.
	 */
	struct fz_lock lock;
	/* A stack; handlers push without the lock. */
	_Atomic(struct fz_signode *) inbox;
	_Atomic uint64_t in_inbox;	/* standard signals in the inbox; they coalesce */
	/*
	 * The queue, in the order of arrival, guarded by lock; the set is read without the
	 * lock.
	 */
	struct fz_signode *first, *last;
	_Atomic uint64_t pending;
} process = { .lock = FZ_LOCK(FZ_RANK_PROCESS) };

void fz_signal_process_lock(void)
{
	fz_lock_acquire(&process.lock);
}

void fz_signal_process_unlock(void)
{
	fz_lock_release(&process.lock);
}

void fz_signal_inbox_add(struct fz_signode *node)
{
	/* seq_cst: pairs with fz_signal_has_come(). */
	atomic_fetch_add_explicit(&fz_signal_arriving, 1, memory_order_seq_cst);
	node->next = atomic_load_explicit(&process.inbox, memory_order_relaxed);
	/* release: pairs with fz_signal_inbox_take(). */
	while (!atomic_compare_exchange_weak_explicit(&process.inbox, &node->next, node,
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
	/*
	 * A thread that finds the bit set may drop its signal, because the signal in the inbox is not
	 * routed yet: fz_signal_inbox_take() clears the bits before its caller routes.  Nor is it void:
	 * fz_signal_discard() clears the bits, too.  acquire: if it has, see the discard in
	 * fz_signode_renew(); pairs with fz_signal_inbox_take().
	 */
	if (fz_signode_coalesces(node)) {
		if (atomic_fetch_or_explicit(&process.in_inbox, bit, memory_order_acquire) & bit) {
			fz_signode_free(node);
			return;
		}
		fz_signode_renew(node);
	}
	fz_signal_inbox_add(node);
}

struct fz_signode *fz_signal_inbox_take(void)
{
	struct fz_signode *n, *next, *in_order = NULL;

	/* acquire: pairs with fz_signal_inbox_add(). */
	n = atomic_exchange_explicit(&process.inbox, NULL, memory_order_acq_rel);
	/*
	 * After the exchange: a signal taken after its bit was cleared would leave the bit set, and later
	 * ones be lost.  release: pairs with fz_signal_leave_to_monitor().
	 */
	atomic_store_explicit(&process.in_inbox, 0, memory_order_release);
	for (; n; n = next) {
		next = n->next;
		n->next = in_order;
		in_order = n;
	}
	return in_order;
}

uint64_t fz_signal_process_pending(void)
{
	/* relaxed: a snapshot; the fences in fz_signal_has_come() and offer() order it. */
	return atomic_load_explicit(&process.pending, memory_order_relaxed);
}

void fz_signal_pending_add(struct fz_signode *node)
{
	uint64_t bit = fz_signal_bit(node->sig);

	if (fz_signode_coalesces(node) &&
	    atomic_load_explicit(&process.pending, memory_order_relaxed) & bit &&
	    fz_signode_find(process.first, node->sig)) {
		fz_signode_free(node);
	} else {
		node->next = NULL;
		if (process.first)
			process.last->next = node;
		else
			process.first = node;
		process.last = node;
		atomic_fetch_or_explicit(&process.pending, bit, memory_order_relaxed);
	}
}

void fz_signal_pending_keep(uint64_t set)
{
	/* Another process may send them faster than this takes them. */
	enum { MOST = 4096 };
	static const struct __kernel_timespec none;
	struct fz_siginfo info;
	bool kept = false;

	fz_signal_process_lock();
	for (int i = 0; i < MOST; i++) {
		const long sig = fz_syscall4(__NR_rt_sigtimedwait, (long)&set, (long)&info, (long)&none,
					     sizeof(set));
		struct fz_signode *node = sig > 0 ? fz_signode_arrived((int)sig, &info, false) : NULL;

		if (sig <= 0)
			break;
		if (node)
			fz_signal_pending_add(node);
		kept = true;
	}
	fz_signal_process_unlock();
	if (kept)
		fz_monitor_poke();
}

struct fz_signode *fz_signal_pending_take(uint64_t accept)
{
	struct fz_signode *taken = NULL, **taken_end = &taken, *n, *next;
	struct fz_signode *left = NULL, **left_end = &left;
	uint64_t pending = 0;

	process.last = NULL;
	for (n = process.first; n; n = next) {
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
			*left_end = process.last = n;
			left_end = &n->next;
			pending |= fz_signal_bit(n->sig);
		}
	}
	process.first = left;
	atomic_store_explicit(&process.pending, pending, memory_order_relaxed);
	return taken;
}

void fz_signal_process_after_fork(void)
{
	/*
	 * The child loses the parent's nodes, and with them what the parent's threads would
	 * have handled.
	 */
	__builtin_memset(&process, 0, sizeof(process));
	fz_lock_init(&process.lock, FZ_RANK_PROCESS);
	atomic_store_explicit(&fz_signal_arriving, 0, memory_order_relaxed);
}
