/* SPDX-License-Identifier: MIT */
/*
 * tests/model/scenarios/handler.c - signals that the program handles or waits for: one thread takes each, once, and no later
 * than natively.  The calls are those of preload/signal; a native thread, which blocks all signals, stands for another process.
 */
#include "tests/model/scenario.h"

#include "arch/arch.h"
#include "runtime/base/host.h"
#include "runtime/base/time.h"
#include "runtime/sched/park.h"
#include "runtime/sched/sched.h"
#include "runtime/signal/signal_internal.h"
#include "runtime/sync/lot.h"

enum { SIG_A = 10, SIG_B = 12, SIG_QUEUED = 40, THREADS = 3 };

#define BOTH (fz_signal_bit(SIG_A) | fz_signal_bit(SIG_B))

static struct fz_fiber *_Atomic fibers[THREADS];
static _Atomic uint32_t handled, went_on;
/* How often thread i has handled SIG_A, SIG_B; its call that blocks both has returned. */
static _Atomic int handled_a[THREADS], handled_b[THREADS];
static _Atomic bool blocked[THREADS];

static int number_of(const struct fz_fiber *f)
{
	for (int i = 0; i < THREADS; i++)
		if (fibers[i] == f)
			return i;
	return -1;
}

static uint64_t kernel_mask(void)
{
	uint64_t mask;

	fz_sys_sigmask(HOW_SETMASK, NULL, &mask);
	return mask;
}

/* In the program's code the kernel's mask is the thread's. */
static void check_mask(const struct fz_fiber *self, uint64_t mask)
{
	MODEL_CHECK(self->mask == mask, "the thread's mask is %lx, not %lx", (unsigned long)self->mask, (unsigned long)mask);
	MODEL_CHECK(kernel_mask() == mask, "the kernel's mask is %lx, not %lx", (unsigned long)kernel_mask(),
		    (unsigned long)mask);
}

static void on_signal(int sig, void *info, void *ucontext)
{
	const struct fz_siginfo_head *head = info;
	const struct fz_fiber *self = fz_self();
	const int i = number_of(self);

	(void)ucontext;
	MODEL_CHECK(i >= 0, "signal %d is handled by a thread that blocks it", sig);
	MODEL_CHECK(!blocked[i] && !(self->sig.mask_counted & fz_signal_bit(sig)), "signal %d is handled where it is blocked", sig);
	MODEL_CHECK(!self->in_runtime, "a handler runs inside the runtime");
	MODEL_CHECK(head->signo == sig, "the handler of %d is told signal %d", sig, head->signo);
	check_mask(self, BOTH);
	(sig == SIG_A ? handled_a : handled_b)[i]++;
	atomic_fetch_add_explicit(&handled, 1, memory_order_acq_rel);
	fz_lot_wake(&handled, UINT32_MAX);
}

/* sigaction(): each handler blocks both signals. */
static void install(int sig, uint64_t flags)
{
	const struct fz_action action = { .handler = on_signal, .flags = flags, .mask = BOTH };
	const struct kernel_sigaction ours = { .handler = fz_host.signal_handler, .flags = flags | FLAG_SIGINFO,
					       .mask = BOTH };
	uint64_t mask;

	fz_signal_actions_lock(&mask);
	MODEL_CHECK(kernel_action(sig, &ours, NULL) == 0, "no handler");
	fz_signal_action_set(sig, &action, false);
	fz_signal_actions_unlock(&mask);
}

/* The main thread, and those that it makes. */
static void block(uint64_t set)
{
	fz_signal_set_mask(fz_self(), HOW_BLOCK, &set, NULL);
}

static void unblock(uint64_t set)
{
	fz_signal_set_mask(fz_self(), HOW_UNBLOCK, &set, NULL);
}

/* kill(), by another process. */
static void send_to_process(int sig)
{
	MODEL_CHECK(fz_syscall2(__NR_kill, fz_sys_getpid(), sig) == 0, "signal %d is not sent", sig);
}

