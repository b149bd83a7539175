/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_THREAD_HANDLE_H
#define FZ_PRELOAD_THREAD_HANDLE_H

/* preload/thread/handle.h - the fiber of a pthread_t. */

#include <pthread.h>

#include "runtime/fiber/fiber.h"

/* The fiber, or NULL for a native thread. */
static inline struct fz_fiber *fz_thread_fiber(pthread_t thread)
{
	struct fz_fiber *fiber = fz_fiber_of_handle(thread);

	return fz_is_fiber(fiber) ? fiber : NULL;
}

#endif
