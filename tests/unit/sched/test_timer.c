/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>

#include "runtime/base/time.h"
#include "runtime/sched/timer.h"
#include "runtime/sync/cond.h"
#include "runtime_setup.h"

/*
 * Sleepers without a stack: their waits are armed, so that expiry fires them and
 * does nothing else.
 */
struct sleeper {
	struct fz_fiber fiber;
	struct fz_ticket ticket;
	fz_nsec deadline;
	bool queued;
};

static struct fz_processor *new_processor(void)
{
	struct fz_processor *p = aligned_alloc(4096, FZ_ROUND_UP(sizeof(*p), 4096));

	__builtin_memset(p, 0, sizeof(*p));
	fz_timers_init(&p->timers);
	return p;
}

static struct sleeper *new_sleepers(size_t n)
{
	struct sleeper *s = calloc(n, sizeof(*s));

	for (size_t i = 0; i < n; i++)
		s[i].fiber.kind = FZ_KIND_FIBER;
	return s;
}

static void go_to_sleep(struct fz_processor *p, struct sleeper *s, fz_nsec deadline)
{
	s->ticket = fz_wait_arm(&s->fiber, 0);
	s->deadline = deadline;
	s->queued = true;
	cr_assert(fz_timer_add(p, &s->fiber, deadline, s->ticket.number));
}

static bool has_fired(struct sleeper *s)
{
	return (GET(s->fiber.wait) & FZ_WAIT_STATE_MASK) == FZ_WAIT_FIRED;
}

static enum fz_why why(struct sleeper *s)
{
	return (GET(s->fiber.wait) & FZ_WAIT_WHY_MASK) >> FZ_WAIT_WHY_SHIFT;
}

Test(timer, empty_heap_never_expires)
{
	struct fz_processor *p = new_processor();

	cr_assert_eq(fz_timers_earliest(&p->timers), FZ_FOREVER);
	cr_assert_eq(fz_timers_expire(&p->timers, FZ_FOREVER - 1), 0);
}

Test(timer, expires_in_order_and_never_early)
{
	enum { N = 5000 };
	struct fz_processor *p = new_processor();
	struct sleeper *s = new_sleepers(N);
	uint64_t seed = 42;
	uint32_t expired = 0;

	for (size_t i = 0; i < N; i++)
		/* Few different values: many equal deadlines. */
		go_to_sleep(p, &s[i], 1000 + random_next(&seed) % 700);
	for (fz_nsec now = 0; now < 2000; now++) {
		fz_nsec earliest = FZ_FOREVER;

		expired += fz_timers_expire(&p->timers, now);
		for (size_t i = 0; i < N; i++) {
			cr_assert_eq(has_fired(&s[i]), s[i].deadline <= now);
			if (s[i].deadline > now && s[i].deadline < earliest)
				earliest = s[i].deadline;
		}
		cr_assert_eq(fz_timers_earliest(&p->timers), earliest);
	}
	cr_assert_eq(expired, N);
	for (size_t i = 0; i < N; i++)
		cr_assert_eq(why(&s[i]), FZ_WHY_TIMEOUT);
}

/* Against the obvious model: an array that is searched. */
Test(timer, random_insertion_and_removal)
{
	enum { N = 400, STEPS = 60000 };
	struct fz_processor *p = new_processor();
	struct sleeper *s = new_sleepers(N);
	uint64_t seed = 7;
	fz_nsec now = 0;

	for (unsigned step = 0; step < STEPS; step++) {
		struct sleeper *one = &s[random_next(&seed) % N];
		fz_nsec earliest = FZ_FOREVER;
		uint32_t used = 0;

		if (!one->queued) {
			go_to_sleep(p, one, now + 1 + random_next(&seed) % 500);
		} else if (random_next(&seed) % 3) {
			fz_timer_remove(&one->fiber);
			/* Idempotent. */
			fz_timer_remove(&one->fiber);
			cr_assert(!has_fired(one));
			fz_wait_disarm(&one->fiber);
			one->queued = false;
		} else {
			now += random_next(&seed) % 4;
			fz_timers_expire(&p->timers, now);
		}
		for (size_t i = 0; i < N; i++) {
			if (!s[i].queued)
				continue;
			cr_assert_eq(has_fired(&s[i]), s[i].deadline <= now,
				     "step %u, now %lu, deadline %lu", step, now,
				     s[i].deadline);
			if (has_fired(&s[i])) {
				fz_timer_remove(&s[i].fiber);
				fz_wait_disarm(&s[i].fiber);
				s[i].queued = false;
				continue;
			}
			used++;
			if (s[i].deadline < earliest)
				earliest = s[i].deadline;
		}
		cr_assert_eq(fz_timers_earliest(&p->timers), earliest);
		cr_assert_eq(p->timers.used, used);
	}
}