/* pthread_kill(), of another thread. */
static void send_to_thread(int i, int sig)
{
	const struct fz_siginfo info = fz_signal_info(sig, CODE_TKILL, 0);

	MODEL_CHECK(fz_signal_send(fibers[i], sig, &info, false) == 0, "signal %d is not sent", sig);
}

static void await_handled(uint32_t count)
{
	uint32_t now;

	while ((now = atomic_load_explicit(&handled, memory_order_acquire)) < count)
		fz_lot_wait(&handled, now, FZ_FOREVER, FZ_WAIT_SIGNAL);
}

/* Each signal has been handled so often, and none is left. */
static void check_handled(int a, int b)
{
	int sum_a = 0, sum_b = 0;

	for (int i = 0; i < THREADS; i++) {
		sum_a += handled_a[i];
		sum_b += handled_b[i];
	}
	MODEL_CHECK(sum_a == a && sum_b == b, "handled %d and %d times, not %d and %d", sum_a, sum_b, a, b);
	MODEL_CHECK(!fz_signal_process_pending(), "signals %lx are left", (unsigned long)fz_signal_process_pending());
}

static void once(void)
{
	check_handled(1, 0);
}

static void both_once(void)
{
	check_handled(1, 1);
}

static void block_one(void)
{
	install(SIG_A, FLAG_RESTART);
	block(fz_signal_bit(SIG_A));
}

static void block_both(void)
{
	block_one();
	install(SIG_B, 0);
	block(fz_signal_bit(SIG_B));
}

/* ---- to the process: one of the threads that do not block it --------------- */

/* The second signal comes while a handler blocks it, or later; the first fiber alone accepts it. */
static void take_or_send_to_process(int i)
{
	const uint64_t accepted = i ? fz_signal_bit(SIG_A) : BOTH;
	struct fz_fiber *self = fz_self();

	if (i == 2) {
		send_to_process(SIG_A);
		await(&handled, 1);
		await(&went_on, 1);
		send_to_process(SIG_B);
		return;
	}
	fibers[i] = self;
	unblock(accepted);
	if (!i)
		announce(&went_on);
	await_handled(2);
	check_mask(self, BOTH & ~accepted);
}

SCENARIO(signal_process) = { .name = "signal_process",
	.what = "two signals are sent to the process, one after the other; 2 fibers begin to accept them",
	.processors = 2, .fibers = 2, .natives = 1, .prepare = block_both, .thread = take_or_send_to_process,
	.finish = both_once };

/* ---- pending when it is unblocked: handled before that call returns -------- */

static _Atomic uint32_t sent;

static void unblock_or_send(int i)
{
	struct fz_fiber *self = fz_self();

	if (i == 1) {
		await(&went_on, 1);
		send_to_thread(0, SIG_B);
		announce(&sent);
	} else if (i == 2) {
		send_to_process(SIG_A);
		announce(&sent);
	} else {
		fibers[0] = self;
		unblock(BOTH);
		block(BOTH);
		blocked[0] = true;
		announce(&went_on);
		await(&sent, 2);
		check_mask(self, BOTH);
		blocked[0] = false;
		/* One after the other: a handler that ends looks for the other one, too. */
		unblock(fz_signal_bit(SIG_A));
		MODEL_CHECK(handled_a[0] == 1, "unblocked, the signal of the process is handled %d times", handled_a[0]);
		unblock(fz_signal_bit(SIG_B));
		MODEL_CHECK(handled_b[0] == 1, "unblocked, the signal of the thread is handled %d times", handled_b[0]);
		check_mask(self, 0);
	}
}

SCENARIO(signal_mask) = { .name = "signal_mask",
	.what = "a fiber blocks and unblocks a signal of its own and one of the process",
	.processors = 2, .fibers = 2, .natives = 1, .prepare = block_both, .thread = unblock_or_send, .finish = both_once };

/* ---- to a thread: parked, about to wake, in the program's code ------------- */

