/* SPDX-License-Identifier: MIT */
/*
 * tests/model/memory.c - the memory that runs use: who shares it, so that an access is a point of the schedule, and what was
 * there before, so that the next run finds it as it was.
 */
#include "tests/model/model.h"
#include "tests/model/reduce/reduce.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

enum { INDEX = 1 << 18, LINE = 16, HUGE_PAGE = 1 << 21, LOG = 1 << 18, STREAK_MOST = 8000 };

struct place places[PLACES] __attribute__((aligned(HUGE_PAGE)));
static struct tables {
	struct { uintptr_t addr; uint64_t before; } undo[LOG];
	uint32_t index[INDEX];		/* of places; 0: free */
} __attribute__((aligned(HUGE_PAGE))) tables;
static uint32_t used, undos;
uint32_t run_number = 1;
bool exploring, plain_points, since_point, sharing_is_known;
uint64_t step;

static struct place *add_place(uintptr_t key, uint32_t *index)
{
	if (++used == PLACES)
		model_outside("more memory than memory.c has places for");
	*index = used;
	places[used].key = key;
	return &places[used];
}

static inline struct place *find_place(uintptr_t key)
{
	/* Neighbours are in one cache line of the index: most accesses are near to others. */
	uint32_t i = (uint32_t)((key / LINE * 0x9e3779b97f4a7c15u) >> 32) % (INDEX / LINE) * LINE + key % LINE;

	/* From the last line it goes on with another word of the first ones: to each free one in the end. */
	for (; tables.index[i]; i = (i + LINE) % (INDEX - 1))
		if (places[tables.index[i]].key == key)
			return &places[tables.index[i]];
	return add_place(key, &tables.index[i]);
}

struct place *memory_place(uintptr_t key)
{
	return find_place(key);
}

static inline void save(struct place *p)
{
	if (p->saved_in == run_number)
		return;
	if (undos == LOG)
		model_outside("a longer run than memory.c can undo");
	tables.undo[undos].addr = p->key * 8;
	tables.undo[undos].before = *(uint64_t *)(p->key * 8);
	/* Where no memory is, the run fails here: then there is nothing to undo.  The fence is for the compiler. */
	atomic_signal_fence(memory_order_seq_cst);
	undos++;
	p->saved_in = run_number;
}

static inline void note_user(struct place *p, bool writes)
{
	p->kthreads |= (uint16_t)(1u << M.current);
	p->contexts |= model_context;
	p->written |= writes;
}

void model_note_write(const void *p, size_t size)
{
	if (!exploring || !size)
		return;
	for (uintptr_t key = (uintptr_t)p / 8; key <= ((uintptr_t)p + size - 1) / 8; key++) {
		struct place *place = find_place(key);

		note_user(place, true);
		save(place);
		if (watching)
			reduce_touch(place, true);
	}
}

void model_note_read(const void *p, size_t size)
{
	for (uintptr_t key = (uintptr_t)p / 8; exploring && key <= ((uintptr_t)p + size - 1) / 8; key++)
		note_user(find_place(key), false);
	reduce_read(p, size);
}

void model_put(void *to, const void *from, size_t size)
{
	model_note_write(to, size);
	memcpy(to, from, size);
}

/* Whole words.  Most are 0 already: who writes these is noted, too, as long as somebody asks; their value need not be. */
void model_put_zeros(uintptr_t at, size_t size)
{
	for (uintptr_t key = at / 8; key < (at + size) / 8; key++) {
		uint64_t *word = (uint64_t *)(key * 8);
		struct place *place;

		if (!*word && sharing_is_known)
			continue;
		place = find_place(key);
		note_user(place, true);
		if (watching)
			reduce_touch(place, true);
		if (!*word)
			continue;
		save(place);
		*word = 0;
	}
}

/* The running kthread does it now. */
static inline void use_place(struct place *p, unsigned what)
{
	if (watching)
		reduce_touch(p, what & WRITE);
	/* Another kthread may have run at the point: what it has left there is the old value. */
	if (what & WRITE)
		save(p);
}

/* Before the use: a point, if it is one.  shared: one of the places is. */
static inline void come_to(bool shared, unsigned what)
{
	step++;
	if (++M.kt[M.current].streak > STREAK_MOST)
		schedule_give_way();
	/*
	 * Without an access to shared memory since the last point it would be the same point.  In a
	 * listed run, which another set of shared places may have been known in, all are points.
	 */
	if (listed || (shared && (what & ATOMIC || plain_points) && since_point))
		schedule_point();
	since_point |= shared || listed;
}

static inline void buffer(const void *p, size_t size, unsigned what)
{
	if (what & ORDERED)
		tso_flush(M.current);
	else if (what & WRITE)
		tso_store(p, size);
}

static __attribute__((noinline)) void access_several(const void *p, size_t size, unsigned what)
{
	const uintptr_t first = (uintptr_t)p / 8, last = ((uintptr_t)p + size - 1) / 8;
	bool shared = false;

	for (uintptr_t key = first; key <= last; key++) {
		struct place *place = find_place(key);

		note_user(place, what & WRITE);
		shared |= place->shared;
	}
	come_to(shared, what);
	for (uintptr_t key = first; key <= last; key++)
		use_place(find_place(key), what);
	if (tso)
		buffer(p, size, what);
}

void model_access(const void *p, size_t size, unsigned what)
{
	struct place *place;

	if (!exploring)
		return;
	if (((uintptr_t)p ^ ((uintptr_t)p + size - 1)) / 8) {
		access_several(p, size, what);
		return;
	}
	place = find_place((uintptr_t)p / 8);
	note_user(place, what & WRITE);
	come_to(place->shared, what);
	use_place(place, what);
	if (tso)
		buffer(p, size, what);
}

/* After an atomic write: what follows may be seen by others in another order, plain accesses too. */
void model_after_write(const volatile void *p)
{
	if (!exploring)
		return;
	step++;
	if ((find_place((uintptr_t)p / 8)->shared || listed) && since_point)
		schedule_point();
}

/* Each access uses them, all over: with small pages most accesses would miss the TLB.  A kernel may refuse. */
void memory_start(void)
{
	madvise(places, sizeof(places), MADV_HUGEPAGE);
	madvise(&tables, sizeof(tables), MADV_HUGEPAGE);
}

void memory_begin_run(void)
{
	run_number++;
	undos = 0;
}

void memory_undo(void)
{
	while (undos) {
		undos--;
		*(uint64_t *)tables.undo[undos].addr = tables.undo[undos].before;
	}
}

uint64_t memory_end(void)
{
	uint64_t sum = 0, h;

	for (uint32_t i = 0; i < undos; i++) {
		if (stack_has(tables.undo[i].addr) || !find_place(tables.undo[i].addr / 8)->shared)
			continue;
		h = (tables.undo[i].addr ^ 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u + *(uint64_t *)tables.undo[i].addr;
		h = (h ^ h >> 31) * 0x94d049bb133111ebu;
		sum += h ^ h >> 29;
	}
	return sum;
}

static bool is_shared(const struct place *p)
{
	return p->written && p->kthreads & (p->kthreads - 1) && p->contexts & (p->contexts - 1);
}

uint32_t memory_freeze_shared(void)
{
	uint32_t n = 0;

	for (uint32_t i = 1; i <= used; i++) {
		places[i].shared = is_shared(&places[i]);
		n += places[i].shared;
	}
	return n;
}
