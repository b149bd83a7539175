/* SPDX-License-Identifier: MIT */
/*
 * preload/syscall.c - system calls by number.
 *
 *	has a body by name	that body, but without a cancellation point, and with the
 *				kernel's behaviour where libc's function differs
 *	futex			runtime/sync/futex.h
 *	the caller's own	answered for the fiber: gettid, its signal mask
 *	per kernel thread	the fiber is wired first, so that it keeps what it asked for;
 *				an io_uring of the program's as well
 *	may wait for long	the real call, announced
 *	all others		the real call
 *
 * Any thread may call, even before our constructor: allocators use syscall() so as not to call
 * themselves.
 */
#include "preload/gate.h"
#include "preload/syscall/families.h"
#include "preload/thread/kernel_state.h"
#include "preload/thread/own_ring.h"
#include "runtime/backend/filter.h"
#include "runtime/sched/cancel.h"
#include "runtime/sched/park.h"
#include "runtime/sched/provide.h"
#include "runtime/sched/retreat.h"

#include <linux/seccomp.h>
#include <stdarg.h>

/*
 * Make a call that may wait, by the body of its name or announced; returns false for any other call.
 * Deferred cancellation is disabled meanwhile: a system call by number is no cancellation point, even
 * if the function of its name is one.
 */
static bool waits(struct fz_fiber *self, long number, const long *a, long *ret)
{
	bool disable = !fz_cancel_type_is_asynchronous(self), done;
	int state = PTHREAD_CANCEL_ENABLE;

	if (disable)
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	done = fz_syscall_file(number, a, ret) || fz_syscall_socket(number, a, ret) ||
	       fz_syscall_poll(number, a, ret) || fz_syscall_signal(self, number, a, ret) ||
	       fz_syscall_wait(self, number, a, ret);
	if (disable)
		pthread_setcancelstate(state, NULL);
	return done;
}

FZ_EXPORT long syscall(long number, ...)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_syscall);
	long a[6], ret;
	va_list list;

	/* Read six words, whatever number and types the arguments have, as libc does. */
	va_start(list, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(list, long);
	va_end(list);
	if (fz_syscall_thread(self, number, a, &ret) || fz_syscall_descriptor(number, a, &ret) ||
	    fz_syscall_process(number, a, &ret))
		return ret;
	if (number == SYS_prctl)
		return prctl((int)a[0], a[1], a[2], a[3], a[4]);
	if (fz_syscall_is_of_thread(number)) {
		fz_wire_for_state();
		/* a[2] is the filter. If it is NULL, libseccomp only asks whether the kernel knows the flag. */
		if (number == SYS_seccomp && a[1] & SECCOMP_FILTER_FLAG_TSYNC && a[2]) {
			fz_provide_stop_following();
			fz_retreat_from_ring(fz_self(), "a filter of the program", -EPERM);
		}
		ret = fz_syscall_real(number, a);
		if (number == SYS_seccomp)
			fz_filter_changed();
		if (number == SYS_set_tid_address && ret > 0) {
			self = fz_self();
			/* The program may set again what PR_GET_TID_ADDRESS has told it: libc's own word. */
			if (self->kind == FZ_KIND_WIRED)
				self->thread.tid_address = a[0] == (long)fz_tcb_tid(self->tcb) ?
								   NULL : (_Atomic int *)a[0];
			ret = gettid();
		}
		return ret;
	}
	if (number == SYS_io_uring_setup || number == SYS_io_uring_register ||
	    number == SYS_io_uring_enter) {
		fz_wire_for_ring();
		return fz_syscall_real(number, a);
	}
	if (self && waits(self, number, a, &ret))
		return ret;
	if (number == SYS_exit_group)
		fz_stats_say();
	if (self && number == SYS_exit)
		fz_fiber_vanish(self, (int)a[0]);
	return fz_syscall_real(number, a);
}
