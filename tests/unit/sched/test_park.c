/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>

#include <signal.h>
#include <ucontext.h>

#include "runtime/sched/cancel.h"
#include "runtime/sched/park.h"
#include "runtime/signal/signal.h"
#include "runtime_setup.h"

enum { CANCELED_BIT = 8, DISABLED_BIT = 1 };

/* ---- the word, without a scheduler --------------------------------------- */

Test(park, ticket_works_once)
{
	struct fz_fiber f = { .kind = FZ_KIND_FIBER };
	struct fz_ticket first = fz_wait_arm(&f, 0), second;

	cr_assert(fz_wake(first, FZ_WHY_DONE));
	cr_assert(!fz_wake(first, FZ_WHY_DONE));
	cr_assert(!fz_wake(first, FZ_WHY_TIMEOUT));
	fz_wait_disarm(&f);
	cr_assert(!fz_wake(first, FZ_WHY_DONE), "the wait is over");
	second = fz_wait_arm(&f, 0);
	cr_assert_neq(first.number, second.number);
	cr_assert(!fz_wake(first, FZ_WHY_DONE), "another wait");
	cr_assert_eq(GET(f.wait) & FZ_WAIT_STATE_MASK, FZ_WAIT_ARMED);
	cr_assert(fz_wake(second, FZ_WHY_DONE));
}

Test(park, flags_say_what_may_end_a_wait)
{
	static const struct {
		unsigned flags;
		bool signal, cancel;
	} cases[] = {
		{ 0, false, false },
		{ FZ_WAIT_SIGNAL, true, false },
		{ FZ_WAIT_CANCEL, false, true },
		{ FZ_WAIT_SIGNAL | FZ_WAIT_CANCEL, true, true },
	};

	for (size_t i = 0; i < 4; i++) {
		struct fz_fiber f = { .kind = FZ_KIND_FIBER };

		fz_wait_arm(&f, cases[i].flags);
		cr_assert_eq(fz_wake_any(&f, FZ_WHY_SIGNAL), cases[i].signal);
		fz_wait_disarm(&f);
		cr_assert(!fz_wake_any(&f, FZ_WHY_SIGNAL), "not waiting");
		fz_wait_arm(&f, cases[i].flags);
		cr_assert_eq(fz_wake_any(&f, FZ_WHY_CANCEL), cases[i].cancel);
		cr_assert(!fz_wake_any(&f, FZ_WHY_CANCEL), "once");
		fz_wait_disarm(&f);
	}
}

Test(park, number_survives_many_waits)
{
	struct fz_fiber f = { .kind = FZ_KIND_FIBER };
	uint64_t last = 0;

	for (unsigned i = 0; i < 1000000; i++) {
		struct fz_ticket t = fz_wait_arm(&f, FZ_WAIT_SIGNAL | FZ_WAIT_CANCEL);

		cr_assert_gt(t.number, last);
		last = t.number;
		fz_wait_disarm(&f);
	}
}

/* ---- N wakers race for one sleeper --------------------------------------- */

enum { WAKERS = 3 };

static struct {
	_Atomic(struct fz_fiber *) sleeper;
	_Atomic uint64_t number;		/* published ticket; ~0: the end */
	_Atomic unsigned won, lost;
	unsigned rounds;
} race;

static void *waker(void *arg)
{
	struct fz_fiber *self = fz_self();
	uint64_t last = 0;

	(void)arg;
	for (;;) {
		uint64_t number = GET(race.number);

		if (number == ~(uint64_t)0)
			break;
		if (number == last) {
			yield_fiber();
			continue;
		}
		last = number;
		fz_enter_runtime(self);
		if (fz_wake((struct fz_ticket){ GET(race.sleeper), number }, FZ_WHY_DONE))
			COUNT(race.won);
		else
			COUNT(race.lost);
		fz_leave_runtime(self);
	}
	return NULL;
}

