/* SPDX-License-Identifier: MIT */
/*
 * preload/sync/spin.c - a fiber that spins for a lock lets other fibers run, because one of
 * them may hold the lock. The word has libc's format, so that processes with and without this
 * library can share the lock; init, destroy, trylock and unlock are libc's.
 */
#include "preload/gate.h"
#include "runtime/sync/spin.h"

_Static_assert(sizeof(struct fz_spin) == sizeof(pthread_spinlock_t), "it is it");

FZ_EXPORT int pthread_spin_lock(pthread_spinlock_t *lock)
{
	struct fz_spin *s = (struct fz_spin *)(void *)(uintptr_t)lock;

	if (FZ_LIKELY(fz_spin_try(s)))
		return 0;
	fz_enter(FZ_SYM_pthread_spin_lock);
	fz_spin_lock_slowly(s);
	return 0;
}
