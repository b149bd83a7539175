/* SPDX-License-Identifier: MIT */
/*
 * tests/glibc/include/atomic.h - the atomic operations of libc that its tests use.
 */
#ifndef FZ_GLIBC_ATOMIC_H
#define FZ_GLIBC_ATOMIC_H

#include <signal.h>
#include <stdbool.h>

#define __HAVE_64B_ATOMICS 1
#define atomic_load_relaxed(p) __atomic_load_n(p, __ATOMIC_RELAXED)
#define atomic_load_acquire(p) __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define atomic_store_relaxed(p, v) __atomic_store_n(p, v, __ATOMIC_RELAXED)
#define atomic_store_release(p, v) __atomic_store_n(p, v, __ATOMIC_RELEASE)
#define atomic_fetch_add_relaxed(p, v) __atomic_fetch_add(p, v, __ATOMIC_RELAXED)
#define atomic_fetch_add_acq_rel(p, v) __atomic_fetch_add(p, v, __ATOMIC_ACQ_REL)
#define atomic_exchange_acq(p, v) __atomic_exchange_n(p, v, __ATOMIC_ACQUIRE)
#define atomic_increment(p) ((void)__atomic_fetch_add(p, 1, __ATOMIC_ACQ_REL))
#define atomic_decrement(p) ((void)__atomic_fetch_sub(p, 1, __ATOMIC_ACQ_REL))
#define atomic_spin_nop() __builtin_ia32_pause()
#define atomic_write_barrier() __atomic_thread_fence(__ATOMIC_RELEASE)
#define atomic_full_barrier() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#define catomic_add(p, v) ((void)__atomic_fetch_add(p, v, __ATOMIC_ACQ_REL))

#endif
