/* SPDX-License-Identifier: MIT */
/*
 * runtime/signal/action.c - what the program passed to sigaction, and the substituted signals:
 * signals that the program does not handle, but for which the kernel has our handler.
 */
#include "runtime/base/host.h"
#include "runtime/base/lock.h"
#include "runtime/sched/monitor.h"
#include "runtime/sched/sched.h"
#include "runtime/signal/monitor_mask.h"
#include "runtime/signal/signal_internal.h"

static struct {
	/* Written under lock with all signals blocked; see fz_signal_action_get(). */
	struct fz_lock lock;
	struct fz_action actions[FZ_SIGNALS + 1];
	_Atomic uint32_t version[FZ_SIGNALS + 1];

	/*
	 * substituted: the program does not handle the signal, but the kernel has our handler.
	 * ignored: the program ignores the signal, substituted or not.
	 */
	_Atomic uint64_t with_handler, substituted;
	uint64_t ignored;
	_Atomic uint64_t hidden;	/* see fz_signal_before_spawn() */
	uint32_t spawning;
	_Atomic uint32_t in_system;	/* calls of system() */
} table = { .lock = FZ_LOCK(FZ_RANK_ACTIONS) };

struct fz_action fz_signal_action_get(int sig)
{
	struct fz_action a;
	uint32_t before;

	/*
	 * A sequence lock; acquire and fence pair with the release in fz_signal_action_set().
	 */
	do {
		before = atomic_load_explicit(&table.version[sig], memory_order_acquire);
		a = table.actions[sig];
		atomic_thread_fence(memory_order_acquire);
	} while (before & 1 || before != atomic_load_explicit(&table.version[sig],
							      memory_order_relaxed));
	return a;
}

uint64_t fz_signal_with_handler(void)
{
	/* relaxed: see fz_signal_action_set(). */
	return atomic_load_explicit(&table.with_handler, memory_order_relaxed);
}

void fz_signal_actions_lock(uint64_t *ret_mask)
{
	uint64_t all = ~(uint64_t)0;

	/*
	 * Block all signals: a handler on this thread that reads the entry being written would
	 * wait for ever.
	 */
	fz_sys_sigmask(HOW_SETMASK, &all, ret_mask);
	fz_lock_acquire(&table.lock);
}

void fz_signal_actions_unlock(const uint64_t *mask)
{
	fz_lock_release(&table.lock);
	fz_sys_sigmask(HOW_SETMASK, mask, NULL);
}

void fz_signal_action_set(int sig, const struct fz_action *action, bool substituted)
{
	const uint64_t bit = fz_signal_bit(sig);

	atomic_fetch_add_explicit(&table.version[sig], 1, memory_order_acq_rel);
	table.actions[sig] = *action;
	atomic_fetch_add_explicit(&table.version[sig], 1, memory_order_release);
	/* relaxed, all: a thread for which the order matters has learnt of the change otherwise. */
	if ((uintptr_t)action->handler > 1) {
		atomic_fetch_or_explicit(&table.with_handler, bit, memory_order_relaxed);
		atomic_fetch_and_explicit(&table.substituted, ~bit, memory_order_relaxed);
		return;
	}
	atomic_fetch_and_explicit(&table.with_handler, ~bit, memory_order_relaxed);
	if (substituted)
		atomic_fetch_or_explicit(&table.substituted, bit, memory_order_relaxed);
	else
		atomic_fetch_and_explicit(&table.substituted, ~bit, memory_order_relaxed);
	if ((uintptr_t)action->handler == 1)
		table.ignored |= bit;
	else
		table.ignored &= ~bit;
}

/* ---- default actions ---------------------------------------------------- */

#define IGNORED_BY_DEFAULT                                                                                  \
	(fz_signal_bit(SIG_CHLD) | fz_signal_bit(SIG_CONT) | fz_signal_bit(SIG_URG) | fz_signal_bit(SIG_WINCH))

bool fz_signal_ignored_by_default(int sig)
{
	return IGNORED_BY_DEFAULT & fz_signal_bit(sig);
}

