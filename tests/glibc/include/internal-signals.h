/* SPDX-License-Identifier: MIT */
/*
 * tests/glibc/include/internal-signals.h - the signals that libc keeps for itself.
 */
#ifndef FZ_GLIBC_INTERNAL_SIGNALS_H
#define FZ_GLIBC_INTERNAL_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

#define SIGCANCEL 32
#define SIGTIMER SIGCANCEL
#define SIGSETXID 33

static inline bool is_internal_signal(int sig)
{
	return sig == SIGCANCEL || sig == SIGSETXID;
}

#endif
