/* SPDX-License-Identifier: MIT */
#include "runtime/base/role.h"

#include "runtime/base/base.h"

struct fz_role fz_roles[FZ_ROLES];

enum { NEAR = 8 };	/* places that a tid may have */

static struct fz_role *place(int tid, int i)
{
	return &fz_roles[((unsigned)tid + (unsigned)i) % FZ_ROLES];
}

void fz_role_set(int tid, enum fz_role_kind kind, const char *why, const void *record)
{
	struct fz_role *r = place(tid, 0);

	for (int i = 0; i < NEAR; i++) {
		int unused = 0;

		/* relaxed, here and below: readers (tools, the monitor) check what they find. */
		if (atomic_compare_exchange_strong_explicit(&place(tid, i)->tid, &unused, tid,
							    memory_order_relaxed,
							    memory_order_relaxed) ||
		    unused == tid) {
			r = place(tid, i);
			break;
		}
	}
	atomic_store_explicit(&r->tid, tid, memory_order_relaxed);
	r->kind = kind;
	r->why = why;
	r->record = record;
}

void fz_role_end(int tid)
{
	for (int i = 0; i < NEAR; i++) {
		int own = tid;

		atomic_compare_exchange_strong_explicit(&place(tid, i)->tid, &own, 0,
							memory_order_relaxed,
							memory_order_relaxed);
	}
}

void fz_role_after_fork(void)
{
	/* Unused pages stay shared with the parent. */
	for (int i = 0; i < FZ_ROLES; i++)
		if (atomic_load_explicit(&fz_roles[i].tid, memory_order_relaxed))
			__builtin_memset(&fz_roles[i], 0, sizeof(fz_roles[i]));
}
