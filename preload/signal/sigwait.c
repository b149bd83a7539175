/* SPDX-License-Identifier: MIT */
/* preload/signal/sigwait.c - pause, sigsuspend, the sigwait family, sigpending, signalfd. */
#include "preload/gate.h"
#include "preload/real_call.h"
#include "preload/sigset.h"
#include "preload/time.h"
#include "runtime/base/time.h"
#include "runtime/io/io.h"
#include "runtime/sched/park.h"
#include "runtime/signal/overrun.h"
#include "runtime/signal/signal.h"

#include <sys/signalfd.h>

/* Sleep until a handler has run; after any other wake-up sleep again. Returns -1 with EINTR. */
static int suspend(struct fz_fiber *self, uint64_t mask)
{
	struct fz_mask_swap old;
	bool handled = fz_signal_swap_mask(self, mask, &old);

	while (!handled) {
		fz_sleep_until(self, FZ_FOREVER);
		handled = self->sig.handlers_run != 0;
	}
	fz_signal_unswap_mask(self, &old);
	return (int)fz_leave(-EINTR);
}

FZ_EXPORT int pause(void)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_pause);

	return self ? suspend(self, self->mask) : fz_real.pause();
}

FZ_EXPORT int sigsuspend(const sigset_t *set)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_sigsuspend);

	return self && fz_sys_readable(set) ? suspend(self, fz_sigset_word(set)) : fz_real.sigsuspend(set);
}
FZ_EXPORT_ALIAS(__sigsuspend, sigsuspend);

/* BSD's sigpause takes a mask, System V's takes a signal to unblock. */
static int sigpause_common(struct fz_fiber *self, int sig_or_mask, int is_sig)
{
	uint64_t mask = (unsigned)sig_or_mask;

	if (is_sig) {
		if (sig_or_mask < 1 || sig_or_mask > FZ_SIGNALS)
			return (int)fz_leave(-EINVAL);
		mask = self->mask & ~fz_signal_bit(sig_or_mask);
	}
	return suspend(self, mask);
}

FZ_EXPORT int __sigpause(int sig_or_mask, int is_sig)
{
	struct fz_fiber *self = fz_enter(FZ_SYM___sigpause);

	return self ? sigpause_common(self, sig_or_mask, is_sig) :
		      fz_real.__sigpause(sig_or_mask, is_sig);
}

FZ_EXPORT int __xpg_sigpause(int sig)
{
	struct fz_fiber *self = fz_enter(FZ_SYM___xpg_sigpause);

	return self ? sigpause_common(self, sig, 1) : fz_real.__xpg_sigpause(sig);
}

FZ_EXPORT int sigpause(int mask)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_sigpause);

	return self ? sigpause_common(self, mask, 0) : fz_real.__sigpause(mask, 0);
}

static int real_sigtimedwait(const sigset_t *set, siginfo_t *info,
			     const struct timespec *timeout)
{
	int sig = fz_real.sigtimedwait(set, info, timeout);

	if (sig > 0 && info) {
		fz_overrun_tell(info);
		fz_signal_unmark(info);
		/* libc reports SI_TKILL as SI_USER. */
		if (info->si_code == SI_TKILL)
			info->si_code = SI_USER;
	}
	return sig;
}

/*
 * Make the real call, for a native or wired thread.  A wired thread's call also fails with EINTR when a request completes
 * that its kernel thread submitted while the thread was a fiber; then it is made again.
 */
static int wait_really(const sigset_t *set, siginfo_t *info, const struct timespec *timeout)
{
	struct fz_fiber *self = fz_self();
	fz_nsec deadline = FZ_FOREVER;
	struct fz_blocked call;
	struct timespec left;
	int ret;

	if (self->kind != FZ_KIND_WIRED ||
	    (timeout && (!fz_timespec_readable(timeout) || !fz_timespec_valid(timeout) || timeout->tv_sec < 0)))
		return real_sigtimedwait(set, info, timeout);
	if (timeout)
		deadline = fz_deadline_after(fz_timespec_nsec(timeout));
	call = fz_block(self, 0);
	do
		ret = real_sigtimedwait(set, info, fz_timeout_left(deadline, &left));
	while (fz_block_again(&call, ret));
	return ret;
}

/* Returns the signal or -errno. */
static int wait_for_signal(struct fz_fiber *self, const sigset_t *set, siginfo_t *info,
			   const struct timespec *timeout)
{
	fz_nsec deadline = FZ_FOREVER;
	struct fz_siginfo got;
	int sig;

	if (!fz_sys_readable(set) || (timeout && !fz_timespec_readable(timeout)))
		return -EFAULT;
	if (timeout) {
		if (!fz_timespec_valid(timeout) || timeout->tv_sec < 0)
			return -EINVAL;
		deadline = fz_timespec_nsec(timeout);
		deadline = deadline ? fz_deadline_after(deadline) : 0;
	}
	sig = fz_signal_wait(self, fz_sigset_word(set), &got, deadline);
	/* As natively, the signal is taken even if info cannot be written. */
	if (sig > 0 && info && (!fz_sys_writable(info) || !fz_sys_writable(&info[1].si_signo - 2)))
		return -EFAULT;
	if (sig > 0 && info) {
		memcpy(info, &got, sizeof(*info));
		/* libc reports SI_TKILL as SI_USER. */
		if (info->si_code == SI_TKILL)
			info->si_code = SI_USER;
	}
	return sig;
}

FZ_EXPORT int sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *timeout)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_sigtimedwait);

	if (!self)
		return wait_really(set, info, timeout);
	return (int)fz_leave(wait_for_signal(self, set, info, timeout));
}

FZ_EXPORT int sigwaitinfo(const sigset_t *set, siginfo_t *info)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_sigwaitinfo);

	if (!self)
		return wait_really(set, info, NULL);
	return (int)fz_leave(wait_for_signal(self, set, info, NULL));
}

FZ_EXPORT int sigwait(const sigset_t *set, int *ret_sig)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_sigwait);
	int sig;

	if (!self)
		return fz_real.sigwait(set, ret_sig);
	/* POSIX has no EINTR for sigwait. */
	do {
		sig = wait_for_signal(self, set, NULL, NULL);
	} while (sig == -EINTR);
	if (sig < 0)
		return fz_leave_pthread(sig);
	*ret_sig = sig;
	return 0;
}

/* Reports signals pending in the kernel, for the fiber, and for the process in the library's queue. */
FZ_EXPORT int sigpending(sigset_t *set)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_sigpending);
	int ret = fz_real.sigpending(set);
	uint64_t word;

	if (!self || ret < 0)
		return ret;
	fz_sigqueue_purge(self);
	/* relaxed: a snapshot. */
	word = fz_sigset_word(set) | atomic_load_explicit(&self->pending, memory_order_relaxed) |
	       fz_signal_process_pending();
	/*
	 * Report blocked signals only.  One that is not blocked is about to be handled; the program
	 * must not see it as pending, whichever queue it is in.
	 */
	word &= self->mask;
	memcpy(set, &word, sizeof(word));
	return ret;
}

/* A signalfd sees only signals pending in the kernel: see fz_signal_send(). */
FZ_EXPORT int signalfd(int fd, const sigset_t *mask, int flags)
{
	int ret;

	fz_enter(FZ_SYM_signalfd);
	ret = fz_real.signalfd(fd, mask, flags);
	if (ret >= 0)
		fz_signal_note_signalfd(fz_sigset_word(mask));
	return ret;
}