Test(timer, heap_grows)
{
	enum { N = 50000 };
	struct fz_processor *p = new_processor();
	struct sleeper *s = new_sleepers(N);

	for (size_t i = 0; i < N; i++)
		go_to_sleep(p, &s[i], N - i);
	cr_assert_eq(fz_timers_earliest(&p->timers), 1);
	cr_assert_eq(fz_timers_expire(&p->timers, N / 2), N / 2);
	cr_assert_eq(fz_timers_earliest(&p->timers), N / 2 + 1);
	for (size_t i = 0; i < N; i++)
		cr_assert_eq(has_fired(&s[i]), s[i].deadline <= N / 2);
	cr_assert_eq(fz_timers_expire(&p->timers, N), N - N / 2);
	cr_assert_eq(fz_timers_earliest(&p->timers), FZ_FOREVER);
}

/* What was woken by something else before its deadline is not woken again. */
Test(timer, late_expiry_of_a_finished_wait_does_nothing)
{
	struct fz_processor *p = new_processor();
	struct sleeper *s = new_sleepers(1);
	struct fz_ticket next;

	go_to_sleep(p, s, 10);
	cr_assert(fz_wake(s->ticket, FZ_WHY_DONE));
	cr_assert_eq(fz_timers_expire(&p->timers, 20), 1);
	cr_assert_eq(why(s), FZ_WHY_DONE);
	fz_wait_disarm(&s->fiber);
	next = fz_wait_arm(&s->fiber, 0);
	cr_assert_neq(next.number, s->ticket.number);
	cr_assert(!fz_wake(s->ticket, FZ_WHY_TIMEOUT));
	cr_assert(!has_fired(s));
}

Test(timer, now_is_monotonic)
{
	fz_nsec last = fz_now();

	for (unsigned i = 0; i < 100000; i++) {
		fz_nsec now = fz_now();

		cr_assert_geq(now, last);
		last = now;
	}
}

/* In the running runtime: many sleepers, none woken before its time. */
struct nap_order {
	fz_nsec length, woken_after;
};

static void *napper(void *arg)
{
	struct nap_order *o = arg;
	fz_nsec start = now_ns();

	nap(o->length);
	o->woken_after = now_ns() - start;
	return NULL;
}

Test(timer, many_sleepers_none_woken_early)
{
	enum { N = 2000 };
	static struct nap_order orders[N];
	static struct fz_fiber *fibers[N];
	uint64_t seed = 99;

	setup_start(2);
	for (size_t i = 0; i < N; i++) {
		orders[i].length = random_next(&seed) % (100 * FZ_MSEC);
		fibers[i] = spawn_with(napper, &orders[i], 65536, false);
	}
	for (size_t i = 0; i < N; i++)
		join(fibers[i]);
	for (size_t i = 0; i < N; i++)
		cr_assert_geq(orders[i].woken_after, orders[i].length);
}

static _Atomic unsigned ended;

static void *until_realtime(void *arg)
{
	struct fz_fiber *self = fz_self();

	fz_sleep(self, FZ_FOR_TIME,
		 fz_clock_until(self, fz_now_realtime() + 1000 * FZ_SEC), 0);
	COUNT(ended);
	return arg;
}

/* As the monitor would, if the clock were 2,000 s ahead now.  The monitor then sees that it is not. */
static bool set_forward(void)
{
	struct fz_fiber *self = fz_self();

	fz_enter_runtime(self);
	fz_clock_look_at((int64_t)(fz_now_realtime() + 2000 * FZ_SEC - fz_now()));
	fz_leave_runtime(self);
	return true;
}

Test(timer, a_clock_set_forward_ends_waits_until_its_times)
{
	enum { N = 100 };
	static struct fz_fiber *fibers[N];
	static struct nap_order order = { .length = 200 * FZ_MSEC };
	struct fz_fiber *other;

	setup_start(2);
	for (size_t i = 0; i < N; i++)
		fibers[i] = spawn_with(until_realtime, NULL, 65536, false);
	other = spawn_with(napper, &order, 65536, false);
	/* Set again and again, for those that had not begun to wait. */
	EVENTUALLY(set_forward() && GET(ended) == N);
	for (size_t i = 0; i < N; i++)
		join(fibers[i]);
	join(other);
	cr_assert_geq(order.woken_after, order.length);
}

enum { BASE = 7 };	/* s by which CLOCK_REALTIME is ahead */

static void go_to_sleep_until(struct fz_processor *p, struct sleeper *s, fz_nsec deadline)
{
	fz_clock_note(&s->fiber, deadline + BASE * FZ_SEC, deadline, GET(fz_clock_ahead));
	go_to_sleep(p, s, deadline);
}