/* The senders are native threads: the model knows no CPU-bound fiber, behind which others may wait. */
static void compute_or_send(int i)
{
	struct fz_fiber *self = fz_self();

	if (i == 0) {
		fibers[0] = self;
		unblock(BOTH);
		announce(&went_on);
		await(&sent, 1);
		while (handled < 2)
			fz_cpu_relax();
		check_mask(self, 0);
	} else if (i == 1) {
		await(&went_on, 1);
		send_to_thread(0, SIG_A);
		send_to_thread(0, SIG_B);
	} else {
		await(&went_on, 1);
		announce(&sent);
	}
}

SCENARIO(signal_thread) = { .name = "signal_thread",
	.what = "two signals are sent to a fiber that is parked, about to wake, or computes",
	.processors = 1, .fibers = 1, .natives = 2, .prepare = block_both, .thread = compute_or_send, .finish = both_once };

/* ---- sigwait: each is taken once, and no handler runs ---------------------- */

static _Atomic int taken, taken_queued;

static void wait_for_one(struct fz_fiber *self)
{
	const uint64_t set = fz_signal_bit(SIG_A) | fz_signal_bit(SIG_QUEUED);
	struct fz_siginfo info;
	const int sig = fz_signal_wait(self, set, &info, FZ_FOREVER);

	MODEL_CHECK(sig == SIG_A || sig == SIG_QUEUED, "sigwait returns %d", sig);
	MODEL_CHECK(((const struct fz_siginfo_head *)&info)->signo == sig, "the siginfo is another's");
	*(sig == SIG_A ? &taken : &taken_queued) += 1;
	check_mask(self, set);
}

/* It has accepted both before, on whichever kernel threads: none of these may take them any more. */
static void wait_or_send(int i)
{
	const uint64_t set = fz_signal_bit(SIG_A) | fz_signal_bit(SIG_QUEUED);

	if (i == 0) {
		fibers[0] = fz_self();
		unblock(set);
		await(&sent, 1);
		block(set);
		blocked[0] = true;
		announce(&went_on);
		wait_for_one(fz_self());
		wait_for_one(fz_self());
	} else if (i == 1) {
		announce(&sent);
		await(&went_on, 1);
		send_to_thread(0, SIG_A);
	} else {
		await(&went_on, 1);
		send_to_process(SIG_QUEUED);
	}
}

/* One has a handler, which nobody may run; the other's default action would end the process. */
static void block_for_sigwait(void)
{
	block_one();
	block(fz_signal_bit(SIG_QUEUED));
}

static void each_taken(void)
{
	MODEL_CHECK(taken == 1 && taken_queued == 1, "taken %d and %d times", taken, taken_queued);
	check_handled(0, 0);
}

SCENARIO(signal_sigwait) = { .name = "signal_sigwait",
	.what = "a fiber waits twice, for a signal of its own and one of the process",
	.processors = 2, .fibers = 2, .natives = 1, .prepare = block_for_sigwait, .thread = wait_or_send,
	.finish = each_taken };

/* ---- to oneself: handled when the call returns ----------------------------- */

static void send_to_oneself(int i)
{
	struct fz_fiber *self = fz_self();
	const uint64_t bit = fz_signal_bit(i ? SIG_B : SIG_A);
	const int sig = i ? SIG_B : SIG_A;
	const struct fz_siginfo info = fz_signal_info(sig, CODE_USER, 0);
	_Atomic int *count = i ? &handled_b[1] : &handled_a[0];
	struct fz_sending sending;

	fibers[i] = self;
	unblock(bit);
	/* raise() */
	MODEL_CHECK(fz_signal_send_here(self, sig, &info) == 0 && *count == 1, "raised, handled %d times", *count);
	/* kill(getpid(), sig) */
	MODEL_CHECK(fz_signal_is_mine(self, sig), "another thread's signal");
	MODEL_CHECK(fz_signal_send_to_process(sig, &info) && *count == 2, "killed, handled %d times", *count);
	/* kill(0, sig) */
	sending = fz_signal_sending(self, sig);
	send_to_process(sig);
	fz_signal_sent(self, &sending);
	MODEL_CHECK(*count == 3, "sent by the kernel, handled %d times", *count);
	block(bit);
	send_to_thread(i, sig);
	MODEL_CHECK(*count == 3, "blocked, handled");
	unblock(bit);
	MODEL_CHECK(*count == 4, "unblocked, handled %d times", *count);
}

