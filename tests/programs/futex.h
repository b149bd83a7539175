/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/futex.h - futexes by syscall(2).
 */
#ifndef FUTEX_H
#define FUTEX_H

#include "check.h"

#include <linux/futex.h>
#include <sys/mman.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { WAITERS = 20 };

static long futex(uint32_t *word, int op, uint32_t value, const void *timeout, uint32_t *word2,
		  uint32_t value3)
{
	return syscall(SYS_futex, word, op, value, timeout, word2, value3);
}

static long wait_for(uint32_t *word, uint32_t expected)
{
	return futex(word, FUTEX_WAIT_PRIVATE, expected, NULL, NULL, 0);
}

static long wake(uint32_t *word, uint32_t n)
{
	return futex(word, FUTEX_WAKE_PRIVATE, n, NULL, NULL, 0);
}

/* What a library does that has no function to call. */
UNUSED static long inline_futex(uint32_t *word, int op, uint32_t value)
{
#ifdef __x86_64__
	register long timeout __asm__("r10") = 0;
	long ret;

	__asm__ volatile("syscall" : "=a"(ret)
			 : "a"(SYS_futex), "D"(word), "S"(op), "d"((long)value), "r"(timeout)
			 : "rcx", "r11", "memory");
	return ret;
#else
	long ret = futex(word, op, value, NULL, NULL, 0);

	return ret < 0 ? -errno : ret;
#endif
}

static uint32_t first;

/* Waiters come when they come: go on until it has been n in all. */
UNUSED static void until(long n, long (*some)(void))
{
	while (n) {
		long did = some();

		CHECK(did >= 0 && did <= n);
		n -= did;
		if (n)
			usleep(200);
	}
}

static long wake_one(void) { return wake(&first, 1); }

UNUSED static void finish_all(pthread_t *threads)
{
	for (int i = 0; i < WAITERS; i++)
		finish(threads[i]);
}

#endif
