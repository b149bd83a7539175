/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_BACKEND_CHOICE_H
#define FZ_RUNTIME_BACKEND_CHOICE_H

/*
 * runtime/backend/choice.h - which backend is in use, and why.  fz_backends_init() in backend.c chooses.
 */

#include "runtime/base/base.h"

enum fz_backend_kind {
	FZ_BACKEND_AUTO,	/* only as a wish: io_uring, or epoll if io_uring fails */
	FZ_BACKEND_RING,
	FZ_BACKEND_EPOLL,
};

struct fz_backend_choice {
	/* enum fz_backend_kind; written while there is one thread, or when the ring is lost. */
	_Atomic uint32_t kind;
	/* a bit for each opcode that is forbidden (fz_ring_forbid) */
	_Atomic uint64_t forbidden_ops;
	const char *failed;	/* which step of io_uring failed, or NULL */
	int error;		/* -errno of that failure, or 0 */
	_Atomic bool avoids_ring;	/* fz_backend_avoid_ring() has been called */
};
extern struct fz_backend_choice fz_backend_choice FZ_HIDDEN;

static inline enum fz_backend_kind fz_backend_kind(void)
{
	/*
	 * relaxed: an old value does no harm; the kernel refuses the lost ring, and the caller
	 * tries again.
	 */
	return atomic_load_explicit(&fz_backend_choice.kind, memory_order_relaxed);
}

/*
 * io_uring has become or is about to become forbidden while the program runs (a seccomp filter):
 * use epoll from now on.  Requests in flight are not cancelled.  why: what failed; error: 0 or -errno.
 * Any thread.
 */
void fz_backend_lose_ring(const char *why, int error);

/* When backends are made later, in this process or in one that it forks, use epoll.  Any thread. */
void fz_backend_avoid_ring(void);

/* "io_uring" or "epoll". */
const char *fz_backend_name(void);

#endif
