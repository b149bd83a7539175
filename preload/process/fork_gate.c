/* SPDX-License-Identifier: MIT */
#include "preload/process/fork_gate.h"

#include <limits.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/base.h"
#include "runtime/base/sys.h"
#include "runtime/signal/signal.h"
#include "runtime/sync/lot.h"

/* Low half: threads inside; above it: threads that close the gate, in units of CLOSER. */
enum { CLOSER = 1 << 16, INSIDE = CLOSER - 1 };

static struct {
	_Alignas(FZ_CACHE_LINE) _Atomic uint32_t word;
} gates[FZ_GATES];

/* How often the calling thread is inside each gate; thread-local, so it moves with the fiber. */
static __thread uint32_t mine[FZ_GATES];

/*
 * Wake, but keep the calling fiber on its kernel thread: signals may be blocked for that kernel thread
 * only.
 */
static void wake_staying(_Atomic uint32_t *word, uint32_t n)
{
	/* relaxed: only this thread and its handlers write in_runtime. */
	if (atomic_load_explicit(&fz_self()->in_runtime, memory_order_relaxed))
		fz_lot_wake(word, n);
	else
		fz_lot_wake_staying(word, n);
}

void fz_gate_enter(enum fz_gate which)
{
	_Atomic uint32_t *word = &gates[which].word;
	uint32_t seen = atomic_load_explicit(word, memory_order_relaxed);

	fz_signal_bar(fz_self());
	mine[which]++;
	for (;;) {
		if (FZ_UNLIKELY(seen >= CLOSER)) {
			fz_lot_wait(word, seen, FZ_FOREVER,
				    FZ_WAIT_UNINTERRUPTIBLE | FZ_LOT_FOR(FZ_FOR_LIBC_LOCK));
			seen = atomic_load_explicit(word, memory_order_relaxed);
			continue;
		}
		/* acquire: pairs with fz_gate_open(). */
		if (atomic_compare_exchange_weak_explicit(word, &seen, seen + 1,
							  memory_order_acquire,
							  memory_order_relaxed))
			return;
	}
}

void fz_gate_leave(enum fz_gate which)
{
	_Atomic uint32_t *word = &gates[which].word;

	/*
	 * release: the lock held inside is free again; pairs with the acquire in fz_gate_close().
	 */
	if (FZ_UNLIKELY(atomic_fetch_sub_explicit(word, 1, memory_order_release) > CLOSER))
		fz_sys_futex_wake(word, INT_MAX);
	mine[which]--;
	fz_signal_allow(fz_self());
}

void fz_gate_close(enum fz_gate which)
{
	_Atomic uint32_t *word = &gates[which].word;
	uint32_t seen;

	atomic_fetch_add_explicit(word, CLOSER, memory_order_relaxed);
	/* acquire: pairs with fz_gate_leave(). */
	while (((seen = atomic_load_explicit(word, memory_order_acquire)) & INSIDE) > mine[which])
		fz_sys_futex_wait(word, seen, NULL);
}

void fz_gate_open(enum fz_gate which)
{
	_Atomic uint32_t *word = &gates[which].word;

	/* release: pairs with fz_gate_enter(). */
	atomic_fetch_sub_explicit(word, CLOSER, memory_order_release);
	wake_staying(word, INT_MAX);
}

void fz_gates_after_fork(void)
{
	for (int i = 0; i < FZ_GATES; i++)
		atomic_store_explicit(&gates[i].word, mine[i], memory_order_relaxed);
}
