/* SPDX-License-Identifier: MIT */
#include "runtime/io/turn.h"

#include <asm/errno.h>
#include <limits.h>

#include "runtime/backend/kept_fd.h"
#include "runtime/base/lock.h"
#include "runtime/base/sys.h"
#include "runtime/sched/park.h"

enum { BUCKETS = 64 };

struct bucket {
	_Alignas(FZ_CACHE_LINE) struct fz_lock lock;
	/* The call that has the turn in the first queue.  Guarded by the lock; without it, a hint. */
	struct fz_turn *_Atomic first;
};

/* Whole pages, for fz_turn_after_fork(). */
static _Alignas(4096) struct bucket buckets[BUCKETS] = {
	[0 ... BUCKETS - 1].lock = FZ_LOCK(FZ_RANK_BUCKET)
};
_Static_assert(sizeof(buckets) % 4096 == 0, "whole pages");

_Atomic uint32_t fz_turn_queues;

static struct bucket *bucket_of(int fd)
{
	return &buckets[(unsigned)fd % BUCKETS];
}

static struct fz_turn *first_in(const struct bucket *b)
{
	/* relaxed: the caller holds the lock, or takes it as a hint. */
	return atomic_load_explicit(&b->first, memory_order_relaxed);
}

bool fz_turn_any(int fd)
{
	/* relaxed: a hint. */
	return FZ_UNLIKELY(atomic_load_explicit(&fz_turn_queues, memory_order_relaxed)) &&
	       first_in(bucket_of(fd));
}

/*
 * Returns the call that has the turn in the queue for `what` of fd, or NULL.  what 0: in any queue for fd.
 * Queues that go on with a private copy are left out.  The caller holds the lock of the bucket, as in all
 * functions named _locked.
 */
static struct fz_turn *leader_locked(const struct bucket *b, int fd, uint64_t what)
{
	struct fz_turn *leader = first_in(b);

	while (leader && (leader->fd != fd || leader->copy >= 0 || (what && leader->what != what)))
		leader = leader->other;
	return leader;
}

/* `leader` has the turn: give the turn to `to`.  If `to` is NULL, the queue is gone. */
static void change_leader_locked(struct bucket *b, struct fz_turn *leader, struct fz_turn *to)
{
	struct fz_turn *at = first_in(b), *heir = to ? to : leader->other;

	if (to) {
		to->has = true;
		to->copy = leader->copy;
		to->other = leader->other;
	} else {
		atomic_fetch_sub_explicit(&fz_turn_queues, 1, memory_order_relaxed);
	}
	leader->has = false;
	if (at == leader) {
		atomic_store_explicit(&b->first, heir, memory_order_relaxed);
		return;
	}
	while (at->other != leader)
		at = at->other;
	at->other = heir;
}

static void unlink_locked(struct fz_turn *turn)
{
	turn->prev->next = turn->next;
	turn->next->prev = turn->prev;
	turn->linked = false;
}

/*
 * `turn` has the turn: take it out of the queue, and wake the next call, which has the turn then.  A call
 * that cannot be woken, because something else has ended its wait, is taken out, too.  If the queue is
 * empty now, returns its private copy, to be closed; otherwise -1.
 */
static int pass_locked(struct bucket *b, struct fz_turn *turn)
{
	struct fz_turn *next;
	bool woken;

	do {
		next = turn->next == turn ? NULL : turn->next;
		change_leader_locked(b, turn, next);
		unlink_locked(turn);
		if (!next)
			return turn->copy;
		/* False: something else has ended that wait, so the turn passes on at once. */
		woken = fz_wake(next->ticket, FZ_WHY_DONE);
		turn = next;
	} while (!woken);
	return -1;
}

