/* SPDX-License-Identifier: MIT */
/*
 * preload/thread/policy.c - the scheduling policy and priority of a thread, by handle and by tid.
 */
#include "preload/gate.h"
#include "preload/thread/schedule.h"
#include "runtime/base/uapi.h"
#include "runtime/sched/sched.h"
#include "runtime/signal/signal.h"
#include "runtime/sync/priority.h"

#include <sys/syscall.h>

/* The policy of the library's kernel threads, as FZ_POLICY(): each fiber that is not wired has it. */
static uint32_t policy_of_all;

static bool is_realtime(int policy)
{
	policy &= ~SCHED_RESET_ON_FORK;
	return policy == SCHED_FIFO || policy == SCHED_RR;
}

uint32_t fz_schedule_policy_of(pid_t tid)
{
	struct sched_param param = { .sched_priority = 0 };
	int policy = fz_real.sched_getscheduler(tid);

	fz_real.sched_getparam(tid, &param);
	return policy < 0 ? FZ_POLICY(SCHED_OTHER, 0) : FZ_POLICY(policy, param.sched_priority);
}

bool fz_schedule_start(void)
{
	policy_of_all = fz_schedule_policy_of(fz_sched.monitor_tid);
	return fz_schedule_policy_of(0) != policy_of_all;
}

/* The policy that a fiber which is not wired has, or gets when it is wired next. */
static uint32_t policy_of(struct fz_target t)
{
	return t.policy ? t.policy : policy_of_all;
}

static int check_policy(int policy, int priority)
{
	if (is_realtime(policy))
		return priority >= 1 && priority <= 99 ? 0 : -EINVAL;
	policy &= ~SCHED_RESET_ON_FORK;
	if (policy != SCHED_OTHER && policy != SCHED_BATCH && policy != SCHED_IDLE)
		return -EINVAL;
	return priority == 0 ? 0 : -EINVAL;
}

/*
 * May a fiber get this policy? Only the kernel knows: try it on the calling kernel thread, where
 * no handler and no other fiber may run meanwhile. Returns 0 or -errno.
 */
static int try_policy(int policy, int priority)
{
	const uint64_t all = FZ_SIGNALS_ALL | FZ_SIGNALS_OF_LIBC;
	uint64_t mask;
	uint32_t now;
	int err = 0;

	fz_sys_sigmask(SIG_SETMASK, &all, &mask);
	now = fz_schedule_policy_of(0);
	if (!is_realtime(FZ_POLICY_OF(now)) || FZ_PRIORITY_OF(now) < priority) {
		const int wanted = priority, before = FZ_PRIORITY_OF(now);

		err = (int)fz_syscall3(__NR_sched_setscheduler, 0, policy & ~SCHED_RESET_ON_FORK,
				       (long)&wanted);
		if (!err)
			fz_syscall3(__NR_sched_setscheduler, 0, FZ_POLICY_OF(now), (long)&before);
	}
	fz_sys_sigmask(SIG_SETMASK, &mask, NULL);
	return err;
}

/*
 * Set the policy of a fiber that is not the caller. If the new policy or the fiber's present one is
 * real-time, the fiber is wired when it next runs; otherwise the new policy is a hint and has no
 * effect. Returns 0 or -errno; or 1 if the fiber has changed meanwhile: it is wired, or has another
 * policy.
 */
static int set_policy_of_other(struct fz_target t, int policy, int priority)
{
	int err = 0;

	if (is_realtime(policy))
		err = try_policy(policy, priority);
	else if (!is_realtime(FZ_POLICY_OF(policy_of(t))))
		return 0;
	return err ? err : !fz_signal_set_policy(t.fiber, t.policy, FZ_POLICY(policy, priority));
}

static bool readable(const struct sched_param *param)
{
	return param && fz_sys_readable((const void *)((uintptr_t)param & ~(uintptr_t)7));
}

