/* SPDX-License-Identifier: MIT */
#include "preload/thread/schedule.h"

#include <sys/syscall.h>

#include "preload/gate.h"
#include "preload/init.h"
#include "preload/thread/kernel_state.h"
#include "runtime/sched/sched.h"

/* The thread that a call refers to. */
struct target {
	struct fz_fiber *fiber;		/* a fiber that is not wired; NULL: the kernel decides */
	pid_t tid;			/* the tid for the kernel; 0: the caller */
	bool self;			/* the caller, of any kind */
};

static struct target target_of(struct fz_fiber *fiber)
{
	struct fz_fiber *self = fz_self();

	if (fiber == self)
		return (struct target){ fiber->kind == FZ_KIND_FIBER ? fiber : NULL, 0, true };
	if (fiber->kind == FZ_KIND_WIRED)
		return (struct target){ NULL, fz_fiber_kernel_tid(fiber), false };
	return (struct target){ fiber, 0, false };
}

static struct target target_by_tid(pid_t tid)
{
	struct fz_fiber *self = fz_self(), *fiber;

	if (tid < 0 || !fz_runtime_runs() ||
	    atomic_load_explicit(&self->in_runtime, memory_order_relaxed))
		return (struct target){ NULL, tid, false };
	if (tid == 0)
		return target_of(self);
	fiber = fz_fiber_by_tid(tid);
	/* A native thread is not in the list of fibers. */
	return fiber ? target_of(fiber) : (struct target){ NULL, tid, tid == gettid() };
}

/*
 * Returns whether t is another fiber. The caller itself is wired, so that it gets what it asks
 * for.
 */
static bool is_other_fiber(struct target t)
{
	if (t.self)
		fz_wire_for_state_of("a scheduling policy, affinity or priority");
	return t.fiber && !t.self;
}

/* A call by handle changes a thread that is no fiber: if that is the caller, note the change. */
static void about_to_change(const struct fz_fiber *thread)
{
	if (thread == fz_self())
		fz_wire_for_state_of("a scheduling policy, affinity or priority");
}

/* ---- affinity ----------------------------------------------------------- */

