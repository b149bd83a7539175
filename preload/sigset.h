/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_SIGSET_H
#define FZ_PRELOAD_SIGSET_H

/* preload/sigset.h - libc's sigset_t as the kernel's, a word; the rest of it has no meaning.  Any thread. */

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