bool fz_signal_ends_process(int sig)
{
	return !fz_signal_ignored_by_default(sig) && sig != SIG_STOP && sig != SIG_TSTP &&
	       sig != SIG_TTIN && sig != SIG_TTOU;
}

void fz_signal_tell_end(int sig)
{
	if (fz_host.last_words && fz_signal_ends_process(sig))
		fz_host.last_words();
}

void fz_signal_default(int sig)
{
	struct kernel_sigaction dfl = { .handler = NULL }, old;
	uint64_t bit = fz_signal_bit(sig), mask;

	if (fz_signal_ignored_by_default(sig))
		return;
	if (sig == SIG_KILL || sig == SIG_STOP) {
		fz_syscall2(__NR_kill, fz_sys_getpid(), sig);
		return;
	}
	fz_signal_tell_end(sig);
	kernel_action(sig, &dfl, &old);
	fz_sys_sigmask(HOW_UNBLOCK, &bit, &mask);
	fz_syscall3(__NR_tgkill, fz_sys_getpid(), fz_sys_gettid(), sig);
	/* Reached after a stop signal, once the process has been continued. */
	fz_sys_sigmask(HOW_SETMASK, &mask, NULL);
	kernel_action(sig, &old, NULL);
}

/* ---- substituted signals -------------------------------------------------- */

bool fz_signal_substituted(int sig)
{
	/* relaxed: the caller holds the lock, or handles a signal that arrived through our handler. */
	return atomic_load_explicit(&table.substituted, memory_order_relaxed) &
	       fz_signal_bit(sig);
}

/* Our action for the kernel. Copied from SIGSETXID's, for libc's sa_restorer. */
static struct kernel_sigaction our_action(int sig)
{
	struct kernel_sigaction a;

	kernel_action(SIG_SETXID, NULL, &a);
	a.handler = fz_host.signal_handler;
	a.flags |= FLAG_SIGINFO | FLAG_RESTART |
		   (table.actions[sig].flags & (FLAG_NOCLDSTOP | FLAG_NOCLDWAIT));
	/* The program ignores it: NOCLDWAIT leaves no zombies.  The kernel still sends it: see fz_signal_arrived(). */
	if (sig == SIG_CHLD && (uintptr_t)table.actions[sig].handler == 1)
		a.flags |= FLAG_NOCLDSTOP | FLAG_NOCLDWAIT;
	/*
	 * Two signals at once are delivered lowest number first, not one on top of the other.
	 */
	a.mask = FZ_SIGNALS_ALL;
	return a;
}

struct fz_action fz_signal_action_once(int sig)
{
	struct kernel_sigaction kernel;
	struct fz_action a, after;
	uint64_t mask;

	fz_signal_actions_lock(&mask);
	a = after = table.actions[sig];
	if ((uintptr_t)a.handler > 1 && a.flags & FLAG_RESETHAND) {
		after.handler = NULL;
		fz_signal_action_set(sig, &after, fz_signal_waited_for() & fz_signal_bit(sig));
		if (fz_signal_substituted(sig)) {
			kernel = our_action(sig);
			kernel_action(sig, &kernel, NULL);
		} else if (kernel_action(sig, NULL, &kernel) == 0) {
			kernel.handler = NULL;
			kernel.flags = (kernel.flags & ~(unsigned long)FLAG_SIGINFO) | a.flags;
			kernel_action(sig, &kernel, NULL);
		}
	}
	fz_signal_actions_unlock(&mask);
	return a;
}

void fz_signal_substitute(uint64_t set)
{
	uint64_t mask;

	set &= ~atomic_load_explicit(&table.substituted, memory_order_relaxed);
	if (!set)
		return;
	fz_signal_actions_lock(&mask);
	for (; set; set &= set - 1) {
		int sig = __builtin_ctzll(set) + 1;
		const uint64_t bit = fz_signal_bit(sig);
		struct kernel_sigaction ours, old;

		if ((uintptr_t)table.actions[sig].handler > 1 || kernel_action(sig, NULL, &old) != 0)
			continue;
		/* The program may have inherited the ignored signal; then no sigaction call told us. */
		if ((uintptr_t)old.handler == 1)
			table.ignored |= bit;
		else
			table.ignored &= ~bit;
		if ((uintptr_t)old.handler <= 1)
			table.actions[sig].handler = old.handler;
		/* Set before the kernel can call our handler for the signal. */
		atomic_fetch_or_explicit(&table.substituted, bit, memory_order_relaxed);
		/*
		 * Another thread is making a process that inherits the ignored signal:
		 * fz_signal_after_spawn() installs our handler.
		 */
		if (table.spawning && table.ignored & bit) {
			atomic_fetch_or_explicit(&table.hidden, bit, memory_order_relaxed);
			fz_monitor_poke();
			continue;
		}
		ours = our_action(sig);
		if (kernel_action(sig, &ours, NULL))
			atomic_fetch_and_explicit(&table.substituted, ~bit, memory_order_relaxed);
	}
	fz_signal_actions_unlock(&mask);
}

