/* SPDX-License-Identifier: MIT */
#include "runtime/hold.h"

#include <limits.h>

#include "runtime/fdtab.h"
#include "runtime/lock.h"
#include "runtime/own_fd.h"

enum { BUCKETS = 256 };

struct bucket {
	_Alignas(FZ_CACHE_LINE) struct fz_lock lock;
	/* Guarded by the lock; looked at without it as a hint. */
	struct fz_hold *_Atomic first;
};

/* Whole pages, for fz_hold_after_fork(). */
static _Alignas(4096) struct bucket buckets[BUCKETS];
_Static_assert(sizeof(buckets) % 4096 == 0, "whole pages");

static struct bucket *bucket_of(int fd)
{
	return &buckets[(unsigned)fd % BUCKETS];
}

static struct fz_hold *first_in(const struct bucket *b)
{
	/* relaxed: under the lock, or a hint. */
	return atomic_load_explicit(&b->first, memory_order_relaxed);
}

/* Under the lock of their bucket, as unlink_locked(). */
static void link_locked(struct fz_hold *hold)
{
	struct bucket *b = bucket_of(hold->number);

	hold->prev = NULL;
	hold->next = first_in(b);
	if (hold->next)
		hold->next->prev = hold;
	atomic_store_explicit(&b->first, hold, memory_order_relaxed);
	hold->linked = true;
}

static void unlink_locked(struct fz_hold *hold)
{
	if (hold->next)
		hold->next->prev = hold->prev;
	if (hold->prev)
		hold->prev->next = hold->next;
	else
		atomic_store_explicit(&bucket_of(hold->number)->first, hold->next,
				      memory_order_relaxed);
	hold->linked = false;
}

void fz_hold_begin(struct fz_hold *hold, struct fz_ticket ticket, bool ask_again)
{
	struct bucket *b = bucket_of(hold->number);

	/* Nobody else can close the copy. */
	if (hold->number < 0 || hold->copy >= 0)
		return;
	hold->ticket = ticket;
	hold->ask_again = ask_again;
	hold->waiting = true;
	fz_lock_acquire(&b->lock);
	link_locked(hold);
	fz_lock_release(&b->lock);
}

void fz_hold_end(struct fz_hold *hold, bool keep)
{
	struct bucket *b = bucket_of(hold->number);

	if (hold->waiting) {
		fz_lock_acquire(&b->lock);
		if (hold->linked)
			unlink_locked(hold);
		fz_lock_release(&b->lock);
		hold->waiting = false;
	}
	if (!keep)
		fz_hold_release(hold);
}

void fz_hold_release(struct fz_hold *hold)
{
	if (FZ_LIKELY(hold->copy < 0))
		return;
	fz_fdtab_set(hold->copy, FZ_FD_UNKNOWN);
	fz_own_fd_drop(hold->copy);
	hold->copy = -1;
}

void fz_hold_closing(int fd)
{
	struct bucket *b = bucket_of(fd);
	struct fz_hold *next;

	if (!fz_hold_is_held(fd))
		return;
	fz_lock_acquire(&b->lock);
	for (struct fz_hold *hold = first_in(b); hold; hold = next) {
		next = hold->next;
		if (hold->number != fd)
			continue;
		/* No number to be had: it learns that the descriptor is closed. */
		hold->copy = fz_own_fd_keep(fd);
		if (hold->copy < 0)
			hold->copy = -1;
		unlink_locked(hold);
		if (hold->ask_again)
			fz_wake(hold->ticket, FZ_WHY_DONE);
	}
	fz_lock_release(&b->lock);
}

bool fz_hold_is_held(int fd)
{
	return first_in(bucket_of(fd));
}

unsigned fz_hold_next(unsigned first)
{
	unsigned best = UINT_MAX;

	for (struct bucket *b = buckets; b < buckets + BUCKETS; b++) {
		if (!first_in(b))
			continue;
		fz_lock_acquire(&b->lock);
		for (const struct fz_hold *hold = first_in(b); hold; hold = hold->next)
			if ((unsigned)hold->number >= first && (unsigned)hold->number < best)
				best = (unsigned)hold->number;
		fz_lock_release(&b->lock);
	}
	return best;
}

void fz_hold_after_fork(void)
{
	fz_sys_forget_pages(buckets, sizeof(buckets));
}
