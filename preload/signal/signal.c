/* SPDX-License-Identifier: MIT */
/*
 * preload/signal/signal.c - actions, masks, alternate stacks.
 *
 * The kernel has fz_signal_arrived for every signal that the program handles
 * (runtime/signal/signal.h); the program sees what it installed itself. Masks and alternate stacks
 * (runtime/signal/altstack.h) belong to the fiber.
 */
#include "preload/gate.h"
#include "preload/signal/host.h"
#include "runtime/sched/monitor.h"
#include "runtime/signal/altstack.h"
#include "runtime/signal/signal.h"

/* ---- actions ------------------------------------------------------------ */

static bool is_handler(const struct sigaction *sa)
{
	return sa->sa_handler != SIG_DFL && sa->sa_handler != SIG_IGN;
}

static struct fz_action to_action(const struct sigaction *sa)
{
	struct fz_action a = { .flags = (uint32_t)sa->sa_flags };

	a.handler = (void (*)(int, void *, void *))(void *)sa->sa_handler;
	memcpy(&a.mask, &sa->sa_mask, sizeof(a.mask));
	return a;
}

/* libc's stack_t, the kernel's and struct fz_alt_stack have one layout. */
_Static_assert(sizeof(stack_t) == sizeof(struct fz_alt_stack) &&
	       offsetof(stack_t, ss_size) == offsetof(struct fz_alt_stack, size), "stack_t");

static void arrived(int sig, siginfo_t *info, void *ucontext)
{
	ucontext_t *uc = ucontext;
	int saved = errno;
	uint64_t before, mask;

	memcpy(&before, &uc->uc_sigmask, sizeof(before));
	fz_signal_arrived(sig, info, ucontext);
	memcpy(&mask, &uc->uc_sigmask, sizeof(mask));
	fz_signal_handler_ends(fz_self(), before, mask, (struct fz_alt_stack *)(void *)&uc->uc_stack);
	errno = saved;
}

void fz_host_signal_handler(int sig, void *info, void *ucontext)
{
	arrived(sig, info, ucontext);
}

void fz_host_call_handler(int sig, void *info)
{
	struct fz_fiber *self = fz_self();
	struct fz_action a = fz_signal_action_get(sig);
	uint64_t during = self->mask | a.mask, before, after;
	int saved = errno;
	ucontext_t uc;

	if (!(a.flags & SA_NODEFER))
		during |= fz_signal_bit(sig);
	fz_sys_sigmask(SIG_SETMASK, &during, &before);
	getcontext(&uc);
	memcpy(&uc.uc_sigmask, &before, sizeof(before));
	fz_signal_call_handler(self, sig, info, &uc);
	memcpy(&after, &uc.uc_sigmask, sizeof(after));
	if (self->kind == FZ_KIND_FIBER) {
		fz_signal_load_mask(self->carrier, self->mask);
		if (after != before)
			fz_signal_set_mask(self, SIG_SETMASK, &after, NULL);
	} else {
		fz_sys_sigmask(SIG_SETMASK, &before, NULL);
	}
	errno = saved;
}

/* If the kernel says that our handler is installed, replace *sa by what the program installed. */
static void translate_old(int sig, struct sigaction *sa)
{
	struct fz_action a;

	if (!(sa->sa_flags & SA_SIGINFO) ||
	    (sa->sa_sigaction != arrived && sa->sa_sigaction != fz_stats_signal &&
	     sa->sa_sigaction != (void (*)(int, siginfo_t *, void *))fz_host_signal_handler))
		return;
	a = fz_signal_action_get(sig);
	sa->sa_handler = (__sighandler_t)(void *)a.handler;
	sa->sa_flags = (int)a.flags;
	memcpy(&sa->sa_mask, &a.mask, sizeof(a.mask));
}

/* Returns the action that the kernel gets when the program sets *sa; NULL if sa is NULL. */
static const struct sigaction *in_front(int sig, const struct sigaction *sa,
					struct sigaction *ours)
{
	if (!sa)
		return NULL;
	*ours = *sa;
	ours->sa_sigaction = arrived;
	if (is_handler(sa)) {
		/* fz_signal_action_once() does the work of SA_RESETHAND when the program's handler runs. */
		ours->sa_flags = (sa->sa_flags & ~(int)SA_RESETHAND) | SA_SIGINFO;
		return ours;
	}
	/* No thread is or was in sigwait for the signal, so `arrived` is not needed in front. */
	if (!fz_signal_substituted(sig) && !(fz_signal_waited_for() & fz_signal_bit(sig))) {
		if (sa->sa_handler != SIG_DFL || !fz_stats_watches(sig))
			return sa;
		ours->sa_sigaction = fz_stats_signal;
		ours->sa_flags = SA_SIGINFO | SA_ONSTACK;
		sigfillset(&ours->sa_mask);
		return ours;
	}
	ours->sa_flags = (sa->sa_flags & (SA_NOCLDSTOP | SA_NOCLDWAIT)) | SA_SIGINFO | SA_RESTART;
	/* The kernel must leave no zombies, as if it ignored SIGCHLD itself. */
	if (sig == SIGCHLD && sa->sa_handler == SIG_IGN)
		ours->sa_flags |= SA_NOCLDSTOP | SA_NOCLDWAIT;
	sigemptyset(&ours->sa_mask);
	return ours;
}

