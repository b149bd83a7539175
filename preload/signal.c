/* SPDX-License-Identifier: MIT */
/*
 * preload/signal.c - actions, masks, waiting for and sending signals.
 *
 * The kernel has fz_signal_arrived for every signal that the program handles
 * (runtime/signal.h); the program sees what it installed.  Masks are the
 * fiber's.  An alternate stack is remembered but not used: a fiber's handlers run
 * on its own stack, for the kernel's alternate stack belongs to a carrier.
 */
#include "preload/gate.h"
#include "preload/time.h"
#include "runtime/io.h"
#include "runtime/op.h"
#include "runtime/park.h"
#include "runtime/sched.h"
#include "runtime/signal.h"

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

static void arrived(int sig, siginfo_t *info, void *ucontext)
{
	int saved = errno;

	fz_signal_arrived(sig, info, ucontext);
	errno = saved;
}

/* One change at a time; not across a call of the program's. */
static struct fz_lock action_lock;

/* The program's words for what the kernel says is installed. */
static void translate_old(int sig, struct sigaction *sa)
{
	struct fz_action a;

	if (!(sa->sa_flags & SA_SIGINFO) || sa->sa_sigaction != arrived)
		return;
	a = fz_signal_action_get(sig);
	sa->sa_handler = (__sighandler_t)(void *)a.handler;
	sa->sa_flags = (int)a.flags;
}

FZ_EXPORT int sigaction(int sig, const struct sigaction *sa, struct sigaction *ret_old)
{
	struct sigaction ours, old;
	struct fz_action action;
	uint64_t all = ~(uint64_t)0, mask;
	int ret;

	fz_enter(FZ_SYM_sigaction);
	if (sig < 1 || sig > FZ_SIGNALS || (sa == NULL && ret_old == NULL))
		return fz_real.sigaction(sig, sa, ret_old);
	/* No handler may find table and kernel disagreeing. */
	fz_sys_sigmask(SIG_SETMASK, &all, &mask);
	fz_lock_acquire(&action_lock);
	if (sa && is_handler(sa)) {
		action = to_action(sa);
		ours = *sa;
		ours.sa_sigaction = arrived;
		ours.sa_flags |= SA_SIGINFO;
		ret = fz_real.sigaction(sig, &ours, &old);
		if (ret == 0) {
			translate_old(sig, &old);
			fz_signal_action_set(sig, &action);
		}
	} else {
		ret = fz_real.sigaction(sig, sa, &old);
		if (ret == 0)
			translate_old(sig, &old);
		if (ret == 0 && sa) {
			action = to_action(sa);
			fz_signal_action_set(sig, &action);
		}
	}
	fz_lock_release(&action_lock);
	fz_sys_sigmask(SIG_SETMASK, &mask, NULL);
	if (ret == 0 && ret_old)
		*ret_old = old;
	return ret;
}
FZ_EXPORT_ALIAS(__sigaction, sigaction);

static __sighandler_t install(int sig, __sighandler_t handler, int flags, bool mask_itself)
{
	struct sigaction sa = { .sa_flags = flags }, old;

	if (handler == SIG_ERR) {
		errno = EINVAL;
		return SIG_ERR;
	}
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

/* ---- masks -------------------------------------------------------------- */

/* Returns 0 or a positive error number. */
static int change_mask(struct fz_fiber *self, int how, const sigset_t *set, sigset_t *ret_old)
{
	uint64_t word = 0, old;
	int err;

	if (set)
		memcpy(&word, set, sizeof(word));
	err = fz_signal_set_mask(self, how, set ? &word : NULL, &old);
	if (err)
		return -err;
	if (ret_old) {
		sigemptyset(ret_old);
		memcpy(ret_old, &old, sizeof(old));
	}
	return 0;
}

FZ_EXPORT int pthread_sigmask(int how, const sigset_t *set, sigset_t *ret_old)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_pthread_sigmask);

	if (!self)
		return fz_real.pthread_sigmask(how, set, ret_old);
	return change_mask(self, how, set, ret_old);
}

FZ_EXPORT int sigprocmask(int how, const sigset_t *set, sigset_t *ret_old)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_sigprocmask);

	if (!self)
		return fz_real.sigprocmask(how, set, ret_old);
	return (int)fz_leave(-change_mask(self, how, set, ret_old));
}