/* Does the set leave out a CPU that the process may use? */
static bool is_less(size_t size, const cpu_set_t *cpus)
{
	cpu_set_t allowed;
	size_t n = size < sizeof(allowed) ? size : sizeof(allowed);

	if (fz_real.sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
		return true;
	for (size_t i = 0; i < sizeof(allowed); i++) {
		unsigned char wanted = i < n ? ((const unsigned char *)cpus)[i] : 0;

		if (((const unsigned char *)&allowed)[i] & ~wanted)
			return true;
	}
	return false;
}

static int set_affinity(struct target t, size_t size, const cpu_set_t *cpus)
{
	bool any = false, readable = cpus && fz_sys_readable(cpus);

	if (readable && (t.fiber || t.self)) {
		for (size_t i = 0; i < size && !any; i++)
			any = ((const unsigned char *)cpus)[i];
		/* A set of all CPUs changes nothing. */
		if (t.fiber && any && !is_less(size, cpus))
			return 0;
		if (is_other_fiber(t))
			return (int)fz_leave(any ? 0 : -EINVAL);
	}
	return fz_real.sched_setaffinity(t.tid, size, cpus);
}

FZ_EXPORT int sched_setaffinity(pid_t tid, size_t size, const cpu_set_t *cpus)
{
	fz_enter(FZ_SYM_sched_setaffinity);
	return set_affinity(target_by_tid(tid), size, cpus);
}

FZ_EXPORT int sched_getaffinity(pid_t tid, size_t size, cpu_set_t *cpus)
{
	fz_enter(FZ_SYM_sched_getaffinity);
	return fz_real.sched_getaffinity(target_by_tid(tid).tid, size, cpus);
}

FZ_EXPORT int pthread_setaffinity_np(pthread_t thread, size_t size, const cpu_set_t *cpus)
{
	struct fz_fiber *fiber = fz_fiber_of_handle(thread);

	fz_enter(FZ_SYM_pthread_setaffinity_np);
	if (!fz_is_fiber(fiber)) {
		about_to_change(fiber);
		return fz_real.pthread_setaffinity_np(thread, size, cpus);
	}
	return set_affinity(target_of(fiber), size, cpus) ? errno : 0;
}

FZ_EXPORT int pthread_getaffinity_np(pthread_t thread, size_t size, cpu_set_t *cpus)
{
	struct fz_fiber *fiber = fz_fiber_of_handle(thread);

	fz_enter(FZ_SYM_pthread_getaffinity_np);
	if (!fz_is_fiber(fiber))
		return fz_real.pthread_getaffinity_np(thread, size, cpus);
	return sched_getaffinity(target_of(fiber).tid, size, cpus) ? errno : 0;
}

/* ---- policy ------------------------------------------------------------- */

/* Check a request for another fiber; EPERM where the policy needs a kernel thread of its own. */
static int check_policy(int policy, const struct sched_param *param)
{
	if (policy == SCHED_FIFO || policy == SCHED_RR)
		return -EPERM;
	if (policy != SCHED_OTHER && policy != SCHED_BATCH && policy != SCHED_IDLE)
		return -EINVAL;
	return param->sched_priority == 0 ? 0 : -EINVAL;
}

static bool readable(const struct sched_param *param)
{
	return param && fz_sys_readable((const void *)((uintptr_t)param & ~(uintptr_t)7));
}

static int set_policy(struct target t, int policy, const struct sched_param *param)
{
	if ((t.fiber || t.self) && readable(param)) {
		/* The fiber has this policy already. */
		if (t.fiber && policy == SCHED_OTHER && param->sched_priority == 0)
			return 0;
		if (is_other_fiber(t))
			return (int)fz_leave(check_policy(policy, param));
	}
	return fz_real.sched_setscheduler(t.tid, policy, param);
}

FZ_EXPORT int sched_setscheduler(pid_t tid, int policy, const struct sched_param *param)
{
	fz_enter(FZ_SYM_sched_setscheduler);
	return set_policy(target_by_tid(tid), policy, param);
}
FZ_EXPORT_ALIAS(__sched_setscheduler, sched_setscheduler);

pid_t fz_schedule_tid(pid_t tid)
{
	return target_by_tid(tid).tid;
}

bool fz_schedule_change(pid_t tid, pid_t *ret_tid)
{
	struct target t = target_by_tid(tid);

	*ret_tid = t.tid;
	return !is_other_fiber(t);
}

FZ_EXPORT int sched_getscheduler(pid_t tid)
{
	fz_enter(FZ_SYM_sched_getscheduler);
	return fz_real.sched_getscheduler(target_by_tid(tid).tid);
}
FZ_EXPORT_ALIAS(__sched_getscheduler, sched_getscheduler);

/* The policy of a fiber is SCHED_OTHER, which has one priority. */
FZ_EXPORT int sched_setparam(pid_t tid, const struct sched_param *param)
{
	struct target t = target_by_tid(tid);

	fz_enter(FZ_SYM_sched_setparam);
	if (t.fiber && readable(param))
		return (int)fz_leave(param->sched_priority == 0 ? 0 : -EINVAL);
	return fz_real.sched_setparam(t.tid, param);
}

FZ_EXPORT int sched_getparam(pid_t tid, struct sched_param *param)
{
	fz_enter(FZ_SYM_sched_getparam);
	return fz_real.sched_getparam(target_by_tid(tid).tid, param);
}
FZ_EXPORT_ALIAS(__sched_getparam, sched_getparam);

FZ_EXPORT int sched_rr_get_interval(pid_t tid, struct timespec *ret)
{
	fz_enter(FZ_SYM_sched_rr_get_interval);
	return fz_real.sched_rr_get_interval(target_by_tid(tid).tid, ret);
}

FZ_EXPORT int pthread_setschedparam(pthread_t thread, int policy, const struct sched_param *param)
{
	struct fz_fiber *fiber = fz_fiber_of_handle(thread);

	fz_enter(FZ_SYM_pthread_setschedparam);
	if (!fz_is_fiber(fiber)) {
		about_to_change(fiber);
		return fz_real.pthread_setschedparam(thread, policy, param);
	}
	return set_policy(target_of(fiber), policy, param) ? errno : 0;
}

FZ_EXPORT int pthread_getschedparam(pthread_t thread, int *policy, struct sched_param *param)
{
	struct fz_fiber *fiber = fz_fiber_of_handle(thread);
	struct target t;

	fz_enter(FZ_SYM_pthread_getschedparam);
	if (!fz_is_fiber(fiber))
		return fz_real.pthread_getschedparam(thread, policy, param);
	t = target_of(fiber);
	*policy = fz_real.sched_getscheduler(t.tid);
	return *policy < 0 || fz_real.sched_getparam(t.tid, param) ? errno : 0;
}

FZ_EXPORT int pthread_setschedprio(pthread_t thread, int priority)
{
	struct fz_fiber *fiber = fz_fiber_of_handle(thread);
	struct sched_param param = { .sched_priority = priority };
	struct target t;

	fz_enter(FZ_SYM_pthread_setschedprio);
	if (!fz_is_fiber(fiber)) {
		about_to_change(fiber);
		return fz_real.pthread_setschedprio(thread, priority);
	}
	t = target_of(fiber);
	if (t.fiber)
		return priority == 0 ? 0 : EINVAL;
	return fz_real.sched_setparam(t.tid, &param) ? errno : 0;
}

/* ---- all of it at once -------------------------------------------------- */

/* The first version of what the kernel calls struct sched_attr; libc has it from 2.41 on. */
struct attributes {
	uint32_t size;
	uint32_t policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime;
	uint64_t deadline;
	uint64_t period;
};

_Static_assert(sizeof(struct attributes) == 48, "SCHED_ATTR_SIZE_VER0");

static bool attributes_readable(const struct attributes *attr)
{
	return attr && fz_sys_readable((const void *)((uintptr_t)attr & ~(uintptr_t)7)) &&
		fz_sys_readable((const void *)(((uintptr_t)(attr + 1) - 1) & ~(uintptr_t)7));
}

/*
 * Does the caller have these attributes already? GLib gives each thread of a pool the attributes
 * of the thread that made the pool.
 */
static bool has_already(const struct attributes *attr)
{
	struct attributes now;

	return fz_real.syscall(SYS_sched_getattr, 0, &now, sizeof(now), 0) == 0 &&
		(now.policy == SCHED_OTHER || now.policy == SCHED_BATCH) &&
		attr->policy == now.policy && attr->nice == now.nice &&
		attr->priority == 0 && attr->flags == 0 && now.flags == 0 &&
		(attr->runtime == 0 || attr->runtime == now.runtime);
}

static int check_attributes(const struct attributes *attr)
{
	const struct sched_param param = { .sched_priority = (int)attr->priority };

	if (attr->size && attr->size < sizeof(*attr))
		return -E2BIG;
	return attr->policy == SCHED_DEADLINE ? -EPERM : check_policy((int)attr->policy, &param);
}

FZ_EXPORT int sched_setattr(pid_t tid, struct sched_attr *wanted, unsigned flags)
{
	const struct attributes *attr = (const void *)wanted;
	struct target t = target_by_tid(tid);

	fz_enter(FZ_SYM_sched_setattr);
	if ((t.fiber || t.self) && !flags && attributes_readable(attr) &&
	    ((t.fiber && has_already(attr)) || is_other_fiber(t)))
		return (int)fz_leave(check_attributes(attr));
	return (int)fz_real.syscall(SYS_sched_setattr, t.tid, wanted, flags);
}

FZ_EXPORT int sched_getattr(pid_t tid, struct sched_attr *attr, unsigned size, unsigned flags)
{
	fz_enter(FZ_SYM_sched_getattr);
	return (int)fz_real.syscall(SYS_sched_getattr, target_by_tid(tid).tid, attr, size, flags);
}

/* ---- nice value --------------------------------------------------------- */

FZ_EXPORT int setpriority(__priority_which_t which, id_t who, int nice)
{
	struct target t = { NULL, (pid_t)who, false };

	fz_enter(FZ_SYM_setpriority);
	if ((int)which == PRIO_PROCESS)
		t = target_by_tid((pid_t)who);
	if (is_other_fiber(t))
		return 0;
	return fz_real.setpriority(which, (id_t)t.tid, nice);
}

FZ_EXPORT int nice(int increment)
{
	fz_enter(FZ_SYM_nice);
	if (increment)
		fz_wire_for_state();
	return fz_real.nice(increment);
}

FZ_EXPORT int getpriority(__priority_which_t which, id_t who)
{
	struct target t = { NULL, (pid_t)who, false };

	fz_enter(FZ_SYM_getpriority);
	if ((int)which == PRIO_PROCESS)
		t = target_by_tid((pid_t)who);
	return fz_real.getpriority(which, (id_t)t.tid);
}