/* Every round ends with exactly one success, by a waker or by the deadline. */
static void *sleep_and_count(void *arg)
{
	struct fz_fiber *self = fz_self();
	unsigned timeouts = 0;
	uint64_t seed = 11;

	(void)arg;
	SET(race.sleeper, self);
	for (unsigned i = 0; i < race.rounds; i++) {
		fz_nsec deadline = FZ_FOREVER;
		struct fz_ticket t;

		if (i % 2)
			deadline = now_ns() + random_next(&seed) % (20 * FZ_USEC);
		fz_enter_runtime(self);
		t = fz_wait_arm(self, 0);
		SET(race.number, t.number);
		switch (fz_park(self, deadline)) {
		case FZ_WHY_DONE: break;
		case FZ_WHY_TIMEOUT: timeouts++; break;
		default: timeouts += 1000000; break;
		}
		fz_leave_runtime(self);
		/* The winner counts after it has woken us. */
		while (GET(race.won) + timeouts < i + 1)
			yield_fiber();
		if (GET(race.won) + timeouts != i + 1)
			return (void *)1;
	}
	SET(race.number, ~(uint64_t)0);
	return NULL;
}

static void native_wakers(void *(*sleeper)(void *))
{
	pthread_t threads[WAKERS];
	void *failed;

	for (int i = 0; i < WAKERS; i++)
		threads[i] = native(waker, NULL);
	failed = sleeper(NULL);
	for (int i = 0; i < WAKERS; i++)
		pthread_join(threads[i], NULL);
	cr_assert_null(failed);
}

Test(park, native_sleeper_is_woken_exactly_once)
{
	setup_layout();
	race.rounds = 20000;
	native_wakers(sleep_and_count);
}

Test(park, fiber_sleeper_native_wakers)
{
	setup_start(2);
	race.rounds = 5000;
	native_wakers(sleep_and_count);
}

static void fiber_wakers(unsigned processors)
{
	struct fz_fiber *wakers[WAKERS], *sleeper;

	setup_start(processors);
	race.rounds = 20000;
	sleeper = spawn(sleep_and_count, NULL);
	for (int i = 0; i < WAKERS; i++)
		wakers[i] = spawn(waker, NULL);
	cr_assert_null(join(sleeper));
	for (int i = 0; i < WAKERS; i++)
		join(wakers[i]);
}

Test(park, fiber_sleeper_fiber_wakers_one_processor)
{
	fiber_wakers(1);
}

Test(park, fiber_sleeper_fiber_wakers_two_processors)
{
	fiber_wakers(2);
}

Test(park, fiber_sleeper_fiber_wakers_four_processors)
{
	fiber_wakers(4);
}

/* ---- handlers between what is said of a wait and the wait ---- */

static void sleeping_handler(int sig, void *info, void *ucontext)
{
	(void)sig, (void)info, (void)ucontext;
	fz_sleep(fz_self(), FZ_FOR_TIME, now_ns() + 1, 0);
}

Test(park, handler_that_waits_leaves_what_is_shown)
{
	const struct fz_action action = { .handler = sleeping_handler };
	struct fz_fiber *self = fz_self();
	siginfo_t info = { .si_signo = SIGUSR1 };
	ucontext_t uc = { .uc_flags = 0 };
	uint64_t mask;
	int word;

	setup_start(1);
	fz_signal_actions_lock(&mask);
	fz_signal_action_set(SIGUSR1, &action, false);
	fz_signal_actions_unlock(&mask);
	fz_waits_for(self, FZ_FOR_SEM, &word);
	fz_signal_call_handler(self, SIGUSR1, &info, &uc);
	fz_signal_load_mask(self->carrier, self->mask);
	cr_assert_eq(self->call.waits_for, FZ_FOR_SEM);
	cr_assert_eq(self->waits.object, &word);
}

/* ---- deadlines ----------------------------------------------------------- */

static void timeout_of(fz_nsec length)
{
	struct fz_fiber *self = fz_self();
	fz_nsec start = now_ns();
	enum fz_why why;

	fz_enter_runtime(self);
	fz_wait_arm(self, 0);
	why = fz_park(self, start + length);
	fz_leave_runtime(self);
	cr_assert_eq(why, FZ_WHY_TIMEOUT);
	cr_assert_geq(now_ns() - start, length);
}

static void timeouts(void)
{
	timeout_of(0);
	timeout_of(1);
	timeout_of(50 * FZ_USEC);
	timeout_of(20 * FZ_MSEC);
}

Test(park, native_deadline)
{
	setup_layout();
	timeouts();
}

Test(park, fiber_deadline)
{
	setup_start(1);
	timeouts();
}

/* A deadline that is long past still ends the wait, and not as something else. */
Test(park, deadline_in_the_past)
{
	struct fz_fiber *self = fz_self();
	enum fz_why why;

	setup_start(1);
	fz_enter_runtime(self);
	fz_wait_arm(self, 0);
	why = fz_park(self, 1);
	fz_leave_runtime(self);
	cr_assert_eq(why, FZ_WHY_TIMEOUT);
}

