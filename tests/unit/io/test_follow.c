/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <sched.h>
#include <sys/socket.h>

#include "arch/arch.h"
#include "connection.h"
#include "runtime/io/follow.h"
#include "runtime_setup.h"

enum { ALL = 1024 };

static int cpus[2];		/* two that this process may use */
static int ends[2];		/* of a connection */
static _Atomic bool over;

static void run_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	cr_assert_eq(sched_setaffinity(0, sizeof(set), &set), 0);
}

static bool has_two_cpus(void)
{
	cpu_set_t set;
	int n = 0;

	cr_assert_eq(sched_getaffinity(0, sizeof(set), &set), 0);
	for (int cpu = 0; cpu < CPU_SETSIZE && n < 2; cpu++)
		if (CPU_ISSET(cpu, &set))
			cpus[n++] = cpu;
	return n == 2;
}

static void *send_one(void *arg)
{
	run_on(*(int *)arg);
	return (void *)(uintptr_t)(send(ends[1], "x", 1, 0) != 1);
}

/* A message from a thread on this CPU. */
static void receive_from(int *cpu)
{
	char c;

	pthread_t t = native(send_one, cpu);
	void *failed;

	cr_assert_eq(pthread_join(t, &failed), 0);
	cr_assert_null(failed);
	cr_assert_eq(recv(ends[0], &c, 1, 0), 1);
}

/* So that no processor is idle. */
static void *keep_busy(void *arg)
{
	while (!GET(over))
		yield_fiber();
	return arg;
}

/* What the processors would have learned by many receives. */
static void pretend(int cpu_of_other, uint32_t strangers, uint32_t strangers_of_other)
{
	struct fz_processor *own = fz_processor_of(fz_self());
	struct fz_processor *other = &fz_sched.processors[own == fz_sched.processors];

	SET(own->strangers, strangers);
	SET(other->strangers, strangers_of_other);
	SET(other->cpu, (uint32_t)cpu_of_other + 1);
}

/* Returns whether one of so many attempts, all of which find the same, has moved the calling fiber. */
static bool moves(int attempts, int cpu_of_other, uint32_t strangers, uint32_t strangers_of_other)
{
	bool moved = false;

	for (int i = 0; i < attempts && !moved; i++) {
		const struct fz_processor *before;

		/* Meanwhile this processor is idle, and takes a part of what is to be done. */
		nap(FZ_USEC);
		before = fz_processor_of(fz_self());
		pretend(cpu_of_other, strangers, strangers_of_other);
		fz_follow_peer(fz_self(), ends[0]);
		moved = fz_processor_of(fz_self()) != before;
	}
	return moved;
}

static bool begin(struct fz_fiber *busy[4])
{
	if (!has_two_cpus() || fz_cpu_number() < 0)
		return false;
	connect_ends(ends);
	/* All carriers are made on the first CPU. */
	run_on(cpus[0]);
	setup_start(2);
	for (int i = 0; i < 4; i++)
		busy[i] = spawn(keep_busy, NULL);
	return true;
}

static void end(struct fz_fiber *busy[4])
{
	SET(over, true);
	for (int i = 0; i < 4; i++)
		join(busy[i]);
}

#define NEEDS_TWO_CPUS "needs two CPUs, and a processor that tells their numbers"

Test(follow, number_of_the_cpu)
{
	if (!has_two_cpus() || fz_cpu_number() < 0)
		cr_skip_test(NEEDS_TWO_CPUS);
	for (int i = 0; i < 2; i++) {
		run_on(cpus[i]);
		cr_assert_eq(fz_cpu_number(), cpus[i]);
	}
}

Test(follow, moves_to_the_cpu_of_its_peer)
{
	struct fz_fiber *busy[4];

	if (!begin(busy))
		cr_skip_test(NEEDS_TWO_CPUS);
	receive_from(&cpus[1]);
	/* The other processor's carrier may be about to find out that it has work. */
	cr_assert(moves(100000, cpus[1], ALL, ALL));
	end(busy);
}

Test(follow, stays)
{
	struct fz_fiber *busy[4];

	if (!begin(busy))
		cr_skip_test(NEEDS_TWO_CPUS);
	receive_from(&cpus[1]);
	cr_assert_not(moves(20, cpus[1], ALL, ALL / 4), "the whole load is on the other CPU");
	cr_assert_not(moves(20, -1, ALL, ALL), "nobody is on that CPU");
	receive_from(&cpus[0]);
	cr_assert_not(moves(20, cpus[1], ALL, ALL), "it is on the peer's CPU");
	end(busy);
}
