/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/sync/syscall_futex_all.c - a FUTEX_WAKE of many is one step: it wakes those who wait when it is
 * made, once, whatever the first of them do before the last is awake.
 */
#include "futex.h"

enum { CROWD = 400, TIMES = 30 };

static uint32_t second;
static int awake, done;
static long moved;
static pthread_t crowd[CROWD];

/* How many wait for the word: requeued to where they are, they are only counted. */
static long waiting(void)
{
	return futex(&first, FUTEX_REQUEUE_PRIVATE, 0, (void *)INT32_MAX, &first, 0);
}

static void start_crowd(void *(*thread)(void *))
{
	awake = 0;
	for (int i = 0; i < CROWD; i++)
		crowd[i] = start(thread, NULL);
}

static void wake_crowd(void)
{
	while (waiting() < CROWD)
		usleep(200);
	CHECK_INT(wake(&first, INT32_MAX), CROWD);
}

static void finish_crowd(void)
{
	for (int i = 0; i < CROWD; i++)
		finish(crowd[i]);
}

/* ---- woken ones that wait again ------------------------------------------ */

static void *wait_again(void *arg)
{
	while (!__atomic_load_n(&done, __ATOMIC_ACQUIRE))
		wait_for(&first, 0);
	return arg;
}

static void again(void)
{
	start_crowd(wait_again);
	for (int i = 0; i < TIMES; i++)
		wake_crowd();
	__atomic_store_n(&done, 1, __ATOMIC_RELEASE);
	__atomic_store_n(&first, 1, __ATOMIC_RELEASE);
	CHECK(wake(&first, INT32_MAX) >= 0);
	finish_crowd();
	first = 0;
}

/* ---- a woken one that moves who waits ------------------------------------- */

static bool is_first_awake(void)
{
	return !__atomic_exchange_n(&awake, 1, __ATOMIC_ACQ_REL);
}

static void *wait_and_move(void *arg)
{
	CHECK_OK(wait_for(&first, 0));
	if (is_first_awake())
		moved = futex(&first, FUTEX_REQUEUE_PRIVATE, 0, (void *)INT32_MAX, &second, 0);
	return arg;
}

static void move(void)
{
	for (int i = 0; i < TIMES; i++) {
		start_crowd(wait_and_move);
		wake_crowd();
		finish_crowd();
		CHECK_INT(moved, 0);
	}
}

/* ---- a woken one that wakes who has come since ----------------------------- */

static void *wait_and_wake(void *arg)
{
	CHECK_OK(wait_for(&first, 0));
	if (is_first_awake()) {
		while (waiting() == 0)
			sched_yield();
		CHECK_INT(wake_one(), 1);
	}
	return arg;
}

static void *come_late(void *arg)
{
	while (!__atomic_load_n(&awake, __ATOMIC_ACQUIRE))
		sched_yield();
	CHECK_OK(wait_for(&first, 0));
	return arg;
}

static void late(void)
{
	for (int i = 0; i < TIMES; i++) {
		pthread_t latecomer;

		start_crowd(wait_and_wake);
		latecomer = start(come_late, NULL);
		wake_crowd();
		finish_crowd();
		finish(latecomer);
	}
}

int main(void)
{
	again();
	move();
	late();
	return success();
}