FZ_EXPORT int sigaltstack(const stack_t *stack, stack_t *ret_old)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_sigaltstack);

	if (!self || self->is_main)
		return fz_real.sigaltstack(stack, ret_old);
	if (stack) {
		if (stack->ss_flags & ~(SS_DISABLE | SS_ONSTACK | (int)(1u << 31)))
			return (int)fz_leave(-EINVAL);
		if (!(stack->ss_flags & SS_DISABLE) && stack->ss_size < 2048)
			return (int)fz_leave(-ENOMEM);
	}
	if (ret_old) {
		ret_old->ss_sp = self->alt_stack;
		ret_old->ss_size = self->alt_stack_size;
		ret_old->ss_flags = self->alt_stack ? 0 : SS_DISABLE;
	}
	if (stack) {
		bool off = stack->ss_flags & SS_DISABLE;

		self->alt_stack = off ? NULL : stack->ss_sp;
		self->alt_stack_size = off ? 0 : stack->ss_size;
	}
	return 0;
}

/* ---- jumps out of handlers ---------------------------------------------- */

/* libc restores the mask behind our back. */
static void note_restored_mask(const struct __jmp_buf_tag *env)
{
	struct fz_fiber *self = fz_self();
	uint64_t mask;

	if (self->kind != FZ_KIND_FIBER || !env->__mask_was_saved)
		return;
	memcpy(&mask, &env->__saved_mask, sizeof(mask));
	fz_signal_set_mask(self, SIG_SETMASK, &mask, NULL);
}

FZ_EXPORT _Noreturn void longjmp(struct __jmp_buf_tag env[1], int value)
{
	fz_enter(FZ_SYM_longjmp);
	note_restored_mask(env);
	fz_real.longjmp(env, value);
	__builtin_unreachable();
}
FZ_EXPORT_ALIAS(siglongjmp, longjmp);
FZ_EXPORT_ALIAS(_longjmp, longjmp);

FZ_EXPORT _Noreturn void __longjmp_chk(struct __jmp_buf_tag env[1], int value)
{
	fz_enter(FZ_SYM___longjmp_chk);
	note_restored_mask(env);
	fz_real.__longjmp_chk(env, value);
	__builtin_unreachable();
}

/* ---- waiting ------------------------------------------------------------ */

/* Until a handler has run; whatever else ends the sleep does not count. */
static void await_handler(struct fz_fiber *self)
{
	while (!self->handlers_run)
		fz_io_sleep(self, FZ_FOREVER);
}

FZ_EXPORT int pause(void)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_pause);

	if (!self)
		return fz_real.pause();
	self->handlers_run = 0;
	await_handler(self);
	return (int)fz_leave(-EINTR);
}

FZ_EXPORT int sigsuspend(const sigset_t *set)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_sigsuspend);
	uint64_t mask, old;

	if (!self)
		return fz_real.sigsuspend(set);
	memcpy(&mask, set, sizeof(mask));
	self->handlers_run = 0;
	fz_signal_set_mask(self, SIG_SETMASK, &mask, &old);
	await_handler(self);
	fz_signal_set_mask(self, SIG_SETMASK, &old, NULL);
	return (int)fz_leave(-EINTR);
}
FZ_EXPORT_ALIAS(__sigsuspend, sigsuspend);

/*
 * The real call on this carrier, whose mask is the fiber's.  It may say EINTR
 * because a request of this kernel thread completed: only a handler counts.
 */
static int wait_for_signal(struct fz_fiber *self, const sigset_t *set, siginfo_t *info,
			   const struct timespec *timeout)
{
	fz_nsec deadline = FZ_FOREVER;
	uint64_t word;
	int ret;

	if (timeout) {
		if (!fz_timespec_valid(timeout) || timeout->tv_sec < 0)
			return (int)fz_leave(-EINVAL);
		deadline = fz_deadline_after(fz_timespec_nsec(timeout));
	}
	memcpy(&word, set, sizeof(word));
	fz_signal_note_sigwait(self, word);
	self->handlers_run = 0;
	do {
		fz_nsec now = fz_now();
		fz_nsec left = deadline > now ? deadline - now : 0;
		struct timespec ts = { .tv_sec = (time_t)(left / FZ_SEC),
				       .tv_nsec = (long)(left % FZ_SEC) };

		fz_announce(self);
		ret = fz_real.sigtimedwait(set, info, deadline == FZ_FOREVER ? NULL : &ts);
	} while (ret < 0 && errno == EINTR && !self->handlers_run);
	fz_signal_note_sigwait(self, 0);
	return ret;
}

