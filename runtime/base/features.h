/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_BASE_FEATURES_H
#define FZ_RUNTIME_BASE_FEATURES_H

/*
 * runtime/base/features.h - features that older kernels and CPUs lack.  Each feature has a substitute.
 * The substitute is also used if FIBERIZE_WITHOUT names the feature, or if a seccomp filter forbids
 * the system call of the feature.
 *
 *	feature		since				substitute
 *	no-iowait	Linux 6.15			waits that count as waits for I/O
 *			(IORING_ENTER_NO_IOWAIT)
 *	guard-install	Linux 6.13			mprotect
 *			(MADV_GUARD_INSTALL)
 *	sync-cancel	Linux 6.0			epoll instead of io_uring
 *			(IORING_REGISTER_SYNC_CANCEL)
 *	rwf-nowait	Linux 4.14, for pipes 5.5	poll, then the real call
 *			(RWF_NOWAIT)
 *	epoll-pwait2	Linux 5.11			ppoll, then epoll_pwait
 *	fsgsbase	x86-64, Linux 5.9		arch_prctl
 */

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/base.h"

/* In the order of the words of FIBERIZE_WITHOUT (runtime/base/options.def). */
enum fz_feature {
	FZ_FEATURE_NO_IOWAIT,
	FZ_FEATURE_GUARD_INSTALL,
	FZ_FEATURE_SYNC_CANCEL,
	FZ_FEATURE_RWF_NOWAIT,
	FZ_FEATURE_EPOLL_PWAIT2,
	FZ_FEATURE_FSGSBASE,
};

/* One bit for each feature that is not used. */
extern _Atomic uint64_t fz_features_without FZ_HIDDEN;

static inline bool fz_feature_allowed(enum fz_feature feature)
{
	/* relaxed: a thread with an old value finds out by itself that the feature is forbidden. */
	return FZ_LIKELY(!(atomic_load_explicit(&fz_features_without, memory_order_relaxed) >>
				   feature & 1));
}

/* A seccomp filter forbids the call that the feature needs.  Any thread. */
static inline void fz_feature_lose(enum fz_feature feature)
{
	atomic_fetch_or_explicit(&fz_features_without, (uint64_t)1 << feature,
				 memory_order_relaxed);
}

#endif
