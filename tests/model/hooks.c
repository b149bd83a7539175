/* SPDX-License-Identifier: MIT */
/*
 * tests/model/hooks.c - what explored files call at each access to memory: the entry points of -fsanitize=thread, with no
 * sanitizer behind them, and functions instead of libc's.
 */
#include "tests/model/hooks.h"
#include "tests/model/model.h"

#include <string.h>

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
		model_after_write(p);						\
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
		model_after_write(p);						\
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
			model_after_write(p);					\
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

/* ---- what explored files call instead of libc (hooks.h) ------------------- */

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