static int set_policy(struct fz_target t, int policy, const struct sched_param *param)
{
	if (is_realtime(policy))
		fz_priority_heed();
	while ((t.fiber || t.self) && readable(param)) {
		int priority = param->sched_priority, err = check_policy(policy, priority);

		if (t.fiber && err)
			return (int)fz_leave(err);
		if (t.fiber && FZ_POLICY(policy, priority) == policy_of(t))
			return 0;
		if (!fz_target_is_other_fiber(t))
			break;
		err = set_policy_of_other(t, policy, priority);
		if (err <= 0)
			return (int)fz_leave(err);
		t = fz_target_of(t.fiber);
	}
	return fz_real.sched_setscheduler(t.tid, policy, param);
}

FZ_EXPORT int sched_setscheduler(pid_t tid, int policy, const struct sched_param *param)
{
	fz_enter(FZ_SYM_sched_setscheduler);
	return set_policy(fz_target_by_tid(tid), policy, param);
}
FZ_EXPORT_ALIAS(__sched_setscheduler, sched_setscheduler);

FZ_EXPORT int sched_getscheduler(pid_t tid)
{
	struct fz_target t;

	fz_enter(FZ_SYM_sched_getscheduler);
	t = fz_target_by_tid(tid);
	return t.policy ? FZ_POLICY_OF(t.policy) : fz_real.sched_getscheduler(t.tid);
}
FZ_EXPORT_ALIAS(__sched_getscheduler, sched_getscheduler);

/* Set the priority; the thread keeps its policy. */
static int set_priority(struct fz_target t, const struct sched_param *param)
{
	if (t.fiber && readable(param))
		return set_policy(t, FZ_POLICY_OF(policy_of(t)), param);
	if (readable(param) && param->sched_priority)
		fz_priority_heed();
	return fz_real.sched_setparam(t.tid, param);
}

FZ_EXPORT int sched_setparam(pid_t tid, const struct sched_param *param)
{
	fz_enter(FZ_SYM_sched_setparam);
	return set_priority(fz_target_by_tid(tid), param);
}

FZ_EXPORT int sched_getparam(pid_t tid, struct sched_param *param)
{
	struct fz_target t;
	int ret;

	fz_enter(FZ_SYM_sched_getparam);
	t = fz_target_by_tid(tid);
	/* Ask the kernel even if the library knows the answer: the kernel tells whether param is writable. */
	ret = fz_real.sched_getparam(t.tid, param);
	if (ret == 0 && t.policy)
		param->sched_priority = FZ_PRIORITY_OF(t.policy);
	return ret;
}
FZ_EXPORT_ALIAS(__sched_getparam, sched_getparam);

FZ_EXPORT int sched_rr_get_interval(pid_t tid, struct timespec *ret)
{
	fz_enter(FZ_SYM_sched_rr_get_interval);
	return fz_real.sched_rr_get_interval(fz_target_by_tid(tid).tid, ret);
}

FZ_EXPORT int pthread_setschedparam(pthread_t thread, int policy, const struct sched_param *param)
{
	struct fz_fiber *fiber = fz_fiber_of_handle(thread);

	fz_enter(FZ_SYM_pthread_setschedparam);
	if (!fz_is_fiber(fiber)) {
		fz_target_changes(fiber);
		if (is_realtime(policy))
			fz_priority_heed();
		return fz_real.pthread_setschedparam(thread, policy, param);
	}
	return fz_leave_pthread_by_errno(set_policy(fz_target_of(fiber), policy, param));
}

FZ_EXPORT int pthread_getschedparam(pthread_t thread, int *policy, struct sched_param *param)
{
	struct fz_fiber *fiber = fz_fiber_of_handle(thread);
	struct fz_target t;

	fz_enter(FZ_SYM_pthread_getschedparam);
	if (!fz_is_fiber(fiber))
		return fz_real.pthread_getschedparam(thread, policy, param);
	t = fz_target_of(fiber);
	if (t.policy) {
		*policy = FZ_POLICY_OF(t.policy);
		param->sched_priority = FZ_PRIORITY_OF(t.policy);
		return 0;
	}
	*policy = fz_real.sched_getscheduler(t.tid);
	return fz_leave_pthread_by_errno(*policy < 0 || fz_real.sched_getparam(t.tid, param));
}

