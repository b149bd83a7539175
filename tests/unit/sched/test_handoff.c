/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "runtime/fiber/cputime.h"
#include "runtime/io/op.h"
#include "runtime/sched/announce.h"
#include "runtime/sched/monitor.h"
#include "runtime_setup.h"
#include "sched_fixture.h"

static _Atomic unsigned finished;

/* ---- calls that block the kernel thread ---------------------------------- */

/* Blocks the kernel thread, by a call that the runtime does not see. */
static void block_unseen(int fd)
{
	char c;

	while (syscall(SYS_read, fd, &c, 1) < 0)
		continue;
}

static int pipes[8][2];

static void make_pipes(void)
{
	for (int i = 0; i < 8; i++)
		cr_assert_eq(pipe(pipes[i]), 0);
}

static void *block_announced(void *arg)
{
	fz_announce(fz_self());
	block_unseen(pipes[(uintptr_t)arg][0]);
	COUNT(finished);
	return NULL;
}

static void *block_silently(void *arg)
{
	block_unseen(pipes[(uintptr_t)arg][0]);
	COUNT(finished);
	return NULL;
}

static void others_run_while_blocked(void *(*fn)(void *), unsigned processors)
{
	struct fz_fiber *f[8];

	setup_start(processors);
	make_pipes();
	for (uintptr_t i = 0; i < 8; i++)
		f[i] = spawn(fn, (void *)i);
	/* All eight sit in the kernel, and still there is somebody to run these. */
	for (int i = 0; i < 200; i++)
		join(spawn(set_flag, NULL));
	nap(20 * FZ_MSEC);
	for (int i = 0; i < 200; i++)
		join(spawn(set_flag, NULL));
	cr_assert_eq(GET(finished), 0);
	for (int i = 0; i < 8; i++)
		cr_assert_eq(write(pipes[i][1], "", 1), 1);
	for (int i = 0; i < 8; i++)
		join(f[i]);
	cr_assert_eq(GET(finished), 8);
	cr_assert_leq(kernel_threads(), processors + 8 + 4);
}

Test(handoff, announced_calls_stop_nobody)
{
	others_run_while_blocked(block_announced, 1);
}

Test(handoff, announced_calls_stop_nobody_two_processors)
{
	others_run_while_blocked(block_announced, 2);
}

Test(handoff, unseen_calls_stop_nobody)
{
	others_run_while_blocked(block_silently, 1);
}

Test(handoff, unseen_calls_stop_nobody_two_processors)
{
	others_run_while_blocked(block_silently, 2);
}

/* ---- CPU-bound fibers ---------------------------------------------------- */

Test(handoff, spinning_stops_nobody)
{
	struct fz_fiber *f;

	setup_start(1);
	f = spawn(set_flag, NULL);
	while (!GET(flag))
		continue;
	join(f);
}

/* The announced call takes so long that everything else, the monitor included, goes to sleep. */
Test(handoff, spinning_after_a_long_announced_call_stops_nobody)
{
	const struct timespec long_time = { 0, 150000000 };
	struct fz_fiber *f;

	setup_start(1);
	/* So that making a fiber below does not take a carrier's start. */
	join(spawn(set_flag, NULL));
	SET(flag, false);
	fz_announce(fz_self());
	syscall(SYS_nanosleep, &long_time, NULL);
	f = spawn(set_flag, NULL);
	while (!GET(flag))
		continue;
	join(f);
}

static _Atomic bool over;

static void *poke(void *arg)
{
	while (!GET(over))
		fz_monitor_poke();
	return arg;
}

/* However often the monitor is woken: a fiber that runs for a moment is not CPU-bound. */
Test(handoff, pokes_are_no_ticks)
{
	pthread_t poking;
	bool cpu_bound = false;

	setup_start(1);
	poking = native(poke, NULL);
	for (int i = 0; i < 50; i++) {
		uint64_t begin;

		nap(2 * FZ_MSEC);
		begin = fz_cputime_of_tid(0);
		while (fz_cputime_of_tid(0) < begin + 200 * FZ_USEC)
			continue;
		cpu_bound |= fz_fiber_is_cpu_bound(fz_self());
	}
	SET(over, true);
	pthread_join(poking, NULL);
	cr_assert_not(cpu_bound);
}

