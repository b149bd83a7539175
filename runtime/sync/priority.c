/* SPDX-License-Identifier: MIT */
#include "runtime/sync/priority.h"

#include <linux/sched.h>

#include "runtime/base/sys.h"
#include "runtime/base/uapi.h"

_Atomic bool fz_priority_is_heeded;

void fz_priority_heed(void)
{
	/* relaxed: see fz_priority_own(). */
	atomic_store_explicit(&fz_priority_is_heeded, true, memory_order_relaxed);
}

/* Ask the kernel for the real-time priority of the calling kernel thread; SCHED_DEADLINE is above all others. */
uint8_t fz_priority_ask(void)
{
	struct fz_uapi_sched_attr now;

	if (fz_syscall4(__NR_sched_getattr, 0, (long)&now, sizeof(now), 0))
		return 0;
	return now.policy == SCHED_DEADLINE ? UINT8_MAX : (uint8_t)now.priority;
}
