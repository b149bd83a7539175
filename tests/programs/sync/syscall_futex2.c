/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/sync/syscall_futex2.c - futex_wake() and futex_requeue() of Linux 6.7 by syscall(2): they reach
 * the waiters of futex(2), and futex(2) those of futex_wait().
 */
#include "futex.h"

enum {
	NR_FUTEX_WAKE = 454, NR_FUTEX_WAIT, NR_FUTEX_REQUEUE,
	SIZE_U32 = 2, PRIVATE = 128,
};

struct waiter {
	uint64_t value, word;
	uint32_t flags, reserved;
};

static uint32_t second;

static long wake2(uint32_t *word, unsigned long bits, int n, unsigned flags)
{
	return syscall(NR_FUTEX_WAKE, word, bits, n, flags);
}

static long requeue2(uint32_t expected, unsigned flags, int n, int move)
{
	const struct waiter words[2] = {
		{ expected, (uintptr_t)&first, SIZE_U32 | PRIVATE, 0 },
		{ 0, (uintptr_t)&second, flags, 0 },
	};

	return syscall(NR_FUTEX_REQUEUE, words, 0, n, move);
}

static void *wait_once(void *arg)
{
	CHECK_OK(wait_for(&first, 0));
	return arg;
}

static void *wait_for_four(void *arg)
{
	CHECK_OK(futex(&first, FUTEX_WAIT_BITSET_PRIVATE, 0, NULL, NULL, 4));
	return arg;
}

static long wait2_until(unsigned long expected, unsigned long bits, unsigned flags, const void *when, int clock)
{
	return syscall(NR_FUTEX_WAIT, &first, expected, bits, flags, when, clock);
}

static void *wait2(void *arg)
{
	CHECK_OK(wait2_until(0, ~0u, SIZE_U32 | PRIVATE, NULL, 0));
	return arg;
}

static void *wait2_in_vain(void *arg)
{
	const struct timespec none = { 0, 0 }, bad = { 0, 1000000000 };
	const unsigned flags[] = { SIZE_U32 | PRIVATE, SIZE_U32 };
	const int clocks[] = { CLOCK_MONOTONIC, CLOCK_REALTIME };

	for (int i = 0; i < 4; i++) {
		struct timespec soon = in(clocks[i / 2], 5 * MS);
		unsigned f = flags[i % 2];
		int clock = clocks[i / 2];

		CHECK_ERR(wait2_until(1, ~0u, f, NULL, clock), EAGAIN);
		CHECK_ERR(wait2_until(1, ~0u, f, &none, clock), EAGAIN);
		CHECK_ERR(wait2_until(0, ~0u, f, &none, clock), ETIMEDOUT);
		CHECK_ERR(wait2_until(0, ~0u, f, &soon, clock), ETIMEDOUT);
		CHECK(now(clock) >= soon.tv_sec * 1000 * MS + soon.tv_nsec - MS);
		CHECK_ERR(wait2_until(0, ~0u, f, &bad, clock), EINVAL);
		CHECK_ERR(wait2_until(0, ~0u, f, (void *)8, clock), EFAULT);
		CHECK_ERR(wait2_until(0, 0, f, NULL, clock), EINVAL);
		CHECK_ERR(wait2_until(0, 1ul << 32, f, NULL, clock), EINVAL);
		CHECK_ERR(wait2_until(1ul << 32, ~0u, f, NULL, clock), EINVAL);
	}
	CHECK_ERR(wait2_until(0, ~0u, SIZE_U32 | PRIVATE, &none, CLOCK_PROCESS_CPUTIME_ID), EINVAL);
	CHECK_ERR(wait2_until(1, ~0u, SIZE_U32 | PRIVATE, NULL, CLOCK_PROCESS_CPUTIME_ID), EAGAIN);
	CHECK_ERR(wait2_until(0, ~0u, 1 << 6, NULL, 0), EINVAL);
	return arg;
}

/* ---- a handler ---------------------------------------------------------- */

static _Atomic int handled;

static void handler(int sig)
{
	(void)sig;
	handled++;
}

static void *wait2_long(void *arg)
{
	const struct timespec late = in(CLOCK_MONOTONIC, 1000000 * MS);

	event_post(&will_sleep);
	CHECK_INT(wait2_until(0, ~0u, SIZE_U32 | PRIVATE, &late, CLOCK_MONOTONIC), arg ? 0 : -1);
	CHECK(arg || errno == EINTR);
	return arg;
}

