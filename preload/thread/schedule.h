/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_THREAD_SCHEDULE_H
#define FZ_PRELOAD_THREAD_SCHEDULE_H

/*
 * preload/thread/schedule.h - affinity, policy and priority of a thread, by handle and by tid.
 *
 * Fibers share the CPUs and the policy of the process. A fiber that asks for others for itself is
 * wired and gets them. A request for another fiber is checked and has no effect: mostly it is a
 * hint for speed. A wired fiber is a kernel thread, but its tid differs from what gettid()
 * returns.
 */

#include <stdbool.h>
#include <sys/types.h>

/* The tid to pass to the kernel for tid, which may be a fiber's. Any thread. */
pid_t fz_schedule_tid(pid_t tid);

/*
 * The caller is about to change the kernel's state of tid; *ret_tid is the tid to pass to the
 * kernel. Returns false if tid is another fiber, for which nothing must be done.
 */
bool fz_schedule_change(pid_t tid, pid_t *ret_tid);

#endif