/* Does the kernel drop a pending signal of this number when it gets this action? */
static bool drops_pending(int sig, const struct sigaction *sa)
{
	return sa && (sa->sa_handler == SIG_IGN || (sa->sa_handler == SIG_DFL && fz_signal_ignored_by_default(sig)));
}

FZ_EXPORT int sigaction(int sig, const struct sigaction *sa, struct sigaction *ret_old)
{
	const struct sigaction *front;
	struct sigaction ours, old;
	struct fz_action action;
	bool substituted = false;
	uint64_t mask;
	int ret;

	fz_enter(FZ_SYM_sigaction);
	if (sig < 1 || sig > FZ_SIGNALS || (sa == NULL && ret_old == NULL))
		return fz_real.sigaction(sig, sa, ret_old);
	/*
	 * The child of a clone that shares memory has its own actions in the kernel, but the library's
	 * table is its parent's: only the kernel's action changes.
	 */
	if (FZ_UNLIKELY(fz_self()->thread.lends_memory)) {
		ret = fz_real.sigaction(sig, sa, ret_old);
		if (ret == 0 && ret_old)
			translate_old(sig, ret_old);
		return ret;
	}
	/*
	 * The program's handlers may run on its alternate stack, but must not on one that a
	 * carrier keeps for reports.
	 */
	if (sa && is_handler(sa) && sa->sa_flags & SA_ONSTACK)
		fz_alt_stack_for_reports(false);
	fz_signal_actions_lock(&mask);
	front = in_front(sig, sa, &ours);
	/* Set the program's own action first if it makes the kernel drop pending signals. */
	ret = fz_real.sigaction(sig, drops_pending(sig, sa) ? sa : front, &old);
	if (ret == 0 && front != sa && drops_pending(sig, sa))
		fz_real.sigaction(sig, front, NULL);
	if (ret == 0)
		translate_old(sig, &old);
	if (ret == 0 && sa) {
		action = to_action(sa);
		substituted = !is_handler(sa) && front->sa_sigaction == arrived;
		fz_signal_action_set(sig, &action, substituted);
	}
	fz_signal_actions_unlock(&mask);
	/* A thread may have left sigwait meanwhile and found nothing to restore: have the monitor do it. */
	if (substituted && !(fz_signal_waited_for() & fz_signal_bit(sig)))
		fz_monitor_poke();
	if (ret == 0 && sa && !is_handler(sa))
		fz_signal_discard(sig);
	if (ret == 0 && ret_old)
		*ret_old = old;
	return ret;
}
FZ_EXPORT_ALIAS(__sigaction, sigaction);

static __sighandler_t install(int sig, __sighandler_t handler, int flags, bool mask_itself)
{
	struct sigaction sa = { .sa_flags = flags }, old;

	if (handler == SIG_ERR)
		return (__sighandler_t)fz_leave(-EINVAL);
	sa.sa_handler = handler;
	sigemptyset(&sa.sa_mask);
	if (mask_itself && sigaddset(&sa.sa_mask, sig) < 0)
		return SIG_ERR;
	return sigaction(sig, &sa, &old) < 0 ? SIG_ERR : old.sa_handler;
}

/* Signals for which siginterrupt(sig, 1) was called: signal() without SA_RESTART. */
static _Atomic uint64_t interrupting;

FZ_EXPORT __sighandler_t signal(int sig, __sighandler_t handler)
{
	bool restart = true;

	fz_enter(FZ_SYM_signal);
	if (sig >= 1 && sig <= FZ_SIGNALS)
		restart = !(atomic_load_explicit(&interrupting, memory_order_relaxed) &
			    fz_signal_bit(sig));
	return install(sig, handler, restart ? SA_RESTART : 0, true);
}
FZ_EXPORT_ALIAS(ssignal, signal);
extern __sighandler_t bsd_signal(int sig, __sighandler_t handler)
	__attribute__((alias("signal"), visibility("default")));

FZ_EXPORT __sighandler_t sysv_signal(int sig, __sighandler_t handler)
{
	fz_enter(FZ_SYM_sysv_signal);
	return install(sig, handler, SA_RESETHAND | SA_NODEFER, false);
}
extern __sighandler_t __sysv_signal(int sig, __sighandler_t handler)
	__attribute__((alias("sysv_signal"), visibility("default")));