/* ---- requests that were there before the wait ---------------------------- */

Test(park, cancel_requested_before)
{
	struct fz_fiber *self = fz_self();
	enum fz_why why;

	setup_start(1);
	atomic_fetch_or(fz_tcb_cancelhandling(self->tcb), CANCELED_BIT);
	atomic_store(&self->cancel.sent, true);
	cr_assert(fz_cancel_requested(self));
	fz_enter_runtime(self);
	fz_wait_arm(self, FZ_WAIT_CANCEL);
	why = fz_park(self, FZ_FOREVER);
	fz_leave_runtime(self);
	cr_assert_eq(why, FZ_WHY_CANCEL);
	/* A wait that is no cancellation point does not care. */
	fz_enter_runtime(self);
	fz_wait_arm(self, FZ_WAIT_SIGNAL);
	why = fz_park(self, now_ns() + FZ_MSEC);
	fz_leave_runtime(self);
	cr_assert_eq(why, FZ_WHY_TIMEOUT);
	/* Nor does one with cancellation disabled. */
	atomic_fetch_or(fz_tcb_cancelhandling(self->tcb), DISABLED_BIT);
	cr_assert(!fz_cancel_requested(self));
	fz_enter_runtime(self);
	fz_wait_arm(self, FZ_WAIT_CANCEL);
	why = fz_park(self, now_ns() + FZ_MSEC);
	fz_leave_runtime(self);
	cr_assert_eq(why, FZ_WHY_TIMEOUT);
	atomic_store(fz_tcb_cancelhandling(self->tcb), 0);
}

Test(park, signal_pending_before)
{
	struct fz_fiber *self = fz_self();
	const uint64_t bit = (uint64_t)1 << 9;
	enum fz_why why[3];

	setup_start(1);
	self->mask = 0;
	fz_enter_runtime(self);
	atomic_fetch_or(&self->pending, bit);
	fz_wait_arm(self, FZ_WAIT_SIGNAL);
	why[0] = fz_park(self, FZ_FOREVER);
	fz_wait_arm(self, FZ_WAIT_CANCEL);
	why[1] = fz_park(self, now_ns() + FZ_MSEC);
	/* Blocked, it ends nothing. */
	self->mask = bit;
	fz_wait_arm(self, FZ_WAIT_SIGNAL);
	why[2] = fz_park(self, now_ns() + FZ_MSEC);
	atomic_fetch_and(&self->pending, ~bit);
	self->mask = 0;
	fz_leave_runtime(self);
	cr_assert_eq(why[0], FZ_WHY_SIGNAL);
	cr_assert_eq(why[1], FZ_WHY_TIMEOUT);
	cr_assert_eq(why[2], FZ_WHY_TIMEOUT);
}

/* ---- cancellation races with the wait ------------------------------------ */

static _Atomic unsigned armed_round, canceled_round;

static void *be_canceled(void *arg)
{
	struct fz_fiber *self = fz_self();
	unsigned rounds = (unsigned)(uintptr_t)arg;

	for (unsigned i = 1; i <= rounds; i++) {
		enum fz_why why;

		SET(armed_round, i);
		fz_enter_runtime(self);
		fz_wait_arm(self, FZ_WAIT_CANCEL);
		why = fz_park(self, FZ_FOREVER);
		fz_leave_runtime(self);
		if (why != FZ_WHY_CANCEL)
			return (void *)1;
		while (GET(canceled_round) != i)
			yield_fiber();
		atomic_fetch_and(fz_tcb_cancelhandling(self->tcb), ~CANCELED_BIT);
		SET(armed_round, 0);
	}
	return NULL;
}

Test(park, cancel_is_never_missed)
{
	enum { ROUNDS = 20000 };
	struct fz_fiber *self = fz_self(), *victim;

	setup_start(2);
	victim = spawn(be_canceled, (void *)ROUNDS);
	for (unsigned i = 1; i <= ROUNDS; i++) {
		while (GET(armed_round) != i)
			yield_fiber();
		atomic_fetch_or(fz_tcb_cancelhandling(victim->tcb), CANCELED_BIT);
		atomic_store(&victim->cancel.sent, true);
		fz_enter_runtime(self);
		fz_wake_any(victim, FZ_WHY_CANCEL);
		fz_leave_runtime(self);
		SET(canceled_round, i);
	}
	cr_assert_null(join(victim));
}
