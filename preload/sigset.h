/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_SIGSET_H
#define FZ_PRELOAD_SIGSET_H

/*
 * preload/sigset.h - libc's sigset_t as a word of 64 signals, as the kernel takes it. libc's type is
 * larger, but only its first word is used.  Any thread.
 */

#include <signal.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t fz_sigset_word(const sigset_t *set)
{
	uint64_t word;

	memcpy(&word, set, sizeof(word));
	return word;
}

#endif
