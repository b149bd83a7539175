/* SPDX-License-Identifier: MIT */
#include "runtime/sync/priority.h"

#include <linux/sched.h>

#include "runtime/base/sys.h"
#include "runtime/base/uapi.h"

static _Atomic bool heeded;

void fz_priority_heed(void)
{
	/* relaxed: as natively, a thread that waits already keeps its place. */
	atomic_store_explicit(&heeded, true, memory_order_relaxed);
}

uint8_t fz_priority_own(void)
{
	struct fz_uapi_sched_attr now;

	if (FZ_LIKELY(!atomic_load_explicit(&heeded, memory_order_relaxed)) ||
	    fz_syscall4(__NR_sched_getattr, 0, (long)&now, sizeof(now), 0))
		return 0;
	return now.policy == SCHED_DEADLINE ? UINT8_MAX : (uint8_t)now.priority;
}
