/* SPDX-License-Identifier: MIT */
/*
 * preload/syscall/signal.c - system calls by number: handlers, masks, waiting for signals.
 */
#include "preload/syscall/families.h"
#include "runtime/signal/signal.h"

/* The kernel's struct sigaction, whose mask is one word. */
struct kernel_sigaction {
	__sighandler_t handler;
	unsigned long flags;
	void (*restorer)(void);
	uint64_t mask;
};

static long kernel_sigaction(int sig, const struct kernel_sigaction *sa,
			     struct kernel_sigaction *ret_old)
{
	struct sigaction new = { .sa_flags = 0 }, old;

	if (sa) {
		new.sa_handler = sa->handler;
		new.sa_flags = (int)sa->flags;
		memcpy(&new.sa_mask, &sa->mask, sizeof(sa->mask));
	}
	if (sigaction(sig, sa ? &new : NULL, ret_old ? &old : NULL) < 0)
		return -1;
	if (ret_old) {
		if (!fz_sys_writable(ret_old) || !fz_sys_writable(&ret_old->mask))
			return fz_leave(-EFAULT);
		*ret_old = (struct kernel_sigaction){
			.handler = old.sa_handler,
			.flags = (unsigned long)(unsigned)old.sa_flags,
			.restorer = old.sa_restorer,
		};
		memcpy(&ret_old->mask, &old.sa_mask, sizeof(ret_old->mask));
	}
	return 0;
}

static bool readable_or_null(long address)
{
	return !address || fz_sys_readable((void *)address);
}

static long kernel_sigmask(struct fz_fiber *self, const long *a)
{
	uint64_t old, *ret_old = (void *)a[2];
	int err = fz_signal_set_mask(self, (int)a[0], (const uint64_t *)a[1], &old);

	if (!err && ret_old && !fz_sys_writable(ret_old))
		err = -EFAULT;
	if (!err && ret_old)
		*ret_old = old;
	return fz_leave(err);
}

/* Returns false for a wrong size or a bad address; the kernel then refuses the call. */
bool fz_syscall_signal(struct fz_fiber *self, long number, const long *a, long *ret)
{
	switch (number) {
	case SYS_rt_sigaction:
		if (a[3] != FZ_KERNEL_SIGSET_SIZE || a[0] < 1 || a[0] > FZ_SIGNALS ||
		    FZ_SIGNALS_OF_LIBC & fz_signal_bit((int)a[0]) ||
		    !readable_or_null(a[1]))
			return false;
		*ret = kernel_sigaction((int)a[0], (void *)a[1], (void *)a[2]);
		return true;
	case SYS_rt_sigprocmask:
		if (a[3] != FZ_KERNEL_SIGSET_SIZE || !readable_or_null(a[1]))
			return false;
		*ret = kernel_sigmask(self, a);
		return true;
	case SYS_rt_sigpending:
		if (a[1] != FZ_KERNEL_SIGSET_SIZE)
			return false;
		*ret = sigpending((sigset_t *)a[0]);
		return true;
	case SYS_rt_sigsuspend:
		if (a[1] != FZ_KERNEL_SIGSET_SIZE || !fz_sys_readable((void *)a[0]))
			return false;
		*ret = sigsuspend((const sigset_t *)a[0]);
		return true;
	case SYS_rt_sigtimedwait:
		if (a[3] != FZ_KERNEL_SIGSET_SIZE || !fz_sys_readable((void *)a[0]))
			return false;
		*ret = sigtimedwait((const sigset_t *)a[0], (siginfo_t *)a[1],
				    (const struct timespec *)a[2]);
		return true;
	case SYS_sigaltstack:
		*ret = sigaltstack((const stack_t *)a[0], (stack_t *)a[1]);
		return true;
	default:
		return false;
	}
}
