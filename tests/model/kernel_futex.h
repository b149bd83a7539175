/* SPDX-License-Identifier: MIT */
#ifndef FZ_MODEL_KERNEL_FUTEX_H
#define FZ_MODEL_KERNEL_FUTEX_H

/*
 * tests/model/kernel_futex.h - the model's futexes: waits and wake-ups by bits, requeues.
 */

#include <stdint.h>

/* The system call. */
long futex(uint32_t *word, int operation, uint32_t value, long d, uint32_t *word2, uint32_t value3);

/* Returns how many were woken, of those that wait for one of the bits. */
long futex_wake(const void *word, int most, uint32_t bits);

#endif
