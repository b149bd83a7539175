/* SPDX-License-Identifier: MIT */
#include "runtime/backend/choice.h"

#include "runtime/base/die.h"
#include "runtime/base/host.h"

struct fz_backend_choice fz_backend_choice;

void fz_backend_lose_ring(const char *why, int error)
{
	uint32_t ring = FZ_BACKEND_RING;

	/* relaxed: see fz_backend_kind(). */
	if (!atomic_compare_exchange_strong_explicit(&fz_backend_choice.kind, &ring,
						     FZ_BACKEND_EPOLL, memory_order_relaxed,
						     memory_order_relaxed))
		return;
	fz_backend_choice.failed = why;
	fz_backend_choice.error = error;
	if (FZ_UNLIKELY(fz_verbose))
		fz_say("epoll instead of io_uring from now on: %s%s%s", why, error ? ": " : "",
		       error ? fz_host.error_name(-error) : "");
}

void fz_backend_avoid_ring(void)
{
	/* relaxed: only this process's later choices depend on it. */
	atomic_store_explicit(&fz_backend_choice.avoids_ring, true, memory_order_relaxed);
}

const char *fz_backend_name(void)
{
	return fz_backend_kind() == FZ_BACKEND_EPOLL ? "epoll" : "io_uring";
}
