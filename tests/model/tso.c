/* SPDX-License-Identifier: MIT */
/*
 * tests/model/tso.c - store buffers, as x86-64 has them.
 *
 * A store that is not seq_cst goes into the buffer of its kthread.  While a kthread runs, memory
 * shows what it sees: its own buffered stores are in memory.  When another kthread takes over, they
 * are taken back (tso_hide), and come again when the first goes on (tso_show).  So a plain store,
 * which the program makes itself after its hook, is buffered like any other.
 *
 * Commit: the oldest store of a kthread goes to memory for good.
 */
#include "tests/model/model.h"

#include <string.h>

bool tso;

enum { MOST = sizeof(M.store) / sizeof(M.store[0]), DEEP = 12, NEAR = 64 * 1024 };

static void drop(uint32_t i)
{
	M.store_count[M.store[i].kt]--;
	memmove(&M.store[i], &M.store[i + 1], (M.stores - i - 1) * sizeof(M.store[0]));
	M.stores--;
}

/* While kt runs, its stores are in memory: they need only be forgotten. */
void tso_flush(int kt)
{
	for (uint32_t i = M.stores; M.store_count[kt] && i-- > 0;)
		if (M.store[i].kt == (uint32_t)kt)
			drop(i);
}

void tso_store(const void *p, size_t size)
{
	const uintptr_t here = (uintptr_t)__builtin_frame_address(0);
	uint32_t oldest = 0;

	/* On its own stack: the scheduler runs there, too, when it hides the store. */
	if ((uintptr_t)p > here - NEAR && (uintptr_t)p < here + NEAR && (uintptr_t)p < stack_end())
		return;
	/* Larger than a register: the compiler's own copy of a struct.  Nobody waits for it. */
	if (size > 8) {
		tso_flush(M.current);
		return;
	}
	if (M.store_count[M.current] >= DEEP) {
		while (M.store[oldest].kt != (uint32_t)M.current)
			oldest++;
		drop(oldest);
	} else if (M.stores == MOST) {
		model_outside("more buffered stores than tso.c has room for");
	}
	M.store[M.stores].addr = (uintptr_t)p;
	M.store[M.stores].size = (uint32_t)size;
	M.store[M.stores].kt = (uint32_t)M.current;
	M.store[M.stores].before = 0;
	memcpy(&M.store[M.stores].before, p, size);
	M.stores++;
	M.store_count[M.current]++;
}

void tso_hide(int kt)
{
	for (uint32_t i = M.stores; M.store_count[kt] && i-- > 0;) {
		if (M.store[i].kt != (uint32_t)kt)
			continue;
		M.store[i].value = 0;
		memcpy(&M.store[i].value, (void *)M.store[i].addr, M.store[i].size);
		memcpy((void *)M.store[i].addr, &M.store[i].before, M.store[i].size);
	}
}

void tso_show(int kt)
{
	for (uint32_t i = 0; M.store_count[kt] && i < M.stores; i++) {
		if (M.store[i].kt != (uint32_t)kt)
			continue;
		memcpy(&M.store[i].before, (void *)M.store[i].addr, M.store[i].size);
		memcpy((void *)M.store[i].addr, &M.store[i].value, M.store[i].size);
	}
}

/* The oldest store of kt, which does not run. */
void tso_commit_one(int kt)
{
	for (uint32_t i = 0; i < M.stores; i++) {
		if (M.store[i].kt != (uint32_t)kt)
			continue;
		model_note_write((void *)M.store[i].addr, M.store[i].size);
		memcpy((void *)M.store[i].addr, &M.store[i].value, M.store[i].size);
		drop(i);
		return;
	}
}