FZ_EXPORT int siginterrupt(int sig, int interrupt)
{
	struct sigaction sa;

	fz_enter(FZ_SYM_siginterrupt);
	if (sigaction(sig, NULL, &sa) < 0)
		return -1;
	if (interrupt) {
		atomic_fetch_or_explicit(&interrupting, fz_signal_bit(sig), memory_order_relaxed);
		sa.sa_flags &= ~SA_RESTART;
	} else {
		atomic_fetch_and_explicit(&interrupting, ~fz_signal_bit(sig),
					  memory_order_relaxed);
		sa.sa_flags |= SA_RESTART;
	}
	return sigaction(sig, &sa, NULL);
}

/* ---- System V ----------------------------------------------------------- */

static int change_own_mask(int how, int sig)
{
	sigset_t set;

	sigemptyset(&set);
	if (sigaddset(&set, sig) < 0)
		return -1;
	return sigprocmask(how, &set, NULL);
}

FZ_EXPORT int sighold(int sig)
{
	fz_enter(FZ_SYM_sighold);
	return change_own_mask(SIG_BLOCK, sig);
}

FZ_EXPORT int sigrelse(int sig)
{
	fz_enter(FZ_SYM_sigrelse);
	return change_own_mask(SIG_UNBLOCK, sig);
}

FZ_EXPORT int sigignore(int sig)
{
	fz_enter(FZ_SYM_sigignore);
	return install(sig, SIG_IGN, 0, false) == SIG_ERR ? -1 : 0;
}

FZ_EXPORT __sighandler_t sigset(int sig, __sighandler_t disposition)
{
	__sighandler_t was;
	sigset_t set, before;

	fz_enter(FZ_SYM_sigset);
	if (disposition == SIG_ERR || sig < 1 || sig > FZ_SIGNALS)
		return (__sighandler_t)fz_leave(-EINVAL);
	sigemptyset(&set);
	if (sigaddset(&set, sig) < 0)
		return SIG_ERR;
	if (disposition == SIG_HOLD) {
		struct sigaction sa;

		if (sigprocmask(SIG_BLOCK, &set, &before) < 0 || sigaction(sig, NULL, &sa) < 0)
			return SIG_ERR;
		return sigismember(&before, sig) ? SIG_HOLD : sa.sa_handler;
	}
	was = install(sig, disposition, 0, false);
	if (was == SIG_ERR || sigprocmask(SIG_UNBLOCK, &set, &before) < 0)
		return SIG_ERR;
	return sigismember(&before, sig) ? SIG_HOLD : was;
}

/* BSD's mask: an int with the first 32 signals. */
static int bsd_mask(int how, int mask)
{
	sigset_t set, before;
	unsigned word = (unsigned)mask;
	uint64_t old;

	sigemptyset(&set);
	memcpy(&set, &word, sizeof(word));
	if (sigprocmask(how, &set, &before) < 0)
		return -1;
	memcpy(&old, &before, sizeof(old));
	return (int)old;
}

FZ_EXPORT int sigblock(int mask)
{
	fz_enter(FZ_SYM_sigblock);
	return bsd_mask(SIG_BLOCK, mask);
}

FZ_EXPORT int sigsetmask(int mask)
{
	fz_enter(FZ_SYM_sigsetmask);
	return bsd_mask(SIG_SETMASK, mask);
}

FZ_EXPORT int siggetmask(void)
{
	fz_enter(FZ_SYM_siggetmask);
	return bsd_mask(SIG_BLOCK, 0);
}

/* ---- masks -------------------------------------------------------------- */

/* Returns 0 or -errno. */
static int change_mask(struct fz_fiber *self, int how, const sigset_t *set, sigset_t *ret_old)
{
	uint64_t word = 0, old;
	int err;

	if (set)
		memcpy(&word, set, sizeof(word));
	err = fz_signal_set_mask(self, how, set ? &word : NULL, &old);
	if (err)
		return err;
	/* As in the kernel, the mask has changed even if the old one cannot be written. */
	if (ret_old && !fz_sys_writable(ret_old))
		return -EFAULT;
	if (ret_old)
		memcpy(ret_old, &old, sizeof(old));
	return 0;
}

FZ_EXPORT int pthread_sigmask(int how, const sigset_t *set, sigset_t *ret_old)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_pthread_sigmask);

	if (!self)
		return fz_real.pthread_sigmask(how, set, ret_old);
	return fz_leave_pthread(change_mask(self, how, set, ret_old));
}

FZ_EXPORT int sigprocmask(int how, const sigset_t *set, sigset_t *ret_old)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_sigprocmask);

	if (!self)
		return fz_real.sigprocmask(how, set, ret_old);
	return (int)fz_leave(change_mask(self, how, set, ret_old));
}

FZ_EXPORT int sigaltstack(const stack_t *stack, stack_t *ret_old)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_sigaltstack);

	if (!self)
		return fz_real.sigaltstack(stack, ret_old);
	return (int)fz_leave(fz_alt_stack_change(self, stack, ret_old));
}