/* Unlike those of futex(2), waits with a timeout go on after a handler with SA_RESTART. */
static void handlers(void)
{
	pthread_t t;

	for (int flags = 0; flags <= 1; flags++) {
		struct sigaction action = { .sa_handler = handler, .sa_flags = flags ? SA_RESTART : 0 };

		CHECK_OK(sigaction(SIGUSR1, &action, NULL));
		handled = 0;
		t = start_asleep(wait2_long, flags ? &handled : NULL);
		CHECK_OK(pthread_kill(t, SIGUSR1));
		while (!handled)
			usleep(100);
		if (flags)
			until(1, wake_one);
		finish(t);
	}
}

/* ---- waking and requeueing ---------------------------------------------- */

static long wake2_some(void) { return wake2(&first, ~0u, WAITERS / 2, SIZE_U32 | PRIVATE); }
static long wake2_negative(void) { return wake2(&first, ~0u, -1, SIZE_U32 | PRIVATE); }
static long wake2_three(void) { return wake2(&first, 3, INT32_MAX, SIZE_U32 | PRIVATE); }
static long wake2_four(void) { return wake2(&first, 4, 1, SIZE_U32 | PRIVATE); }
static long wake_second(void) { return wake(&second, INT32_MAX); }
static long move_all(void) { return requeue2(0, SIZE_U32 | PRIVATE, 0, INT32_MAX); }
static long wake_or_move(void) { return requeue2(0, SIZE_U32 | PRIVATE, 1, INT32_MAX); }

static void arguments(void)
{
	const unsigned own = SIZE_U32 | PRIVATE;

	CHECK_INT(wake2(&first, ~0u, INT32_MAX, own), 0);
	CHECK_INT(wake2(&first, ~0u, 0, own), 0);
	CHECK_ERR(wake2(&first, 0, 1, own), EINVAL);
	CHECK_ERR(wake2(&first, 1ul << 32, 1, own), EINVAL);
	CHECK_ERR(wake2(&first, ~0u, 1, 1u << 6), EINVAL);
	CHECK_ERR(wake2((uint32_t *)(void *)((char *)&first + 1), ~0u, 1, own), EINVAL);
	CHECK_ERR(requeue2(1, own, 0, 1), EAGAIN);
	CHECK_ERR(requeue2(0, own, -1, 1), EINVAL);
	CHECK_ERR(requeue2(0, own, 0, -1), EINVAL);
	CHECK_ERR(syscall(NR_FUTEX_REQUEUE, NULL, 0, 1, 1), EINVAL);
	CHECK_ERR(syscall(NR_FUTEX_REQUEUE, (void *)8, 0, 1, 1), EFAULT);
	CHECK_INT(requeue2(0, own, INT32_MAX, INT32_MAX), 0);
}

/* Half of them are waiters of futex(2), half of futex_wait(). */
static void start_both(pthread_t *threads)
{
	for (int i = 0; i < WAITERS; i++)
		threads[i] = start(i % 2 ? wait2 : wait_once, NULL);
}

static void wakes(void)
{
	pthread_t threads[WAITERS], four;

	start_both(threads);
	until(WAITERS, wake2_some);
	finish_all(threads);
	start_both(threads);
	until(WAITERS, wake2_negative);
	finish_all(threads);
	start_both(threads);
	until(WAITERS, wake_one);
	finish_all(threads);
	/* Of the bits that are asked for only. */
	four = start(wait_for_four, NULL);
	for (int i = 0; i < 10; i++) {
		CHECK_INT(wake2_three(), 0);
		usleep(200);
	}
	until(1, wake2_four);
	finish(four);
}

static void requeues(void)
{
	pthread_t threads[WAITERS];

	start_both(threads);
	until(WAITERS, move_all);
	until(WAITERS, wake_second);
	finish_all(threads);
	start_both(threads);
	/* Each call may wake one; it is counted as the moved ones are, so that some are left to wake or none. */
	until(WAITERS, wake_or_move);
	wake_second();
	finish_all(threads);
	CHECK_INT(wake_second(), 0);
}

int main(void)
{
	if (wake2(&first, ~0u, 1, SIZE_U32 | PRIVATE) < 0 && errno == ENOSYS)
		return success();
	arguments();
	finish(start(wait2_in_vain, NULL));
	handlers();
	wakes();
	requeues();
	return success();
}
