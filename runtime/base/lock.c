/* SPDX-License-Identifier: MIT */
#include "runtime/base/lock.h"

#include "runtime/base/die.h"

#ifdef FZ_DEBUG

enum { MOST = 8 };

/* The locks that the fiber or kernel thread holds, the last one taken last.  A fiber holds none at a switch. */
static __thread struct {
	uint32_t count;
	const struct fz_lock *locks[MOST];
} held;

bool (*fz_lock_allowed)(void);

static const char *name_of(enum fz_rank rank)
{
	static const char *const names[] = {
		"UNSET",
#define FZ_RANK(name) #name,
		FZ_RANKS(FZ_RANK)
#undef FZ_RANK
	};

	return names[rank];
}

void fz_lock_check_order(const struct fz_lock *l)
{
	if (l->rank == FZ_RANK_UNSET)
		fz_die("lock %lx has no rank", (unsigned long)l);
	for (uint32_t i = 0; i < held.count; i++) {
		const struct fz_lock *before = held.locks[i];

		if (before->rank < l->rank ||
		    (before->rank == l->rank && l->rank == FZ_RANK_BUCKET && before < l))
			continue;
		fz_die("a thread asks for a lock of rank %s while it holds one of rank %s", name_of(l->rank),
		       name_of(before->rank));
	}
}

void fz_lock_note_taken(const struct fz_lock *l)
{
	FZ_ASSERT(held.count < MOST);
	/* ACTIONS and RECORDS are taken with all signals blocked. */
	if (fz_lock_allowed && l->rank != FZ_RANK_ACTIONS && l->rank != FZ_RANK_RECORDS &&
	    !fz_lock_allowed())
		fz_die("lock of rank %s is taken outside the runtime", name_of(l->rank));
	held.locks[held.count++] = l;
}

void fz_lock_note_released(const struct fz_lock *l)
{
	uint32_t i = held.count;

	while (i && held.locks[i - 1] != l)
		i--;
	if (!i)
		fz_die("a lock of rank %s is released by a thread that does not hold it", name_of(l->rank));
	for (held.count--; i <= held.count; i++)
		held.locks[i - 1] = held.locks[i];
}

void fz_lock_check_none_held(const char *where)
{
	if (FZ_UNLIKELY(held.count))
		fz_die("%s with a lock of rank %s held", where,
		       name_of(held.locks[held.count - 1]->rank));
}

#endif
