/* SPDX-License-Identifier: MIT */
/*
 * tests/model/hooks.c - the entry points that -fsanitize=thread puts at each access to memory, with
 * no sanitizer behind them: an access is a point of the schedule, and a write is logged, so that
 * the next run finds the memory as it was.
 */
#include "tests/model/builtin.h"
#include "tests/model/model.h"
#include "tests/model/reduce/reduce.h"

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
		model_outside("more memory than hooks.c has places for");
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
	p->saved_in = run_number;
	if (undos == LOG)
		model_outside("a longer run than hooks.c can undo");
	tables.undo[undos].addr = p->key * 8;
	tables.undo[undos++].before = *(uint64_t *)(p->key * 8);
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
static void after_write(const volatile void *p)
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


/* ---- what the compiler calls ------------------------------------------------ */

void __tsan_init(void);
void __tsan_func_entry(void *pc);
void __tsan_func_exit(void);
void __tsan_read_range(const void *p, size_t size);
void __tsan_write_range(void *p, size_t size);
void __tsan_vptr_update(void **p, void *value);
void __tsan_atomic_thread_fence(int order);
void __tsan_atomic_signal_fence(int order);

void __tsan_init(void)
{
}

void __tsan_func_entry(void *pc)
{
	(void)pc;
}

void __tsan_func_exit(void)
{
}

#define PLAIN(size)							\
	void __tsan_read##size(const void *p);				\
	void __tsan_write##size(void *p);				\
	void __tsan_unaligned_read##size(const void *p);		\
	void __tsan_unaligned_write##size(void *p);			\
	void __tsan_volatile_read##size(const void *p);			\
	void __tsan_volatile_write##size(void *p);			\
	void __tsan_read##size(const void *p) { model_access(p, size, READ); }	\
	void __tsan_write##size(void *p) { model_access(p, size, WRITE); }	\
	void __tsan_unaligned_read##size(const void *p) { model_access(p, size, READ); } \
	void __tsan_unaligned_write##size(void *p) { model_access(p, size, WRITE); }	\
	void __tsan_volatile_read##size(const void *p) { model_access(p, size, READ); }	\
	void __tsan_volatile_write##size(void *p) { model_access(p, size, WRITE); }

PLAIN(1)
PLAIN(2)
PLAIN(4)
PLAIN(8)
PLAIN(16)

void __tsan_read_range(const void *p, size_t size)
{
	model_access(p, size, READ);
}

void __tsan_write_range(void *p, size_t size)
{
	model_access(p, size, WRITE);
}

void __tsan_atomic_thread_fence(int order)
{
	/* Weaker ones are no instruction on x86-64. */
	if (tso && exploring && order == __ATOMIC_SEQ_CST)
		tso_flush(M.current);
}

void __tsan_atomic_signal_fence(int order)
{
	(void)order;
}

/* A store is buffered unless it is seq_cst; what reads and writes empties the buffer. */
#define RMW (WRITE | ATOMIC | ORDERED)
#define ATOMICS(bits, type)						\
	type __tsan_atomic##bits##_load(const volatile type *p, int order);	\
	void __tsan_atomic##bits##_store(volatile type *p, type v, int order);	\
	type __tsan_atomic##bits##_load(const volatile type *p, int order)	\
	{								\
		(void)order;						\
		model_access((const void *)p, bits / 8, READ | ATOMIC);	\
		return *p;						\
	}								\
	void __tsan_atomic##bits##_store(volatile type *p, type v, int order)	\
	{								\
		model_access((const void *)p, bits / 8, WRITE | ATOMIC |	\
			     (order == __ATOMIC_SEQ_CST ? ORDERED : 0));	\
		*p = v;							\
		after_write(p);						\
	}								\
	FETCH(bits, type, exchange, v)					\
	FETCH(bits, type, fetch_add, (type)(old + v))			\
	FETCH(bits, type, fetch_sub, (type)(old - v))			\
	FETCH(bits, type, fetch_or, (type)(old | v))			\
	FETCH(bits, type, fetch_and, (type)(old & v))			\
	FETCH(bits, type, fetch_xor, (type)(old ^ v))			\
	CAS(bits, type, strong)						\
	CAS(bits, type, weak)

#define FETCH(bits, type, name, result)					\
	type __tsan_atomic##bits##_##name(volatile type *p, type v, int order);	\
	type __tsan_atomic##bits##_##name(volatile type *p, type v, int order)	\
	{								\
		type old;						\
		(void)order;						\
		model_access((const void *)p, bits / 8, RMW);		\
		old = *p;						\
		*p = result;						\
		after_write(p);						\
		return old;						\
	}

#define CAS(bits, type, kind)						\
	int __tsan_atomic##bits##_compare_exchange_##kind(volatile type *p, type *expected, \
							  type v, int order, int failing);	\
	int __tsan_atomic##bits##_compare_exchange_##kind(volatile type *p, type *expected, \
							  type v, int order, int failing)	\
	{								\
		(void)order;						\
		(void)failing;						\
		model_access((const void *)p, bits / 8, RMW);		\
		if (*p == *expected) {					\
			*p = v;						\
			after_write(p);					\
			return 1;					\
		}							\
		model_note_write(expected, sizeof(*expected));		\
		*expected = *p;						\
		return 0;						\
	}

/* clang calls this one. */
#define CAS_VAL(bits, type)						\
	type __tsan_atomic##bits##_compare_exchange_val(volatile type *p, type expected, type v, \
							int order, int failing); \
	type __tsan_atomic##bits##_compare_exchange_val(volatile type *p, type expected, type v, \
							int order, int failing) \
	{								\
		return __tsan_atomic##bits##_compare_exchange_strong(p, &expected, v, order, failing) ? \
			       expected : *p;				\
	}

ATOMICS(8, uint8_t)
ATOMICS(16, uint16_t)
ATOMICS(32, uint32_t)
ATOMICS(64, uint64_t)
CAS_VAL(8, uint8_t)
CAS_VAL(16, uint16_t)
CAS_VAL(32, uint32_t)
CAS_VAL(64, uint64_t)

/* ---- what explored files call instead of libc (builtin.h) ------------------- */

void *model_memcpy(void *to, const void *from, size_t size)
{
	return model_memmove(to, from, size);
}

void *model_memmove(void *to, const void *from, size_t size)
{
	if (size) {
		model_access(from, size, READ);
		model_access(to, size, WRITE);
	}
	return memmove(to, from, size);
}

void *model_memset(void *to, int byte, size_t size)
{
	if (size)
		model_access(to, size, WRITE);
	return memset(to, byte, size);
}

/* These may end before they have read all that is said to be read here. */
int model_memcmp(const void *a, const void *b, size_t size)
{
	if (size) {
		model_access(a, size, READ);
		model_access(b, size, READ);
	}
	return memcmp(a, b, size);
}

void *model_memchr(const void *p, int byte, size_t size)
{
	if (size)
		model_access(p, size, READ);
	return memchr(p, byte, size);
}

/* Another kthread may have changed the text at the point, but not moved its end: nobody does that to a text. */
char *model_strchr(const char *text, int c)
{
	model_access(text, strlen(text) + 1, READ);
	return strchr(text, c);
}

size_t model_strcspn(const char *text, const char *set)
{
	model_access(text, strlen(text) + 1, READ);
	model_access(set, strlen(set) + 1, READ);
	return strcspn(text, set);
}

size_t model_strlen(const char *text)
{
	model_access(text, strlen(text) + 1, READ);
	return strlen(text);
}
