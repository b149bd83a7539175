/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/base/host.h"
#include "runtime/fiber/adopt.h"
#include "runtime_setup.h"
#include "sched_fixture.h"

static _Atomic unsigned finished;
static int (*create_now)(void *stack, size_t size, void *(*fn)(void *), void *arg,
			 unsigned long *ret_handle);
static _Atomic bool born;

struct late {
	void *(*fn)(void *);
	void *arg;
};

static void *live_late(void *arg)
{
	struct late *late = arg;

	while (!GET(born))
		syscall(SYS_sched_yield);
	return late->fn(late->arg);
}

static int create_late(void *stack, size_t size, void *(*fn)(void *), void *arg,
		       unsigned long *ret_handle)
{
	static struct late late;

	/* The carrier spawner makes its threads meanwhile. */
	if (fz_self()->kind == FZ_KIND_HELPER)
		return create_now(stack, size, fn, arg, ret_handle);
	late = (struct late){ fn, arg };
	return create_now(stack, size, live_late, &late, ret_handle);
}

static void *count_finished(void *arg)
{
	COUNT(finished);
	return arg;
}

/* The kernel runs the new thread when the creator has long gone on, and others, too. */
static void create_before_birth(unsigned processors)
{
	setup_start(processors);
	join(spawn(set_flag, NULL));
	create_now = fz_host.thread_create;
	fz_host.thread_create = create_late;
	/* Another size of stack: no ended fiber fits. */
	spawn_with(count_finished, NULL, 1 << 20, true);
	fz_host.thread_create = create_now;
	for (int i = 0; i < 10; i++) {
		yield_fiber();
		nap(FZ_MSEC);
		SET(flag, false);
		join(spawn(set_flag, NULL));
		cr_assert(GET(flag));
	}
	cr_assert_eq(GET(finished), 0);
	SET(born, true);
	while (!GET(finished))
		nap(FZ_MSEC);
}

Test(birth, creator_waits_for_no_birth)
{
	create_before_birth(1);
}

Test(birth, creator_waits_for_no_birth_two_processors)
{
	create_before_birth(2);
}

static _Atomic bool over;

static void *yield_until_over(void *arg)
{
	while (!GET(over))
		yield_fiber();
	return arg;
}

/* A new fiber is not kept waiting by those that are runnable all the time. */
Test(birth, a_new_fiber_has_its_turn)
{
	struct fz_fiber *busy[2], *f;
	int yields;

	setup_start(1);
	for (int i = 0; i < 2; i++)
		busy[i] = spawn(yield_until_over, NULL);
	nap(FZ_MSEC);
	/* Another size of stack: no ended fiber fits. */
	f = spawn_with(set_flag, NULL, 1 << 20, false);
	while (!fz_adopt_is_over(f))
		syscall(SYS_sched_yield);
	for (yields = 0; !GET(flag); yields++)
		yield_fiber();
	cr_assert(yields < 100, "%d yields", yields);
	SET(over, true);
	for (int i = 0; i < 2; i++)
		join(busy[i]);
	join(f);
}
