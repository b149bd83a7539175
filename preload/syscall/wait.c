/* SPDX-License-Identifier: MIT */
/*
 * preload/syscall/wait.c - system calls by number: sleeping, waiting for children, queues and
 * semaphores; and calls that may wait for long but have no body by name.
 */
#include <linux/aio_abi.h>

#include "preload/real_call.h"
#include "preload/syscall/families.h"
#include "preload/time.h"
#include "runtime/base/uapi.h"
#include "runtime/sync/futex2.h"

/* Numbers that only newer headers define; they are equal on all CPUs. */
#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif

/*
 * After io_getevents or io_pgetevents: an interruption that is not for the program ends it with fewer events than it
 * waits for.  Returns true if the others are to be got, and changes the arguments for that.
 */
static bool lacks_events(const struct fz_blocked *call, long *a, long ret)
{
	if (ret <= 0)
		return false;
	a[1] -= ret;
	a[2] -= ret;
	a[3] += ret * (long)sizeof(struct io_event);
	return a[1] > 0 && fz_block_undisturbed(call);
}

/*
 * Announce the real call, which may wait, and make it. a: a copy of the caller's arguments, which is changed. timeout: the
 * word of `a` that points to a relative timeout, or NULL.
 */
static long wait_really(struct fz_fiber *self, long number, long *a, unsigned flags, long *timeout)
{
	const struct timespec *span = timeout ? (const struct timespec *)*timeout : NULL;
	fz_nsec deadline = FZ_FOREVER;
	struct timespec left;
	struct fz_blocked call;
	const bool gets_events = number == SYS_io_getevents || number == SYS_io_pgetevents;
	long ret, events = 0;

	/* What a bad timeout means only the kernel knows. */
	if (span && (!fz_timespec_readable(span) || span->tv_sec < 0 || !fz_timespec_valid(span)))
		return fz_syscall_real(number, a);
	if (span)
		deadline = fz_deadline_after(fz_timespec_nsec(span));
	call = fz_block(self, flags);
	do {
		if (span)
			*timeout = (long)fz_timeout_left(deadline, &left);
		ret = fz_syscall_real(number, a);
		events += gets_events && ret > 0 ? ret : 0;
	} while (fz_block_again(&call, ret) || (events && lacks_events(&call, a, ret) && fz_now() < deadline));
	fz_block_end(&call, ret);
	return events ? events : ret;
}

static long futex_wait(struct fz_fiber *self, long *a)
{
	if (!fz_futex2_is_plain((unsigned)a[3]))
		return wait_really(self, FZ_UAPI_NR_FUTEX_WAIT, a, FZ_CALL_RESTARTS, NULL);
	return fz_leave(fz_futex2_wait(self, (uint32_t *)a[0], (unsigned long)a[1], (unsigned long)a[2],
				       (unsigned)a[3], (const struct __kernel_timespec *)a[4], (int)a[5]));
}

static bool wait_in_kernel(struct fz_fiber *self, long number, const long *a, long *ret)
{
	long changed[6];

	memcpy(changed, a, sizeof(changed));
	switch (number) {
	case SYS_io_pgetevents:
		/* With a mask of its own it is the kernel's alone. */
		if (a[5])
			return false;
		/* fallthrough */
	case SYS_io_getevents:
		*ret = wait_really(self, number, changed, 0, &changed[4]);
		return true;
	/* Reached only if libc has no epoll_pwait2(). */
	case SYS_epoll_pwait2:
		*ret = wait_really(self, number, changed, 0, &changed[3]);
		return true;
	case SYS_openat2:
		*ret = wait_really(self, number, changed, FZ_CALL_BRIEF | FZ_CALL_RESTARTS, NULL);
		return true;
	case FZ_UAPI_NR_FUTEX_WAIT:
		*ret = futex_wait(self, changed);
		return true;
	case SYS_futex_waitv:
	case SYS_waitid:
		*ret = wait_really(self, number, changed, FZ_CALL_RESTARTS, NULL);
		return true;
	default:
		return false;
	}
}

bool fz_syscall_wait(struct fz_fiber *self, long number, const long *a, long *ret)
{
	switch (number) {
	case SYS_nanosleep:
		*ret = nanosleep((const struct timespec *)a[0], (struct timespec *)a[1]);
		return true;
	case SYS_clock_nanosleep:
		*ret = fz_leave(-clock_nanosleep((clockid_t)a[0], (int)a[1],
						 (const struct timespec *)a[2],
						 (struct timespec *)a[3]));
		return true;
	case SYS_sched_yield: *ret = sched_yield(); return true;
#ifdef SYS_pause
	case SYS_pause: *ret = pause(); return true;
#endif
	case SYS_wait4:
		*ret = wait4((pid_t)a[0], (int *)a[1], (int)a[2], (struct rusage *)a[3]);
		return true;
	case SYS_waitid:
		/* The system call has one more argument (rusage) than libc's function. */
		if (a[4])
			break;
		*ret = waitid((idtype_t)a[0], (id_t)a[1], (siginfo_t *)a[2], (int)a[3]);
		return true;
	case SYS_msgrcv:
		*ret = msgrcv((int)a[0], (void *)a[1], (size_t)a[2], a[3], (int)a[4]);
		return true;
	case SYS_msgsnd:
		*ret = msgsnd((int)a[0], (const void *)a[1], (size_t)a[2], (int)a[3]);
		return true;
	case SYS_semop:
		*ret = semop((int)a[0], (struct sembuf *)a[1], (size_t)a[2]);
		return true;
	case SYS_semtimedop:
		*ret = semtimedop((int)a[0], (struct sembuf *)a[1], (size_t)a[2],
				  (const struct timespec *)a[3]);
		return true;
	case SYS_mq_timedsend:
		*ret = mq_timedsend((mqd_t)a[0], (const char *)a[1], (size_t)a[2],
				    (unsigned)a[3], (const struct timespec *)a[4]);
		return true;
	case SYS_mq_timedreceive:
		*ret = mq_timedreceive((mqd_t)a[0], (char *)a[1], (size_t)a[2],
				       (unsigned *)a[3], (const struct timespec *)a[4]);
		return true;
	default:
		break;
	}
	return wait_in_kernel(self, number, a, ret);
}