/* Install the program's own action again. Lock held. */
static void restore_one(int sig)
{
	struct kernel_sigaction theirs = {
		.handler = table.actions[sig].handler,
		.flags = table.actions[sig].flags,
	};

	kernel_action(sig, &theirs, NULL);
	atomic_fetch_and_explicit(&table.substituted, ~fz_signal_bit(sig),
				  memory_order_relaxed);
}

/*
 * The signals that stay substituted although no fiber waits for them.  All threads block them, so
 * nobody can see the difference; and if the program ignores them, to give its action back would
 * make the kernel drop those that are pending.  But an ignored SIGCHLD must not become pending.
 */
static uint64_t kept_substituted(void)
{
	const uint64_t kept = fz_signal_others_exist() ? 0 : fz_signal_blocked_by_all();

	return table.ignored & fz_signal_bit(SIG_CHLD) ? kept & ~fz_signal_bit(SIG_CHLD) : kept;
}

void fz_signal_restore(uint64_t set)
{
	uint64_t mask;

	set &= atomic_load_explicit(&table.substituted, memory_order_relaxed);
	/*
	 * Leave signals alone whose default action ends or stops the process: our handler does
	 * that as well, and nobody can see the difference.
	 */
	set &= table.ignored | IGNORED_BY_DEFAULT;
	if (FZ_LIKELY(!set))
		return;
	set &= ~kept_substituted();
	if (!set)
		return;
	fz_signal_actions_lock(&mask);
	/* Another thread may have begun to wait meanwhile. */
	set &= atomic_load_explicit(&table.substituted, memory_order_relaxed) & ~fz_signal_waited_for();
	for (; set; set &= set - 1)
		restore_one(__builtin_ctzll(set) + 1);
	fz_signal_actions_unlock(&mask);
}

uint64_t fz_signals_without_effect(void)
{
	struct kernel_sigaction action;
	uint64_t set = 0;

	for (uint64_t rest = IGNORED_BY_DEFAULT; rest; rest &= rest - 1)
		/* SIG_DFL or SIG_IGN. */
		if (!kernel_action(__builtin_ctzll(rest) + 1, NULL, &action) && (uintptr_t)action.handler <= 1)
			set |= rest & -rest;
	return set;
}

/* The signals that libc ignores in system().  It gives them back the action that it found. */
#define IGNORED_BY_SYSTEM (fz_signal_bit(SIG_INT) | fz_signal_bit(SIG_QUIT))

uint64_t fz_signals_hidden(void)
{
	/* relaxed, both: fz_monitor_update_mask() and fz_monitor_poke() order it. */
	return atomic_load_explicit(&table.hidden, memory_order_relaxed) |
	       (FZ_UNLIKELY(atomic_load_explicit(&table.in_system, memory_order_relaxed)) ? IGNORED_BY_SYSTEM : 0);
}

static uint64_t hidden(void)
{
	return atomic_load_explicit(&table.hidden, memory_order_relaxed);
}

static void set_hidden(uint64_t set)
{
	atomic_store_explicit(&table.hidden, set, memory_order_relaxed);
}

static uint64_t ignored_and_substituted(void)
{
	return table.ignored & atomic_load_explicit(&table.substituted, memory_order_relaxed);
}