static void four_each(void)
{
	check_handled(4, 4);
}

SCENARIO(signal_own) = { .name = "signal_own", .what = "2 fibers send signals to themselves, in each way",
	.processors = 2, .fibers = 2, .prepare = block_both, .thread = send_to_oneself, .finish = four_each };

/* ---- sent before a wake-up: handled before the wait returns ---------------- */

static struct fz_ticket ticket;

static void wait_or_send_first(int i)
{
	struct fz_fiber *self = fz_self();
	struct fz_ticket own;
	enum fz_why why;

	if (i == 2) {
		await(&went_on, 1);
		send_to_process(SIG_A);
		fz_enter_runtime(self);
		fz_wake_done(ticket);
		fz_leave_runtime(self);
	} else if (i == 1) {
		fz_sched_give_way(self);
	} else {
		fibers[0] = self;
		unblock(fz_signal_bit(SIG_A));
		fz_enter_runtime(self);
		/* A struct that a call returns into a static is stored without a hook. */
		own = fz_wait_arm(self, 0);
		ticket = own;
		announce(&went_on);
		why = fz_park(self, FZ_FOREVER);
		fz_leave_after(self, why);
		MODEL_CHECK(handled_a[0] == 1, "woken after the signal, which is handled %d times", handled_a[0]);
		check_mask(self, 0);
	}
}

SCENARIO(signal_order) = { .name = "signal_order", .what = "another process sends a signal, and then ends a fiber's wait",
	.processors = 2, .fibers = 2, .natives = 1, .prepare = block_one, .thread = wait_or_send_first, .finish = once };

/* ---- the first is over: the same number again ------------------------------ */

/* Fibers 0 and 1 accept some signals, of which SIG_A is sent first, and a second one once that is handled. */
static void take_two_or_send(int i, uint64_t accepted, int second)
{
	if (i == 2) {
		send_to_process(SIG_A);
		await(&handled, 1);
		send_to_process(second);
		return;
	}
	fibers[i] = fz_self();
	unblock(accepted);
	await_handled(2);
}

static void take_again_or_send(int i)
{
	take_two_or_send(i, fz_signal_bit(SIG_A), SIG_A);
}

static void twice(void)
{
	check_handled(2, 0);
}

SCENARIO(signal_again) = { .name = "signal_again", .what = "a signal is sent to the process, and again once it has been handled",
	.processors = 2, .fibers = 2, .natives = 1, .prepare = block_one, .thread = take_again_or_send, .finish = twice };

/* ---- two that wait for the same signals ------------------------------------ */

static void one_of_two_waits(int i)
{
	if (i < 2) {
		wait_for_one(fz_self());
		return;
	}
	send_to_process(SIG_QUEUED);
	send_to_process(SIG_A);
}

SCENARIO(signal_waiters) = { .name = "signal_waiters", .what = "2 fibers wait for 2 signals that are sent to the process",
	.processors = 2, .fibers = 2, .natives = 1, .prepare = block_for_sigwait, .thread = one_of_two_waits,
	.finish = each_taken };

/* ---- unblocked while the monitor routes it --------------------------------- */

static void unblock_or_route(int i)
{
	take_two_or_send(i, i ? fz_signal_bit(SIG_A) : BOTH, SIG_B);
}

SCENARIO(signal_routed) = { .name = "signal_routed", .what = "as signal_process, but the second signal may come before it is unblocked",
	.processors = 2, .fibers = 2, .natives = 1, .prepare = block_both, .thread = unblock_or_route, .finish = both_once };
