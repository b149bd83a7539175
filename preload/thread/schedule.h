/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_THREAD_SCHEDULE_H
#define FZ_PRELOAD_THREAD_SCHEDULE_H

/*
 * preload/thread/schedule.h - affinity, policy and priority of a thread, by handle and by tid.
 *
 * Fibers share the CPUs and the policy of the process. A fiber that asks for other CPUs or another
 * policy for itself is wired and gets them. If another thread asks for a real-time policy for a fiber,
 * the fiber is wired when it next runs. Any other request for another fiber is checked and has no
 * effect: mostly it is a hint for speed. A wired fiber is a kernel thread, but the kernel's tid of it
 * differs from what gettid() returns.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct fz_fiber;

/* The thread that a call refers to. */
struct fz_target {
	struct fz_fiber *fiber;		/* a fiber that is not wired; NULL: the kernel decides */
	uint32_t policy;		/* the fiber's thread.policy: set, and not in force yet */
	pid_t tid;			/* a kernel thread with the thread's CPUs and policy; 0: the caller's */
	bool self;			/* the caller, of any kind */
};

/* Return the target for a fiber, or for a tid, which may be a fiber's. Any thread. */
struct fz_target fz_target_of(struct fz_fiber *fiber);
struct fz_target fz_target_by_tid(pid_t tid);

/*
 * Is t a fiber that is not the caller? If t is the caller, the caller is wired, so that the kernel can
 * give it what it asks for.
 */
bool fz_target_is_other_fiber(struct fz_target t);

/* A call by handle changes a thread that is no fiber: if that is the caller, note the change. */
void fz_target_changes(const struct fz_fiber *thread);

/*
 * Called by the main thread, when it has become a fiber. Returns true if its policy has
 * SCHED_RESET_ON_FORK, so that other kernel threads have not inherited it.
 */
bool fz_schedule_start(void);

/* The policy and priority of a kernel thread, as FZ_POLICY() (runtime/fiber/fiber.h); 0: the caller's. */
uint32_t fz_schedule_policy_of(pid_t tid);

/* The tid to pass to the kernel for tid, which may be a fiber's. Any thread. */
pid_t fz_schedule_tid(pid_t tid);

/*
 * The caller is about to change the kernel's state of tid; *ret_tid is the tid to pass to the
 * kernel. Returns false if tid is another fiber, for which nothing must be done.
 */
bool fz_schedule_change(pid_t tid, pid_t *ret_tid);

#endif