FZ_EXPORT int pthread_setschedprio(pthread_t thread, int priority)
{
	struct fz_fiber *fiber = fz_fiber_of_handle(thread);
	struct sched_param param = { .sched_priority = priority };

	fz_enter(FZ_SYM_pthread_setschedprio);
	if (!fz_is_fiber(fiber)) {
		fz_target_changes(fiber);
		if (priority)
			fz_priority_heed();
		return fz_real.pthread_setschedprio(thread, priority);
	}
	return fz_leave_pthread_by_errno(set_priority(fz_target_of(fiber), &param));
}

/* ---- all of it at once -------------------------------------------------- */

enum { RESET_ON_FORK = 1 };		/* SCHED_FLAG_RESET_ON_FORK */

static bool attributes_readable(const struct fz_uapi_sched_attr *attr)
{
	return attr && fz_sys_readable((const void *)((uintptr_t)attr & ~(uintptr_t)7)) &&
		fz_sys_readable((const void *)(((uintptr_t)(attr + 1) - 1) & ~(uintptr_t)7));
}

/*
 * Does the fiber have these attributes already? GLib gives each thread of a pool the attributes
 * of the thread that made the pool.
 */
static bool has_already(struct fz_target t, const struct fz_uapi_sched_attr *attr)
{
	struct fz_uapi_sched_attr now;

	return !t.policy && fz_real.syscall(SYS_sched_getattr, t.tid, &now, sizeof(now), 0) == 0 &&
		(now.policy == SCHED_OTHER || now.policy == SCHED_BATCH) &&
		attr->policy == now.policy && attr->nice == now.nice &&
		attr->priority == 0 && attr->flags == 0 && now.flags == 0 &&
		(attr->runtime == 0 || attr->runtime == now.runtime);
}

/*
 * Set the attributes of a fiber that is not the caller; returns what set_policy_of_other() returns.
 * SCHED_DEADLINE is refused: it has more parameters than the record of a fiber holds.
 */
static int set_attributes_of_other(struct fz_target t, const struct fz_uapi_sched_attr *attr)
{
	const int policy = (int)attr->policy, priority = (int)attr->priority;
	int err;

	if (attr->size && attr->size < sizeof(*attr))
		return -E2BIG;
	if (attr->policy == SCHED_DEADLINE)
		return -EPERM;
	err = check_policy(policy, priority);
	return err ? err : set_policy_of_other(
		t, policy | (attr->flags & RESET_ON_FORK ? SCHED_RESET_ON_FORK : 0), priority);
}

FZ_EXPORT int sched_setattr(pid_t tid, struct sched_attr *wanted, unsigned flags)
{
	const struct fz_uapi_sched_attr *attr = (const void *)wanted;
	struct fz_target t;

	fz_enter(FZ_SYM_sched_setattr);
	t = fz_target_by_tid(tid);
	while ((t.fiber || t.self) && !flags && attributes_readable(attr)) {
		int err;

		if (t.fiber && has_already(t, attr))
			return 0;
		if (!fz_target_is_other_fiber(t))
			break;
		err = set_attributes_of_other(t, attr);
		if (err <= 0)
			return (int)fz_leave(err);
		t = fz_target_of(t.fiber);
	}
	if (!flags && attributes_readable(attr) && attr->policy != SCHED_OTHER)
		fz_priority_heed();
	return (int)fz_real.syscall(SYS_sched_setattr, t.tid, wanted, flags);
}

FZ_EXPORT int sched_getattr(pid_t tid, struct sched_attr *attr, unsigned size, unsigned flags)
{
	struct fz_target t;
	struct fz_uapi_sched_attr *told = (void *)attr;
	int ret;

	fz_enter(FZ_SYM_sched_getattr);
	t = fz_target_by_tid(tid);
	ret = (int)fz_real.syscall(SYS_sched_getattr, t.tid, attr, size, flags);
	if (ret == 0 && t.policy) {
		told->policy = (uint32_t)(FZ_POLICY_OF(t.policy) & ~SCHED_RESET_ON_FORK);
		told->flags = FZ_POLICY_OF(t.policy) & SCHED_RESET_ON_FORK ? RESET_ON_FORK : 0;
		told->priority = (uint32_t)FZ_PRIORITY_OF(t.policy);
	}
	return ret;
}