/* The heap stays one, and timers of both kinds expire in the order of their new deadlines. */
Test(timer, timers_of_a_clock_that_is_set_move)
{
	enum { N = 999 };
	struct fz_processor *p = new_processor();
	struct sleeper *s = new_sleepers(N);
	uint64_t seed = 5;

	for (size_t i = 0; i < N; i++) {
		const fz_nsec deadline = (10 * N + random_next(&seed) % N) * FZ_MSEC;

		(i % 3 ? go_to_sleep : go_to_sleep_until)(p, &s[i], deadline);
	}
	cr_assert_eq(GET(p->timers.realtime), N / 3);
	fz_timers_set_clock(&p->timers, BASE * FZ_SEC - N * FZ_MSEC);
	fz_timers_set_clock(&p->timers, BASE * FZ_SEC + 5 * N * FZ_MSEC);
	cr_assert_eq(fz_timers_expire(&p->timers, 6 * N * FZ_MSEC), N / 3);
	cr_assert_eq(GET(p->timers.realtime), 0);
	for (size_t i = 0; i < N; i++)
		cr_assert_eq(has_fired(&s[i]), i % 3 == 0);
	cr_assert_geq(fz_timers_earliest(&p->timers), 10 * N * FZ_MSEC);
	cr_assert_eq(fz_timers_expire(&p->timers, 11 * N * FZ_MSEC), N - N / 3);
}

/* A handler, or another thread that was faster: the wait goes on with the deadline that it had. */
Test(timer, a_wait_that_goes_on_after_the_clock_was_set_ends_in_time)
{
	struct fz_processor *p = new_processor();
	struct sleeper *s = new_sleepers(2);

	fz_clock_look_at(BASE * FZ_SEC);
	go_to_sleep_until(p, &s[0], 2000 * FZ_SEC);
	go_to_sleep(p, &s[1], 2000 * FZ_SEC);
	cr_assert_eq(fz_timers_earliest(&p->timers), 2000 * FZ_SEC);
	fz_clock_look_at((BASE + 1500) * FZ_SEC);
	fz_timers_set_clock(&p->timers, (BASE + 1500) * FZ_SEC);
	cr_assert_eq(fz_timers_earliest(&p->timers), 500 * FZ_SEC);
	for (size_t i = 0; i < 2; i++) {
		fz_timer_remove(&s[i].fiber);
		fz_wait_disarm(&s[i].fiber);
		go_to_sleep(p, &s[i], 2000 * FZ_SEC);
	}
	cr_assert_eq(fz_timers_expire(&p->timers, 600 * FZ_SEC), 1);
	cr_assert(has_fired(&s[0]) && !has_fired(&s[1]));
}

/* The caller has read a clock that was set back since the monitor's last look. */
Test(timer, a_wait_that_begins_before_the_monitor_sees_a_clock_set_back_lasts)
{
	struct fz_processor *p = new_processor();
	struct sleeper *s = new_sleepers(1);

	fz_clock_look_at(BASE * FZ_SEC);
	fz_clock_note(&s->fiber, (2000 + BASE - 5) * FZ_SEC, 2000 * FZ_SEC, GET(fz_clock_ahead));
	go_to_sleep(p, s, 2000 * FZ_SEC);
	cr_assert_eq(fz_timers_earliest(&p->timers), 2000 * FZ_SEC);
	fz_clock_look_at((BASE - 5) * FZ_SEC);
	fz_timers_set_clock(&p->timers, (BASE - 5) * FZ_SEC);
	cr_assert_eq(fz_timers_earliest(&p->timers), 2000 * FZ_SEC);
	cr_assert_eq(fz_timers_expire(&p->timers, 2000 * FZ_SEC), 1);
}

static void *waits_for_nobody(void *arg)
{
	static struct fz_mutex mutex;
	static struct fz_cond cond;
	const fz_nsec deadline = fz_now() + 20 * FZ_MSEC, at = fz_now_realtime() + 300 * FZ_MSEC;
	int ret;

	/* For a moment, so that the monitor looks at the clock. */
	fz_sleep(fz_self(), FZ_FOR_TIME, fz_clock_until(fz_self(), fz_now_realtime() + FZ_MSEC), 0);
	EVENTUALLY(GET(fz_clock_ahead) != INT64_MIN);
	fz_mutex_lock(&mutex, FZ_FOREVER);
	fz_clock_note(fz_self(), at, deadline, GET(fz_clock_ahead));
	ret = fz_cond_wait(&cond, &mutex, deadline);
	cr_assert_eq(ret, -ETIMEDOUT);
	cr_assert_geq(fz_now_realtime(), at);
	fz_mutex_unlock(&mutex);
	return arg;
}

/* The deadline comes before the monitor has seen that the clock was set back.  Natively the wait lasts until the time. */
Test(timer, a_clock_set_back_prolongs_a_wait_for_a_condition)
{
	setup_start(2);
	join(spawn_with(waits_for_nobody, NULL, 65536, false));
}
