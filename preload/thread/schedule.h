/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_THREAD_SCHEDULE_H
#define FZ_PRELOAD_THREAD_SCHEDULE_H

/*
 * preload/thread/schedule.h - affinity, policy and priority of a thread, by handle and by tid.
 *
 * Fibers share the CPUs and the policy of the process.  One that asks for others for
 * itself is wired and gets them.  For another fiber a request is checked, and has no
 * effect: mostly it is a hint for speed.  Wired fibers are kernel threads whose
 * tid only differs from what gettid() tells.
 */

#include <stdbool.h>
#include <sys/types.h>

/* What the kernel is to be told instead of tid, if that is a fiber's.  Any thread. */
pid_t fz_schedule_tid(pid_t tid);

/*
 * The caller is about to change what the kernel keeps for tid, as *ret_tid.  Returns false
 * if that is another fiber, for which nothing is to be done.
 */
bool fz_schedule_change(pid_t tid, pid_t *ret_tid);

#endif
