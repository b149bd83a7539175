/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/fiber/parent.h"
#include "runtime_setup.h"

TestSuite(parent, .timeout = 120);

/* A multiple of the table's places. */
enum { PLACES = 1 << 14 };

static int of_main, of_fiber, of_native;
static bool fiber_has_it, fiber_has_another, native_has_it, native_has_another;
static _Atomic int stage;

static int child(void)
{
	int pid = fork();

	cr_assert(pid >= 0);
	if (!pid)
		_exit(0);
	fz_child_made(pid);
	return pid;
}

static bool only_has(int pid)
{
	int place = 0;

	return fz_child_next(fz_self(), &place) == pid && !fz_child_next(fz_self(), &place);
}

static void *is_fiber(void *arg)
{
	of_fiber = child();
	fiber_has_it = fz_child_is_own(fz_self(), of_fiber) && only_has(of_fiber);
	fiber_has_another = fz_child_is_own(fz_self(), of_main);
	return arg;
}

/* It goes on to live when it has told that it ends, as another thread with its tid would. */
static void *is_native(void *arg)
{
	of_native = child();
	native_has_it = fz_child_is_own(fz_self(), of_native) && only_has(of_native);
	native_has_another = fz_child_is_own(fz_self(), of_main);
	SET(stage, 1);
	while (GET(stage) != 2)
		usleep(1000);
	fz_parent_ends(fz_self());
	native_has_another |= fz_child_is_own(fz_self(), of_native);
	SET(stage, 3);
	while (GET(stage) != 4)
		usleep(1000);
	return arg;
}

Test(parent, a_child_is_its_makers_and_then_main_s)
{
	pthread_t thread;

	setup_start(1);
	of_main = child();
	join(spawn(is_fiber, NULL));
	cr_assert(fiber_has_it);
	cr_assert_not(fiber_has_another);
	cr_assert(fz_child_is_own(fz_self(), of_fiber), "its maker has ended");
	thread = native(is_native, NULL);
	cr_assert(EVENTUALLY(GET(stage) == 1));
	cr_assert_not(fz_child_is_own(fz_self(), of_native), "its maker lives");
	SET(stage, 2);
	cr_assert(EVENTUALLY(GET(stage) == 3));
	cr_assert(fz_child_is_own(fz_self(), of_native), "its maker has ended, and its tid lives");
	SET(stage, 4);
	pthread_join(thread, NULL);
	cr_assert(native_has_it);
	cr_assert_not(native_has_another);
}

Test(parent, a_child_keeps_its_place_until_it_has_been_waited_for)
{
	int pid, place = 0;

	setup_start(1);
	pid = child();
	/* No children, in the same places. */
	for (int i = 1; i < 200; i++)
		fz_child_made(pid + i * PLACES);
	fz_child_gone(pid);
	cr_assert_eq(fz_child_next(fz_self(), &place), pid, "it has not been waited for");
	cr_assert_eq(waitpid(pid, NULL, 0), pid);
	fz_child_gone(pid);
	place = 0;
	cr_assert_neq(fz_child_next(fz_self(), &place), pid);
	cr_assert(fz_child_is_own(fz_self(), pid), "a child that is not known is main's");
}
