/* SPDX-License-Identifier: MIT */
#include "runtime/cond.h"

#include <asm/errno.h>

#include "runtime/lot.h"
#include "runtime/park.h"

int fz_cond_wait(struct fz_cond *c, struct fz_mutex *m, fz_nsec deadline)
{
	uint32_t count = m->count;
	/*
	 * seq_cst: pairs with fz_cond_wake(): who signals after our unlock finds
	 * a waiter, and changes the sequence that we took before.
	 */
	uint32_t sequence = atomic_load_explicit(&c->sequence, memory_order_seq_cst);
	int ret, err;

	atomic_fetch_add_explicit(&c->waiters, 1, memory_order_seq_cst);
	/* A recursive mutex is released whole. */
	m->count = 1;
	err = fz_mutex_unlock(m);
	if (err) {
		m->count = count;
		atomic_fetch_sub_explicit(&c->waiters, 1, memory_order_release);
		return err;
	}
	/* After a handler it goes on, unless there was a signal to us meanwhile. */
	do {
		ret = fz_lot_wait(&c->sequence, sequence, deadline,
				  FZ_WAIT_CANCEL | FZ_WAIT_SIGNAL);
	} while (ret == -EINTR);
	/* release: the last touch; pairs with fz_cond_destroy(). */
	if (atomic_fetch_sub_explicit(&c->waiters, 1, memory_order_release) == 1)
		fz_lot_wake(&c->waiters, UINT32_MAX);
	fz_mutex_lock(m, FZ_FOREVER);
	m->count = count;
	if (ret == -ECANCELED)
		return ret;
	return ret == -ETIMEDOUT ? ETIMEDOUT : 0;
}

void fz_cond_wake(struct fz_cond *c, uint32_t n)
{
	/* seq_cst: see fz_cond_wait(). */
	if (!atomic_load_explicit(&c->waiters, memory_order_seq_cst))
		return;
	atomic_fetch_add_explicit(&c->sequence, 1, memory_order_seq_cst);
	fz_lot_wake(&c->sequence, n);
}

void fz_cond_destroy(struct fz_cond *c)
{
	uint32_t waiters;

	/* acquire: pairs with the release in fz_cond_wait(). */
	while ((waiters = atomic_load_explicit(&c->waiters, memory_order_acquire)))
		fz_lot_wait(&c->waiters, waiters, FZ_FOREVER, FZ_WAIT_SIGNAL);
}
