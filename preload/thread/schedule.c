/* SPDX-License-Identifier: MIT */
#include "preload/thread/schedule.h"

#include <sys/syscall.h>

#include "preload/gate.h"
#include "preload/init.h"
#include "preload/thread/kernel_state.h"
#include "runtime/sched/sched.h"
#include "runtime/signal/signal.h"

struct fz_target fz_target_of(struct fz_fiber *fiber)
{
	struct fz_fiber *self = fz_self();
	/* acquire: pairs with take_policy(), in which the fiber is wired before it clears its policy. */
	uint32_t policy = atomic_load_explicit(&fiber->thread.policy, memory_order_acquire);

	if (fiber == self) {
		/* A policy that another thread has set for the caller takes effect first. */
		if (policy)
			fz_signal_run_pending(self);
		fiber = self->kind == FZ_KIND_FIBER ? self : NULL;
		return (struct fz_target){ .fiber = fiber, .self = true };
	}
	if (fiber->kind == FZ_KIND_WIRED && !policy)
		return (struct fz_target){ .tid = fz_fiber_kernel_tid(fiber) };
	/* All fibers that are not wired have the CPUs and the policy that the carriers and the monitor have. */
	return (struct fz_target){ .fiber = fiber, .policy = policy,
				   .tid = self->kind == FZ_KIND_FIBER ? 0 : fz_sched.monitor_tid };
}

struct fz_target fz_target_by_tid(pid_t tid)
{
	struct fz_fiber *self = fz_self(), *fiber;

	if (tid < 0 || !fz_runtime_runs() ||
	    atomic_load_explicit(&self->in_runtime, memory_order_relaxed))
		return (struct fz_target){ .tid = tid };
	if (tid == 0)
		return fz_target_of(self);
	fiber = fz_fiber_by_tid(tid);
	/* A native thread is not in the list of fibers. */
	return fiber ? fz_target_of(fiber) :
		       (struct fz_target){ .tid = tid, .self = tid == gettid() };
}

bool fz_target_is_other_fiber(struct fz_target t)
{
	if (t.self)
		fz_wire_for_state_of("a scheduling policy, affinity or priority");
	return t.fiber && !t.self;
}

void fz_target_changes(const struct fz_fiber *thread)
{
	if (thread == fz_self())
		fz_wire_for_state_of("a scheduling policy, affinity or priority");
}

pid_t fz_schedule_tid(pid_t tid)
{
	return fz_target_by_tid(tid).tid;
}

bool fz_schedule_change(pid_t tid, pid_t *ret_tid)
{
	struct fz_target t = fz_target_by_tid(tid);

	*ret_tid = t.tid;
	return !fz_target_is_other_fiber(t);
}

/* ---- affinity ----------------------------------------------------------- */

/*
 * May the caller use more CPUs than now? Only the kernel knows: try it on the calling kernel thread,
 * where no handler and no other fiber may run meanwhile.
 */
static bool gives_more(size_t size, const cpu_set_t *cpus, const cpu_set_t *now)
{
	const uint64_t all = FZ_SIGNALS_ALL | FZ_SIGNALS_OF_LIBC;
	cpu_set_t then = { 0 };
	uint64_t mask;
	bool more;

	fz_sys_sigmask(SIG_SETMASK, &all, &mask);
	fz_syscall3(SYS_sched_setaffinity, 0, (long)size, (long)cpus);
	fz_syscall3(SYS_sched_getaffinity, 0, sizeof(then), (long)&then);
	more = memcmp(&then, now, sizeof(then)) != 0;
	if (more)
		fz_syscall3(SYS_sched_setaffinity, 0, sizeof(*now), (long)now);
	fz_sys_sigmask(SIG_SETMASK, &mask, NULL);
	return more;
}

/* Would the call change the set of CPUs on which the caller may run? */
static bool changes_affinity(size_t size, const cpu_set_t *cpus)
{
	cpu_set_t now = { 0 };
	size_t n = size < sizeof(now) ? size : sizeof(now);
	bool more = false;

	if (fz_real.sched_getaffinity(0, sizeof(now), &now) != 0)
		return true;
	for (size_t i = 0; i < sizeof(now); i++) {
		unsigned char wanted = i < n ? ((const unsigned char *)cpus)[i] : 0;

		if (((const unsigned char *)&now)[i] & ~wanted)
			return true;
		more |= wanted & ~((const unsigned char *)&now)[i];
	}
	return more && gives_more(size, cpus, &now);
}

static int set_affinity(struct fz_target t, size_t size, const cpu_set_t *cpus)
{
	bool any = false, readable = cpus && fz_sys_readable(cpus);

	if (readable && (t.fiber || t.self)) {
		for (size_t i = 0; i < size && !any; i++)
			any = ((const unsigned char *)cpus)[i];
		/* Mostly the set has all CPUs, and changes nothing: the fiber need not be wired. */
		if (t.fiber && t.self && any && !changes_affinity(size, cpus))
			return 0;
		if (fz_target_is_other_fiber(t))
			return (int)fz_leave(any ? 0 : -EINVAL);
	}
	return fz_real.sched_setaffinity(t.tid, size, cpus);
}

FZ_EXPORT int sched_setaffinity(pid_t tid, size_t size, const cpu_set_t *cpus)
{
	fz_enter(FZ_SYM_sched_setaffinity);
	return set_affinity(fz_target_by_tid(tid), size, cpus);
}

FZ_EXPORT int sched_getaffinity(pid_t tid, size_t size, cpu_set_t *cpus)
{
	fz_enter(FZ_SYM_sched_getaffinity);
	return fz_real.sched_getaffinity(fz_target_by_tid(tid).tid, size, cpus);
}

FZ_EXPORT int pthread_setaffinity_np(pthread_t thread, size_t size, const cpu_set_t *cpus)
{
	struct fz_fiber *fiber = fz_fiber_of_handle(thread);

	fz_enter(FZ_SYM_pthread_setaffinity_np);
	if (!fz_is_fiber(fiber)) {
		fz_target_changes(fiber);
		return fz_real.pthread_setaffinity_np(thread, size, cpus);
	}
	return fz_leave_pthread_by_errno(set_affinity(fz_target_of(fiber), size, cpus));
}

FZ_EXPORT int pthread_getaffinity_np(pthread_t thread, size_t size, cpu_set_t *cpus)
{
	struct fz_fiber *fiber = fz_fiber_of_handle(thread);

	fz_enter(FZ_SYM_pthread_getaffinity_np);
	if (!fz_is_fiber(fiber))
		return fz_real.pthread_getaffinity_np(thread, size, cpus);
	return fz_leave_pthread_by_errno(sched_getaffinity(fz_target_of(fiber).tid, size, cpus));
}

/* ---- nice value --------------------------------------------------------- */

FZ_EXPORT int setpriority(__priority_which_t which, id_t who, int nice)
{
	struct fz_target t = { .tid = (pid_t)who };

	fz_enter(FZ_SYM_setpriority);
	if ((int)which == PRIO_PROCESS)
		t = fz_target_by_tid((pid_t)who);
	if (fz_target_is_other_fiber(t))
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
	struct fz_target t = { .tid = (pid_t)who };

	fz_enter(FZ_SYM_getpriority);
	if ((int)which == PRIO_PROCESS)
		t = fz_target_by_tid((pid_t)who);
	return fz_real.getpriority(which, (id_t)t.tid);
}
