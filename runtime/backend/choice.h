/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_BACKEND_CHOICE_H
#define FZ_RUNTIME_BACKEND_CHOICE_H

/*
 * runtime/backend/choice.h - which backend it is, and why that.
 */

#include "runtime/base/base.h"

enum fz_backend_kind {
	FZ_BACKEND_AUTO,	/* only as a wish: io_uring, or epoll if that fails */
	FZ_BACKEND_RING,
	FZ_BACKEND_EPOLL,
};

struct fz_backend_choice {
	/* Written while there is one thread, or when the ring is lost. */
	_Atomic uint32_t kind;
	const char *failed;	/* what of io_uring failed, or NULL */
	int error;		/* and how: an error number, or 0 */
};
extern struct fz_backend_choice fz_backend_choice FZ_HIDDEN;

static inline enum fz_backend_kind fz_backend_kind(void)
{
	/* relaxed: who uses the ring after it was lost is told to come back. */
	return atomic_load_explicit(&fz_backend_choice.kind, memory_order_relaxed);
}

/*
 * io_uring has become forbidden in mid-run (a seccomp filter): from now on it is epoll.
 * What is in flight completes as the kernel sees fit.  Any thread.
 */
void fz_backend_lose_ring(int error);

/* "io_uring" or "epoll". */
const char *fz_backend_name(void);

#endif
