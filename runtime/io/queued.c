/* SPDX-License-Identifier: MIT */
#include "runtime/io/queued.h"

#include "runtime/base/sys.h"
#include "runtime/base/time.h"
#include "runtime/io/fdtab.h"
#include "runtime/sched/park.h"
#include "runtime/sched/sched.h"

/* fz_fdtab_queued(): the number of the processor, from 1 on; below it the low bits of the entry's index in the ring. */
enum { INDEX_BITS = 23, INDEX_MASK = (1 << INDEX_BITS) - 1 };

static struct fz_processor *processor_of(uint32_t word)
{
	const uint32_t i = (word >> INDEX_BITS) - 1;

	/* In a fork's child, a word may still be the parent's and name a processor that is not there. */
	return word && i < fz_sched.count ? &fz_sched.processors[i] : NULL;
}

/*
 * Is the entry of p's ring that `word` names for fd, and still queued?  Any thread.  A hint while p's owner queues and
 * submits; that is enough, because a request that is queued at this moment may as well come after the close.
 */
static bool is_queued(const struct fz_processor *p, uint32_t word, int fd)
{
	const struct io_uring_sq *sq = &p->backend.ring.uring.sq;
	/* relaxed: as in fz_ring_queued(). */
	const uint32_t head = __atomic_load_n(sq->khead, __ATOMIC_RELAXED);
	const uint32_t tail = __atomic_load_n(&sq->sqe_tail, __ATOMIC_RELAXED);
	const uint32_t after = (word - head) & INDEX_MASK;

	return after < tail - head && tail - head <= sq->ring_entries &&
	       __atomic_load_n(&sq->sqes[(head + after) & sq->ring_mask].fd, __ATOMIC_RELAXED) == fd;
}

bool fz_queued_note(const struct fz_processor *p, int fd, unsigned index)
{
	const uint32_t word = (uint32_t)(p - fz_sched.processors + 1) << INDEX_BITS | (index & INDEX_MASK);
	const struct fz_processor *other;
	uint32_t before;

	if (FZ_UNLIKELY(!fz_fdtab_set_queued(fd, word, &before)))
		return fd >= 0;
	other = processor_of(before);
	if (FZ_LIKELY(!other || other == p || !is_queued(other, before, fd)))
		return false;
	fz_fdtab_restore_queued(fd, word, before);
	return true;
}

static void await(struct fz_fiber *self, struct fz_processor *p, uint32_t word, int fd)
{
	const fz_nsec end = fz_now() + FZ_SEC;
	bool own;

	while (is_queued(p, word, fd) && fz_now() < end) {
		fz_enter_runtime(self);
		own = fz_processor_or_none(self) == p;
		if (own)
			fz_ring_submit(&p->backend.ring);
		else
			fz_sched_hasten(p);
		fz_leave_runtime(self);
		if (!own)
			fz_pause(self, 50 * FZ_USEC);
	}
	fz_sched_hasten_end(p);
}

void fz_queued_await(struct fz_fiber *self, int fd)
{
	/* A request that is queued from here on may as well come after the close: do not wait for it. */
	const uint32_t word = fz_fdtab_queued(fd);
	struct fz_processor *const p = processor_of(word);

	/* `started` is false in a fork's child, which has no rings.  relaxed: this thread has cleared it. */
	if (p && atomic_load_explicit(&fz_sched.started, memory_order_relaxed) &&
	    FZ_UNLIKELY(is_queued(p, word, fd)))
		await(self, p, word, fd);
}