FZ_EXPORT int sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *timeout)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_sigtimedwait);

	if (!self)
		return fz_real.sigtimedwait(set, info, timeout);
	return wait_for_signal(self, set, info, timeout);
}

FZ_EXPORT int sigwaitinfo(const sigset_t *set, siginfo_t *info)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_sigwaitinfo);

	if (!self)
		return fz_real.sigwaitinfo(set, info);
	return wait_for_signal(self, set, info, NULL);
}

FZ_EXPORT int sigwait(const sigset_t *set, int *ret_sig)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_sigwait);
	int sig;

	if (!self)
		return fz_real.sigwait(set, ret_sig);
	/* POSIX knows no EINTR here. */
	do {
		sig = wait_for_signal(self, set, NULL, NULL);
	} while (sig < 0 && errno == EINTR);
	if (sig < 0)
		return errno;
	*ret_sig = sig;
	return 0;
}

/* The kernel's, and those that are the fiber's alone. */
FZ_EXPORT int sigpending(sigset_t *set)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_sigpending);
	int ret = fz_real.sigpending(set);
	uint64_t word;

	if (!self || ret < 0)
		return ret;
	memcpy(&word, set, sizeof(word));
	/* relaxed: a snapshot. */
	word |= atomic_load_explicit(&self->pending, memory_order_relaxed);
	memcpy(set, &word, sizeof(word));
	return ret;
}

/* ---- sending ------------------------------------------------------------ */

FZ_EXPORT int raise(int sig)
{
	struct fz_fiber *self = fz_enter(FZ_SYM_raise);

	if (!self || sig < 1 || sig > FZ_SIGNALS)
		return fz_real.raise(sig);
	/* Blocked, it must not stay with a carrier that others use as well. */
	if (self->mask & fz_signal_bit(sig)) {
		atomic_fetch_or_explicit(&self->pending, fz_signal_bit(sig),
					 memory_order_seq_cst);
		return 0;
	}
	return (int)fz_leave(fz_syscall3(__NR_tgkill, fz_sys_getpid(), fz_sys_gettid(), sig));
}

FZ_EXPORT int pthread_kill(pthread_t thread, int sig)
{
	struct fz_fiber *target = fz_fiber_of_handle(thread), *self;
	struct sigaction sa;
	uint32_t life;

	fz_enter(FZ_SYM_pthread_kill);
	if (!fz_is_fiber(target))
		return fz_real.pthread_kill(thread, sig);
	if (sig < 0 || sig > FZ_SIGNALS || (sig && FZ_SIGNALS_OF_LIBC & fz_signal_bit(sig)))
		return EINVAL;
	life = atomic_load_explicit(&target->life, memory_order_acquire);
	if (life & FZ_LIFE_FREE)
		return ESRCH;
	if (sig == 0 || life & FZ_LIFE_ENDED)
		return 0;
	self = fz_self();
	/* To itself it is synchronous; in sigwait the kernel must have it. */
	if (target == self)
		return raise(sig) < 0 ? errno : 0;
	if (target->kind == FZ_KIND_WIRED)
		return (int)-fz_syscall3(__NR_tgkill, fz_sys_getpid(),
					 fz_fiber_kernel_tid(target), sig);
	if (target->sigwait_set & fz_signal_bit(sig))
		return (int)-fz_syscall3(__NR_tgkill, fz_sys_getpid(),
					 fz_fiber_kernel_tid(target), sig);
	/* What is not handled concerns the process, whichever thread it hits. */
	if (fz_real.sigaction(sig, NULL, &sa) < 0 || !is_handler(&sa))
		return (int)-fz_syscall2(__NR_kill, fz_sys_getpid(), sig);
	fz_signal_send(target, sig);
	return 0;
}