static void ignore_in_kernel(uint64_t set)
{
	const struct kernel_sigaction ign = { .handler = (void *)(uintptr_t)1 };
	struct kernel_sigaction now;

	for (; set; set &= set - 1) {
		const int sig = __builtin_ctzll(set) + 1;

		/* To ignore a signal again would drop what is pending of it. */
		if (kernel_action(sig, NULL, &now) == 0 && now.handler != ign.handler)
			kernel_action(sig, &ign, NULL);
	}
}

bool fz_signal_before_spawn(void)
{
	struct fz_fiber *self = fz_self();
	uint64_t mask, set;

	/* acquire: pairs with fz_sched_start(); before that no signal is substituted. */
	if (!atomic_load_explicit(&fz_sched.started, memory_order_acquire))
		return false;
	fz_signal_actions_lock(&mask);
	/* Count the spawn even if no signal is substituted so far: another thread may be about to substitute one. */
	if (table.spawning++ == 0)
		set_hidden(ignored_and_substituted());
	set = hidden();
	fz_signal_actions_unlock(&mask);
	if (FZ_LIKELY(!set))
		return true;
	fz_enter_runtime(self);
	/* First the monitor must block these signals: the kernel drops an ignored signal that a thread accepts. */
	fz_monitor_follow_mask();
	fz_signal_pending_keep(set);
	fz_signal_actions_lock(&mask);
	ignore_in_kernel(hidden() & ignored_and_substituted());
	fz_signal_actions_unlock(&mask);
	fz_leave_runtime(self);
	return true;
}

/* Put our handler in front again.  Lock held. */
static void reinstall(uint64_t set)
{
	set &= atomic_load_explicit(&table.substituted, memory_order_relaxed);
	for (; set; set &= set - 1) {
		const int sig = __builtin_ctzll(set) + 1;
		const struct kernel_sigaction ours = our_action(sig);

		kernel_action(sig, &ours, NULL);
	}
}

void fz_signal_system_begins(void)
{
	struct fz_fiber *self = fz_self();

	/* Learn the program's actions before libc ignores these two signals; if a fiber waits, libc finds our handler. */
	fz_signal_substitute(IGNORED_BY_SYSTEM);
	fz_enter_runtime(self);
	fz_signal_restore(IGNORED_BY_SYSTEM);
	fz_leave_runtime(self);
	/* relaxed: as in fz_signals_hidden(). */
	atomic_fetch_add_explicit(&table.in_system, 1, memory_order_relaxed);
	if (fz_signal_waited_for() & IGNORED_BY_SYSTEM)
		fz_monitor_update_mask();
}

void fz_signal_system_ends(void)
{
	uint64_t mask;

	fz_signal_actions_lock(&mask);
	atomic_fetch_sub_explicit(&table.in_system, 1, memory_order_relaxed);
	reinstall(IGNORED_BY_SYSTEM & ~fz_signals_hidden());
	fz_signal_actions_unlock(&mask);
	if (fz_signal_waited_for() & IGNORED_BY_SYSTEM)
		fz_monitor_poke();
}

void fz_signal_after_spawn(bool began)
{
	bool shows = false;
	uint64_t mask;

	if (!began)
		return;
	fz_signal_actions_lock(&mask);
	if (table.spawning && --table.spawning == 0) {
		shows = hidden();
		reinstall(hidden());
		set_hidden(0);
	}
	fz_signal_actions_unlock(&mask);
	if (FZ_UNLIKELY(shows))
		fz_monitor_poke();
}

void fz_signal_actions_after_fork(void)
{
	uint64_t set = atomic_load_explicit(&table.substituted, memory_order_relaxed);

	fz_lock_init(&table.lock, FZ_RANK_ACTIONS);
	table.spawning = 0;
	set_hidden(0);
	atomic_store_explicit(&table.in_system, 0, memory_order_relaxed);
	/*
	 * A thread that does not exist here may have been writing an entry when the parent
	 * forked: make its version even.
	 */
	for (int sig = 1; sig <= FZ_SIGNALS; sig++)
		if (atomic_load_explicit(&table.version[sig], memory_order_relaxed) & 1)
			atomic_fetch_add_explicit(&table.version[sig], 1, memory_order_relaxed);
	for (; set; set &= set - 1)
		restore_one(__builtin_ctzll(set) + 1);
}
