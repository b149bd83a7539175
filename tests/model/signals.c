/* SPDX-License-Identifier: MIT */
#include "tests/model/signals.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>

#include "tests/model/model.h"
#include "tests/model/reduce/reduce.h"

#define BIT(sig) ((uint64_t)1 << ((sig) - 1))
#define NEVER_BLOCKED (BIT(SIGKILL) | BIT(SIGSTOP))
/* These are taken before all others. */
#define SYNCHRONOUS (BIT(SIGSEGV) | BIT(SIGBUS) | BIT(SIGILL) | BIT(SIGTRAP) | BIT(SIGFPE) | BIT(SIGSYS))
#define IGNORED_BY_DEFAULT (BIT(SIGCHLD) | BIT(SIGCONT) | BIT(SIGURG) | BIT(SIGWINCH))

enum { FIRST_QUEUED = 32 };		/* smaller numbers are pending once only */

/* Which handlers have been run. */
enum ran { NO_HANDLER, ALL_RESTART, ONE_INTERRUPTS };

static uint64_t pending(int to)
{
	uint64_t set = 0;

	for (int i = 0; i < M.signals.count; i++)
		if (M.signals.sent[i].to == to)
			set |= BIT(M.signals.sent[i].sig);
	return set;
}

static uint64_t due(int kt)
{
	return (pending(kt) | pending(TO_PROCESS)) & ~M.kt[kt].mask;
}

/* The kernel's recalc_sigpending(). */
static void look(int kt)
{
	M.kt[kt].signalled = due(kt) != 0;
}

/* The kernel's signal_wake_up(). */
static void interrupt(int i)
{
	struct kthread *kt = &M.kt[i];

	kt->signalled = true;
	if (kt->state != KT_BLOCKED)
		return;
	kt->result = -EINTR;
	kthread_waits_no_more(kt);
	kt->state = KT_RUNNABLE;
}

/* One that has been interrupted and is not on its CPU will take other signals than this, so far as the kernel knows. */
static bool wants(int kt, int sig)
{
	return M.kt[kt].state != KT_ENDED && !(M.kt[kt].mask & BIT(sig)) && (kt == M.current || !M.kt[kt].signalled);
}

/* The first thread, if it wants the signal; else the next one that does, from the one that got the last. */
static void wake_for(int sig, int to)
{
	int kt = to == TO_PROCESS ? 0 : to;

	if (!wants(kt, sig)) {
		if (to != TO_PROCESS)
			return;
		for (int n = 0; !wants(kt, sig); n++) {
			if (n == M.kthreads)
				return;
			kt = (M.signals.turn + n) % M.kthreads;
		}
		M.signals.turn = kt;
	}
	interrupt(kt);
}

static bool is_ignored(int sig)
{
	const struct kernel_action *a = &M.signals.action[sig];

	return a->handler == (void (*)(int, void *, void *))(void *)SIG_IGN || (!a->handler && IGNORED_BY_DEFAULT & BIT(sig));
}

static void drop(int i)
{
	memmove(&M.signals.sent[i], &M.signals.sent[i + 1], (size_t)(--M.signals.count - i) * sizeof(struct sent));
}

static void drop_all(int sig, int to)
{
	for (int i = M.signals.count; i-- > 0;)
		if ((!sig || M.signals.sent[i].sig == sig) && (to == KTHREADS || M.signals.sent[i].to == to))
			drop(i);
}

static void send(int sig, int to, const void *info)
{
	struct sent *s = &M.signals.sent[M.signals.count];

	if (NEVER_BLOCKED & BIT(sig))
		model_outside("SIGKILL and SIGSTOP");
	/* A blocked one may get a handler before it is unblocked. */
	if (is_ignored(sig) && !(M.kt[to == TO_PROCESS ? 0 : to].mask & BIT(sig)))
		return;
	if (sig < FIRST_QUEUED && pending(to) & BIT(sig))
		return;
	if (M.signals.count == SENT)
		model_outside("more pending signals than signals.h has room for");
	s->sig = sig;
	s->to = to;
	memcpy(s->info, info, sizeof(s->info));
	M.signals.count++;
	if (tracing)
		trace_say("signal %d is sent to %s", sig, to == TO_PROCESS ? "the process" : M.kt[to].name);
	wake_for(sig, to);
}

