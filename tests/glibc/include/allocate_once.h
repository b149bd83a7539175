/* SPDX-License-Identifier: MIT */
/*
 * tests/glibc/include/allocate_once.h - what the first caller allocates is everybody's.
 */
#ifndef FZ_GLIBC_ALLOCATE_ONCE_H
#define FZ_GLIBC_ALLOCATE_ONCE_H

#include <stddef.h>

static inline void *allocate_once(void **place, void *(*allocate)(void *),
				  void (*deallocate)(void *, void *), void *closure)
{
	void *old = __atomic_load_n(place, __ATOMIC_ACQUIRE), *made;

	if (old)
		return old;
	made = allocate(closure);
	if (__atomic_compare_exchange_n(place, &old, made, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return made;
	deallocate(closure, made);
	return old;
}

#endif