/* ---- what the processor of a blocked fiber waits for --------------------- */

static void *wait_for_byte(void *arg)
{
	struct fz_op op = {
		.opcode = IORING_OP_POLL_ADD, .fd = pipes[(uintptr_t)arg][0], .op_flags = POLLIN,
	};

	fz_op_wait(fz_self(), &op, FZ_FOREVER, 0);
	if (write(pipes[7][1], "", 1) != 1)
		return (void *)1;
	return NULL;
}

static void *write_late(void *arg)
{
	(void)arg;
	nap(60 * FZ_MSEC);
	return (void *)(uintptr_t)(write(pipes[0][1], "", 1) != 1);
}

static void on_one_cpu(void)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	cr_assert_eq(sched_setaffinity(0, sizeof(one), &one), 0);
}

/*
 * Requests in flight are received while their processor's carrier is in a call:
 * here the call ends only when that has happened.
 */
static void completion_during_call(bool announced)
{
	struct fz_fiber *f;
	pthread_t t;

	setup_start(1);
	make_pipes();
	f = spawn(wait_for_byte, (void *)0);
	yield_fiber();
	t = native(write_late, NULL);
	if (announced)
		fz_announce(fz_self());
	block_unseen(pipes[7][0]);
	cr_assert_null(join(f));
	pthread_join(t, NULL);
}

Test(handoff, completion_during_announced_call)
{
	completion_during_call(true);
}

Test(handoff, completion_during_announced_call_one_cpu)
{
	on_one_cpu();
	completion_during_call(true);
}

static void *ring_bell(void *arg)
{
	nap(60 * FZ_MSEC);
	return (void *)(uintptr_t)(write(pipes[7][1], "", 1) != 1 || arg);
}

/* The announced call ends only when the deadline of another fiber has passed. */
Test(handoff, deadline_during_announced_call_one_cpu)
{
	struct fz_fiber *f;

	on_one_cpu();
	setup_start(1);
	make_pipes();
	f = spawn(ring_bell, NULL);
	yield_fiber();
	fz_announce(fz_self());
	block_unseen(pipes[7][0]);
	cr_assert_null(join(f));
}

Test(handoff, completion_during_unseen_call)
{
	completion_during_call(false);
}

/* ---- everything at once -------------------------------------------------- */

/* Announced calls, calls that the runtime does not see, spinning, sleeping, births. */
static void *mixed(void *arg)
{
	const struct timespec short_time = { 0, 200000 };
	uint64_t seed = (uintptr_t)arg + 1;

	for (int i = 0; i < 60; i++) {
		fz_nsec until;

		switch (random_next(&seed) % 5) {
		case 0:
			fz_announce(fz_self());
			syscall(SYS_nanosleep, &short_time, NULL);
			break;
		case 1:
			syscall(SYS_nanosleep, &short_time, NULL);
			break;
		case 2:
			until = now_ns() + random_next(&seed) % (300 * FZ_USEC);
			while (now_ns() < until)
				continue;
			break;
		case 3:
			nap(random_next(&seed) % (500 * FZ_USEC));
			break;
		default:
			join(spawn_with(set_flag, NULL, 65536, false));
		}
	}
	COUNT(finished);
	return NULL;
}

static void all_mixed(unsigned processors)
{
	struct fz_fiber *f[40];

	setup_start(processors);
	for (uintptr_t i = 0; i < 40; i++)
		f[i] = spawn(mixed, (void *)i);
	for (int i = 0; i < 40; i++)
		join(f[i]);
	cr_assert_eq(GET(finished), 40);
}

Test(handoff, everything_mixed_one_processor)
{
	all_mixed(1);
}

Test(handoff, everything_mixed_three_processors)
{
	all_mixed(3);
}