/* The first signal of set: the kthread's own before the process's, the lowest number of these, in the order of arrival. */
static bool take(int kt, uint64_t set, struct sent *ret)
{
	for (int own = 1; own >= 0; own--) {
		const int to = own ? kt : TO_PROCESS;
		uint64_t found = pending(to) & set;
		int sig;

		if (!found)
			continue;
		found = found & SYNCHRONOUS ? found & SYNCHRONOUS : found;
		sig = __builtin_ctzll(found) + 1;
		for (int i = 0; i < M.signals.count; i++)
			if (M.signals.sent[i].to == to && M.signals.sent[i].sig == sig) {
				*ret = M.signals.sent[i];
				drop(i);
				look(kt);
				return true;
			}
	}
	return false;
}

/* A kthread that was to take signals of the process blocks these from now on: others must. */
static void retarget(int kt, uint64_t set)
{
	set &= pending(TO_PROCESS);
	for (int n = 1; set && n < M.kthreads; n++) {
		const int other = (kt + n) % M.kthreads;

		if (M.kt[other].state == KT_ENDED || !(set & ~M.kt[other].mask))
			continue;
		set &= M.kt[other].mask;
		if (!M.kt[other].signalled)
			interrupt(other);
	}
}

static void set_mask(int kt, uint64_t mask)
{
	mask &= ~NEVER_BLOCKED;
	if (M.kt[kt].signalled)
		retarget(kt, mask & ~M.kt[kt].mask);
	M.kt[kt].mask = mask;
	look(kt);
}

void signals_kthread_ends(int kt)
{
	reduce_use(OBJECT_SIGNALS, true);
	if (M.kt[kt].signalled)
		retarget(kt, ~M.kt[kt].mask);
	M.kt[kt].signalled = false;
	drop_all(0, kt);
}

/* ---- handlers ------------------------------------------------------------------------------ */

static enum ran run_handlers(void);

/* May end on another kthread: the handler may let other fibers run. */
static void call_handler(struct sent *s, const struct kernel_action *a)
{
	const uint64_t before = M.kt[M.current].mask;
	ucontext_t frame = { .uc_stack.ss_flags = SS_DISABLE };
	uint64_t mask;

	memcpy(&frame.uc_sigmask, &before, sizeof(before));
	if (tracing)
		trace_say("%s takes signal %d", M.kt[M.current].name, s->sig);
	if (tso)
		tso_flush(M.current);
	set_mask(M.current, before | a->mask | (a->flags & SA_NODEFER ? 0 : BIT(s->sig)));
	/* What this mask admits interrupts the handler before its first instruction. */
	run_handlers();
	a->handler(s->sig, s->info, &frame);
	/* rt_sigreturn, a system call. */
	if (exploring) {
		step++;
		schedule_point();
	}
	if (tso)
		tso_flush(M.current);
	reduce_use(OBJECT_SIGNALS, true);
	memcpy(&mask, &frame.uc_sigmask, sizeof(mask));
	set_mask(M.current, mask);
	if (tracing)
		trace_say("%s returns from the handler of signal %d", M.kt[M.current].name, s->sig);
}

/* Of the handlers that interrupt a call, the first one counts. */
static enum ran run_handlers(void)
{
	enum ran ran = NO_HANDLER;
	struct sent s;

	while (M.kt[M.current].signalled) {
		reduce_use(OBJECT_SIGNALS, true);
		struct kernel_action a;

		if (!take(M.current, ~M.kt[M.current].mask, &s)) {
			M.kt[M.current].signalled = false;
			break;
		}
		a = M.signals.action[s.sig];
		if (is_ignored(s.sig))
			continue;
		if (!a.handler)
			model_fail("signal %d ends the process by its default action", s.sig);
		if (a.flags & SA_RESETHAND)
			M.signals.action[s.sig].handler = NULL;
		if (ran == NO_HANDLER)
			ran = a.flags & SA_RESTART ? ALL_RESTART : ONE_INTERRUPTS;
		call_handler(&s, &a);
	}
	return ran;
}

