/* SPDX-License-Identifier: MIT */
#include "runtime/sched/announce.h"

/*
 * The processor was taken or given up meanwhile, or others are waiting for it.  Get
 * one again, in turn: who calls nothing else would otherwise go on without for ever.
 */
bool fz_announce_end_slowly(struct fz_fiber *self)
{
	uintptr_t owner = (uintptr_t)self->carrier | FZ_OWNER_USER;
	/* relaxed: as in fz_announce_end(). */
	bool kept = atomic_load_explicit(&self->carrier->processor->owner,
					 memory_order_relaxed) == owner;

	fz_enter_runtime(self);
	fz_leave_runtime(self);
	return !kept;
}
