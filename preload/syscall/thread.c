/* SPDX-License-Identifier: MIT */
/*
 * preload/syscall/thread.c - system calls by number that concern one thread, the caller or
 * another: its id, signals to it, its timers, clock and scheduling; and futexes.
 */
#include "preload/init.h"
#include "preload/signal/kill.h"
#include "preload/signal/timer.h"
#include "preload/syscall/families.h"
#include "preload/thread/kernel_state.h"
#include "preload/thread/schedule.h"
#include "runtime/base/uapi.h"
#include "runtime/sync/futex.h"
#include "runtime/sync/futex2.h"

enum { IOPRIO_WHO_THREAD = 1 };		/* the kernel calls it IOPRIO_WHO_PROCESS */

static long io_priority(long number, const long *a)
{
	long changed[6];
	pid_t tid;

	memcpy(changed, a, sizeof(changed));
	if (number == SYS_ioprio_get)
		tid = fz_schedule_tid((pid_t)a[1]);
	else if (!fz_schedule_change((pid_t)a[1], &tid))
		return 0;
	changed[1] = tid;
	return fz_syscall_real(number, changed);
}

bool fz_syscall_thread(struct fz_fiber *self, long number, const long *a, long *ret)
{
	long others[6];

	switch (number) {
	case SYS_futex:
		*ret = fz_leave(fz_futex(self, (uint32_t *)a[0], (int)a[1], (uint32_t)a[2], a[3],
					 (uint32_t *)a[4], (uint32_t)a[5]));
		return true;
	case FZ_UAPI_NR_FUTEX_WAKE:
		*ret = fz_leave(fz_futex2_wake((uint32_t *)a[0], (unsigned long)a[1], (int)a[2], (unsigned)a[3]));
		return true;
	case FZ_UAPI_NR_FUTEX_REQUEUE:
		*ret = fz_leave(fz_futex2_requeue((const struct fz_uapi_futex_waitv *)a[0], (unsigned)a[1], (int)a[2],
						  (int)a[3]));
		return true;
	case SYS_gettid:
		*ret = gettid();
		return true;
	case SYS_kill:
		*ret = kill((pid_t)a[0], (int)a[1]);
		return true;
	case SYS_tgkill:
		return fz_kill_by_tid((int)a[0], (int)a[1], (int)a[2], NULL, ret);
	case SYS_tkill:
		return fz_kill_by_tid((int)fz_sys_getpid(), (int)a[0], (int)a[1], NULL, ret);
	case SYS_rt_sigqueueinfo:
		return fz_kill_with_info(self, (pid_t)a[0], (int)a[1], (void *)a[2], ret);
	case SYS_rt_tgsigqueueinfo:
		return fz_kill_thread_with_info((pid_t)a[0], (pid_t)a[1], (int)a[2], (void *)a[3],
						ret);
	case SYS_pidfd_send_signal:
		*ret = pidfd_send_signal((int)a[0], (int)a[1], (siginfo_t *)a[2], (unsigned)a[3]);
		return true;
	case SYS_timer_create:
	case SYS_timer_settime:
	case SYS_timer_delete:
	case SYS_timer_getoverrun:
	case SYS_setitimer:
#ifdef SYS_alarm
	case SYS_alarm:
#endif
		return fz_timer_by_number(number, a, ret);
	case SYS_unshare:
		*ret = unshare((int)a[0]);
		return true;
	case SYS_sched_setaffinity:
		*ret = sched_setaffinity((pid_t)a[0], (size_t)a[1], (const cpu_set_t *)a[2]);
		return true;
	case SYS_sched_setscheduler:
		*ret = sched_setscheduler((pid_t)a[0], (int)a[1], (const struct sched_param *)a[2]);
		return true;
	case SYS_sched_setparam:
		*ret = sched_setparam((pid_t)a[0], (const struct sched_param *)a[1]);
		return true;
	case SYS_sched_setattr:
		*ret = sched_setattr((pid_t)a[0], (struct sched_attr *)a[1], (unsigned)a[2]);
		return true;
	case SYS_sched_getattr:
		*ret = sched_getattr((pid_t)a[0], (struct sched_attr *)a[1], (unsigned)a[2],
				     (unsigned)a[3]);
		return true;
	case SYS_setpriority:
		*ret = setpriority((__priority_which_t)a[0], (id_t)a[1], (int)a[2]);
		return true;
	case SYS_sched_getscheduler:
		*ret = sched_getscheduler((pid_t)a[0]);
		return true;
	case SYS_sched_getparam:
		*ret = sched_getparam((pid_t)a[0], (struct sched_param *)a[1]);
		return true;
	/* libc's functions return other values than these system calls, so only the tid is translated. */
	case SYS_sched_getaffinity:
	case SYS_sched_rr_get_interval:
		memcpy(others, a, sizeof(others));
		others[0] = fz_schedule_tid((pid_t)a[0]);
		*ret = fz_syscall_real(number, others);
		return true;
	case SYS_getpriority:
		memcpy(others, a, sizeof(others));
		if (a[0] == PRIO_PROCESS)
			others[1] = fz_schedule_tid((pid_t)a[1]);
		*ret = fz_syscall_real(number, others);
		return true;
	/* perf_event_open counts what one thread does; for another thread the kernel gets the call unchanged. */
	case SYS_perf_event_open:
		if (a[1] != 0 && (pid_t)a[1] != gettid())
			return false;
		if (!fz_runtime_runs())
			fz_wire_main_at_start();
		fz_wire_for_state();
		memcpy(others, a, sizeof(others));
		others[1] = 0;
		*ret = fz_syscall_real(number, others);
		return true;
	case SYS_ioprio_get:
	case SYS_ioprio_set:
		if (a[0] != IOPRIO_WHO_THREAD)
			return false;
		*ret = io_priority(number, a);
		return true;
	case SYS_clock_gettime:
		*ret = clock_gettime((clockid_t)a[0], (struct timespec *)a[1]);
		return true;
	case SYS_getrusage:
		*ret = getrusage((__rusage_who_t)a[0], (struct rusage *)a[1]);
		return true;
	case SYS_rseq:
		/*
		 * Refused in fibers, and in the dormant main thread, which will be one: the kernel
		 * registers memory for a kernel thread, and that would not follow a fiber.
		 */
		if (!self && (fz_stays_native() || fz_runtime_runs()))
			return false;
		*ret = fz_leave(-ENOSYS);
		return true;
	default:
		return false;
	}
}