void signals_return(void)
{
	if (!M.kt[M.current].in_kernel)
		run_handlers();
}

bool signals_end_call(long *result)
{
	const enum ran ran = run_handlers();

	if (*result != CALL_RESTARTS)
		return false;
	*result = -EINTR;
	return ran != ONE_INTERRUPTS;
}

bool signals_interrupt(void)
{
	uint64_t set = due(M.current);

	reduce_use(OBJECT_SIGNALS, true);
	for (uint64_t rest = set; rest; rest &= rest - 1)
		if (is_ignored(__builtin_ctzll(rest) + 1))
			set &= ~(rest & -rest);
	M.kt[M.current].signalled = set != 0;
	return set != 0;
}

/* ---- system calls -------------------------------------------------------------------------- */

static bool is_number(int sig)
{
	return sig >= 1 && sig <= SIGNALS;
}

long signals_action(int sig, const struct kernel_action *action, struct kernel_action *ret_old)
{
	const struct kernel_action old = M.signals.action[is_number(sig) ? sig : 0];

	if (!is_number(sig) || (action && NEVER_BLOCKED & BIT(sig)))
		return -EINVAL;
	if (action) {
		M.signals.action[sig] = *action;
		M.signals.action[sig].mask &= ~NEVER_BLOCKED;
		if (is_ignored(sig))
			drop_all(sig, KTHREADS);
	}
	if (ret_old)
		model_put(ret_old, &old, sizeof(old));
	return 0;
}

long signals_change_mask(int how, const uint64_t *set, uint64_t *ret_old)
{
	const uint64_t old = M.kt[M.current].mask;

	/* fz_sys_readable() */
	if (set && (how < SIG_BLOCK || how > SIG_SETMASK))
		return -EINVAL;
	if (set)
		set_mask(M.current, how == SIG_BLOCK ? old | *set : how == SIG_UNBLOCK ? old & ~*set : *set);
	if (ret_old)
		model_put(ret_old, &old, sizeof(old));
	return 0;
}

long signals_take(const uint64_t *set, void *ret_info, const void *timeout)
{
	const struct timespec *limit = timeout;
	struct sent s;

	if (take(M.current, *set & ~NEVER_BLOCKED, &s)) {
		if (ret_info)
			model_put(ret_info, s.info, sizeof(s.info));
		return s.sig;
	}
	if (!limit || limit->tv_sec || limit->tv_nsec)
		model_outside("an rt_sigtimedwait that waits");
	return -EAGAIN;
}

long signals_send(int tid, int sig, const void *info)
{
	const int own = M.kt[M.current].tid;
	siginfo_t given = { .si_signo = sig, .si_code = tid ? SI_TKILL : SI_USER };
	int to = tid ? 0 : TO_PROCESS;

	if (sig && !is_number(sig))
		return -EINVAL;
	given.si_pid = given.si_uid = 1000;
	if (info) {
		memcpy(&given, info, sizeof(given));
		given.si_signo = sig;
		/* So that nobody may seem to be the kernel, or tgkill(); a process is known by its first thread. */
		if ((given.si_code >= 0 || given.si_code == SI_TKILL) && own != (tid ? tid : M.kt[0].tid))
			return -EPERM;
	}
	while (tid && to < M.kthreads && (M.kt[to].tid != tid || M.kt[to].state == KT_ENDED))
		to++;
	if (to == M.kthreads)
		return -ESRCH;
	if (sig)
		send(sig, to, &given);
	return 0;
}

/* There are no alternate stacks. */
long signals_stack(void *ret_old)
{
	const stack_t none = { .ss_flags = SS_DISABLE };

	if (ret_old)
		model_put(ret_old, &none, sizeof(none));
	return 0;
}