bool fz_turn_begin(struct fz_turn *turn, int fd, uint64_t what, struct fz_ticket ticket)
{
	struct bucket *b = bucket_of(fd);
	struct fz_turn *leader;

	*turn = (struct fz_turn){
		.fd = fd, .what = what, .ticket = ticket, .linked = true, .copy = -1, .left = -1,
	};
	fz_lock_acquire(&b->lock);
	leader = leader_locked(b, fd, what);
	if (leader) {
		turn->next = leader;
		turn->prev = leader->prev;
		turn->prev->next = leader->prev = turn;
	} else {
		turn->has = true;
		turn->next = turn->prev = turn;
		turn->other = first_in(b);
		atomic_store_explicit(&b->first, turn, memory_order_relaxed);
		atomic_fetch_add_explicit(&fz_turn_queues, 1, memory_order_relaxed);
	}
	fz_lock_release(&b->lock);
	/*
	 * seq_cst: pairs with fz_op_closed().  Either fz_op_closed() finds the queue, or the request, which
	 * comes next, finds the descriptor closed.
	 */
	atomic_thread_fence(memory_order_seq_cst);
	return !leader;
}

int fz_turn_copy(const struct fz_turn *turn)
{
	struct bucket *b = bucket_of(turn->fd);
	bool closed;
	int copy = -1;

	fz_lock_acquire(&b->lock);
	closed = turn->closed;
	if (turn->has && turn->copy >= 0) {
		copy = fz_kept_fd_make(turn->copy);
		closed = copy < 0;
	}
	fz_lock_release(&b->lock);
	return closed ? -EBADF : copy;
}

void fz_turn_end(struct fz_turn *turn)
{
	struct bucket *b = bucket_of(turn->fd);

	fz_lock_acquire(&b->lock);
	if (turn->has)
		turn->left = pass_locked(b, turn);
	else if (turn->linked)
		unlink_locked(turn);
	fz_lock_release(&b->lock);
}

/*
 * Dissolve the queue: its calls go on alone, with the program's number; if closed, with EBADF.  So does the call that
 * has the turn, unless it has made its request already.
 */
static void dissolve_locked(struct bucket *b, struct fz_turn *leader, bool closed)
{
	change_leader_locked(b, leader, NULL);
	leader->closed = closed;
	while (leader->next != leader) {
		struct fz_turn *turn = leader->next;

		unlink_locked(turn);
		turn->closed = closed;
		fz_wake(turn->ticket, FZ_WHY_DONE);
	}
	unlink_locked(leader);
}

void fz_turn_closing(int fd)
{
	struct bucket *b = bucket_of(fd);
	struct fz_turn *leader;

	if (!fz_turn_any(fd))
		return;
	fz_lock_acquire(&b->lock);
	while ((leader = leader_locked(b, fd, 0))) {
		leader->copy = fz_kept_fd_make(fd);
		if (leader->copy >= 0)
			continue;
		/* No number is free for a copy: the calls learn that the descriptor is closed. */
		leader->copy = -1;
		dissolve_locked(b, leader, true);
	}
	fz_lock_release(&b->lock);
}

void fz_turn_closed(int fd)
{
	struct bucket *b = bucket_of(fd);
	struct fz_turn *leader;

	fz_lock_acquire(&b->lock);
	while ((leader = leader_locked(b, fd, 0)))
		dissolve_locked(b, leader, false);
	fz_lock_release(&b->lock);
}

unsigned fz_turn_next(unsigned first)
{
	unsigned best = UINT_MAX;

	for (struct bucket *b = buckets; b < buckets + BUCKETS && fz_turn_queues; b++) {
		if (!first_in(b))
			continue;
		fz_lock_acquire(&b->lock);
		for (const struct fz_turn *turn = first_in(b); turn; turn = turn->other)
			if (turn->copy < 0 && (unsigned)turn->fd >= first && (unsigned)turn->fd < best)
				best = (unsigned)turn->fd;
		fz_lock_release(&b->lock);
	}
	return best;
}

void fz_turn_after_fork(void)
{
	fz_sys_forget_pages(buckets, sizeof(buckets));
	atomic_store_explicit(&fz_turn_queues, 0, memory_order_relaxed);
}
