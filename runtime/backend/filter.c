/* SPDX-License-Identifier: MIT */
#include "runtime/backend/filter.h"

#include <linux/prctl.h>

#include "runtime/base/sys.h"

enum { NUMBERS = 512, WORD_BITS = 64 };

_Atomic bool fz_filter_exists, fz_filter_is_programs;

/* A bit for each number.  `forbidden` is valid where `asked` is set. */
static _Atomic uint64_t asked[NUMBERS / WORD_BITS], forbidden[NUMBERS / WORD_BITS];

void fz_filter_init(void)
{
	/* 0: there is no filter.  An error may come from a filter; in a kernel without filters it only costs time. */
	atomic_store_explicit(&fz_filter_exists,
			      fz_syscall5(__NR_prctl, PR_GET_SECCOMP, 0, 0, 0, 0) != 0,
			      memory_order_relaxed);
}

void fz_filter_changed(void)
{
	/*
	 * `forbidden` stays, since a new filter never allows more.  relaxed: a call that another thread
	 * makes at this moment may come before the filter.
	 */
	for (int i = 0; i < NUMBERS / WORD_BITS; i++)
		atomic_store_explicit(&asked[i], 0, memory_order_relaxed);
	atomic_store_explicit(&fz_filter_exists, true, memory_order_relaxed);
	atomic_store_explicit(&fz_filter_is_programs, true, memory_order_relaxed);
}

bool fz_filter_forbids_now(long number)
{
	const uint64_t bit = (uint64_t)1 << number % WORD_BITS;
	const long word = number / WORD_BITS;

	if (number >= NUMBERS)
		return false;
	/* acquire: pairs with the release below; the answer is there. */
	if (!(atomic_load_explicit(&asked[word], memory_order_acquire) & bit)) {
		/* With a descriptor that is never open, the kernel answers EBADF. */
		if (fz_syscall6(number, -1, 0, 0, 0, 0, 0) != -EBADF)
			atomic_fetch_or_explicit(&forbidden[word], bit, memory_order_relaxed);
		atomic_fetch_or_explicit(&asked[word], bit, memory_order_release);
	}
	return atomic_load_explicit(&forbidden[word], memory_order_relaxed) & bit;
}
