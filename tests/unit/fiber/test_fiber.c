/* SPDX-License-Identifier: MIT */
#include <asm/errno.h>
#include <criterion/criterion.h>
#include <fenv.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/fiber/fiber.h"
#include "runtime/sched/cancel.h"
#include "runtime/sched/park.h"
#include "runtime_setup.h"

enum { CANCELED_BIT = 8 };

static void *identity(void *arg)
{
	return arg;
}

Test(fiber, result_comes_to_the_joiner)
{
	setup_start(2);
	for (uintptr_t i = 1; i < 5000; i++)
		cr_assert_eq((uintptr_t)join(spawn(identity, (void *)i)), i);
	cr_assert_eq(fz_fiber_alive(), 1);
}

Test(fiber, is_reused)
{
	struct fz_fiber *first;

	setup_start(1);
	first = spawn(identity, NULL);
	join(first);
	for (unsigned i = 0; i < 100; i++) {
		struct fz_fiber *f = spawn(identity, NULL);

		cr_assert_eq(f, first);
		join(f);
	}
	cr_assert_eq(GET(setup_resets), 100, "the first life needs no reset");
	cr_assert_eq(GET(setup_destructor_runs), 101);
}

static _Atomic bool go;

static void *wait_for_go(void *arg)
{
	while (!GET(go))
		nap(FZ_MSEC);
	return arg;
}

static intptr_t join_error(struct fz_fiber *f, fz_nsec deadline)
{
	void *result = (void *)77;
	int err = fz_fiber_join(f, deadline, &result);

	cr_assert(err == 0 || result == (void *)77, "untouched on failure");
	return err;
}

Test(fiber, errors_of_join_and_detach)
{
	struct fz_fiber *f;

	setup_start(1);
	cr_assert_eq(join_error(fz_self(), FZ_FOREVER), -EDEADLK);
	f = spawn(wait_for_go, NULL);
	cr_assert_eq(join_error(f, 0), -EBUSY);
	cr_assert_eq(join_error(f, now_ns() + 2 * FZ_MSEC), -ETIMEDOUT);
	cr_assert_eq(join_error(f, 1), -ETIMEDOUT);
	/* Still joinable. */
	SET(go, true);
	cr_assert_eq(join_error(f, now_ns() + 40 * FZ_SEC), 0);
	cr_assert_eq(join_error(f, FZ_FOREVER), -ESRCH);
	cr_assert_eq(join_error(f, 0), -ESRCH);
	cr_assert_eq(fz_fiber_detach(f), -ESRCH);
	SET(go, false);
	f = spawn_with(wait_for_go, NULL, 65536, true);
	cr_assert_eq(join_error(f, FZ_FOREVER), -EINVAL);
	cr_assert_eq(fz_fiber_detach(f), -EINVAL);
	SET(go, true);
	cr_assert(EVENTUALLY(fz_fiber_alive() == 1));
	cr_assert(EVENTUALLY(GET(f->thread.life) == FZ_LIFE_FREE));
	cr_assert_eq(fz_fiber_detach(f), -ESRCH);
	/* Ended, nobody has joined yet: detaching frees it. */
	f = spawn(identity, NULL);
	cr_assert(EVENTUALLY(GET(f->thread.life) == FZ_LIFE_ENDED));
	cr_assert_eq(fz_fiber_detach(f), 0);
	cr_assert_eq(GET(f->thread.life), FZ_LIFE_FREE);
}

static void *join_it(void *arg)
{
	void *result;
	int err = fz_fiber_join(arg, FZ_FOREVER, &result);

	return (void *)(intptr_t)(err ? err : (intptr_t)result);
}

Test(fiber, second_joiner_is_refused)
{
	struct fz_fiber *f, *joiner;

	setup_start(1);
	f = spawn(wait_for_go, (void *)5);
	joiner = spawn(join_it, f);
	cr_assert(EVENTUALLY(GET(f->thread.life) & FZ_LIFE_JOINING));
	cr_assert_eq(join_error(f, FZ_FOREVER), -EINVAL);
	SET(go, true);
	cr_assert_eq((intptr_t)join(joiner), 5);
}

static _Atomic(struct fz_fiber *) partner;

static void *join_partner(void *arg)
{
	(void)arg;
	while (!GET(partner))
		nap(FZ_MSEC);
	return (void *)(intptr_t)fz_fiber_join(GET(partner), FZ_FOREVER, NULL);
}

Test(fiber, joining_each_other_is_a_deadlock)
{
	struct fz_fiber *a, *b;
	intptr_t other;

	setup_start(1);
	a = spawn(join_partner, NULL);
	b = spawn(join_it, a);
	cr_assert(EVENTUALLY(GET(a->thread.life) & FZ_LIFE_JOINING));
	SET(partner, b);
	other = (intptr_t)join(b);
	cr_assert_eq(other, -EDEADLK, "a joined b, which waits for a: a's result is %ld", other);
}

Test(fiber, native_threads_join_too)
{
	struct fz_fiber *f;
	pthread_t t;
	void *result;

	setup_start(2);
	for (intptr_t i = 1; i < 300; i++) {
		f = spawn(identity, (void *)i);
		t = native(join_it, f);
		pthread_join(t, &result);
		cr_assert_eq((intptr_t)result, i);
	}
	f = spawn(wait_for_go, (void *)9);
	t = native(join_it, f);
	cr_assert(EVENTUALLY(GET(f->thread.life) & FZ_LIFE_JOINING));
	SET(go, true);
	pthread_join(t, &result);
	cr_assert_eq((intptr_t)result, 9);
}

static void *try_to_join(void *arg)
{
	int err = fz_fiber_join(arg, now_ns() + 10 * FZ_USEC, NULL);

	return (void *)(intptr_t)err;
}

/* End, join with a deadline, and detach race; each fiber is freed exactly once. */
Test(fiber, end_races_with_join_and_detach)
{
	setup_start(3);
	for (unsigned i = 0; i < 3000; i++) {
		struct fz_fiber *f = spawn(identity, NULL);
		struct fz_fiber *joiner = spawn(try_to_join, f);
		intptr_t err = (intptr_t)join(joiner);

		cr_assert(err == 0 || err == -ETIMEDOUT, "error %ld", err);
		if (err == -ETIMEDOUT) {
			if (i % 2)
				join(f);
			else
				cr_assert_eq(fz_fiber_detach(f), 0);
		}
	}
	cr_assert(EVENTUALLY(fz_fiber_alive() == 1));
}

static void *cancel_wait(void *arg)
{
	return (void *)(intptr_t)fz_fiber_join(arg, FZ_FOREVER, NULL);
}

Test(fiber, canceled_join_leaves_it_joinable)
{
	struct fz_fiber *self = fz_self(), *f, *joiner;

	setup_start(1);
	f = spawn(wait_for_go, (void *)3);
	joiner = spawn(cancel_wait, f);
	cr_assert(EVENTUALLY(GET(f->thread.life) & FZ_LIFE_JOINING));
	atomic_fetch_or(fz_tcb_cancelhandling(joiner->tcb), CANCELED_BIT);
	atomic_store(&joiner->cancel.sent, true);
	fz_enter_runtime(self);
	fz_wake_any(joiner, FZ_WHY_CANCEL);
	fz_leave_runtime(self);
	cr_assert_eq((intptr_t)join(joiner), -ECANCELED);
	cr_assert_eq(GET(f->thread.life) & FZ_LIFE_JOINING, 0);
	SET(go, true);
	cr_assert_eq((intptr_t)join(f), 3);
}

static void *is_canceled(void *arg)
{
	(void)arg;
	return (void *)(uintptr_t)fz_cancel_requested(fz_self());
}

/* A request that comes when a thread has as good as ended dies with that thread. */
Test(fiber, late_cancel_does_not_reach_the_next_life)
{
	struct fz_fiber *f, *next;

	setup_start(1);
	f = spawn(identity, NULL);
	cr_assert(EVENTUALLY(GET(f->thread.life) == FZ_LIFE_ENDED));
	atomic_fetch_or(fz_tcb_cancelhandling(f->tcb), CANCELED_BIT);
	atomic_store(&f->cancel.sent, true);
	join(f);
	next = spawn(is_canceled, NULL);
	cr_assert_eq(next, f, "not reused: the test shows nothing");
	cr_assert_null(join(next), "a new thread is born cancelled");
}

/* ---- tids ---------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static void *tid_of(void *arg)
{
	struct fz_fiber *self = fz_self();

	*(int *)arg = self->thread.tid;
	return (void *)(uintptr_t)(atomic_load(fz_tcb_tid(fz_tcb_get())) != self->thread.tid ||
				   fz_tcb_get() != self->tcb ||
				   fz_fiber_of_tcb(self->tcb) != self);
}

Test(fiber, tids_are_unique_and_libc_knows_them)
{
	enum { N = 5000, AT_ONCE = 50 };
	static int tids[N];
	struct fz_fiber *f[AT_ONCE];

	setup_start(4);
	for (int i = 0; i < N; i += AT_ONCE) {
		for (int n = 0; n < AT_ONCE; n++)
			f[n] = spawn(tid_of, &tids[i + n]);
		for (int n = 0; n < AT_ONCE; n++)
			cr_assert_null(join(f[n]));
	}
	qsort(tids, N, sizeof(*tids), by_value);
	cr_assert_gt(tids[0], 1 << 22);
	cr_assert_lt(tids[N - 1], 1 << 30);
	for (int i = 1; i < N; i++)
		cr_assert_neq(tids[i - 1], tids[i]);
}

/* ---- many ---------------------------------------------------------------- */

static _Atomic uint32_t started;

static void *count_and_wait(void *arg)
{
	char deep[3000];

	memset(deep, (int)(uintptr_t)arg, sizeof(deep));
	COUNT(started);
	while (!GET(go))
		nap(200 * FZ_MSEC);
	return (void *)(uintptr_t)(deep[2999] != (char)(uintptr_t)arg);
}

Test(fiber, ten_thousand_at_once)
{
	enum { N = 10000 };
	static struct fz_fiber *f[N];

	setup_start(2);
	for (uintptr_t i = 0; i < N; i++)
		f[i] = spawn_with(count_and_wait, (void *)i, 65536, false);
	cr_assert(EVENTUALLY(GET(started) == N));
	cr_assert_eq(fz_fiber_alive(), N + 1);
	SET(go, true);
	for (int i = 0; i < N; i++)
		cr_assert_null(join(f[i]));
	cr_assert_eq(fz_fiber_alive(), 1);
}

static void *have_children(void *arg)
{
	uintptr_t depth = (uintptr_t)arg;
	struct fz_fiber *a, *b;

	if (depth == 0)
		return (void *)1;
	a = spawn_with(have_children, (void *)(depth - 1), 65536, false);
	b = spawn_with(have_children, (void *)(depth - 1), 65536, false);
	return (void *)((uintptr_t)join(a) + (uintptr_t)join(b));
}

Test(fiber, trees_of_fibers)
{
	setup_start(4);
	for (int i = 0; i < 5; i++)
		cr_assert_eq((uintptr_t)join(spawn(have_children, (void *)10)), 1024);
}

static _Atomic unsigned ended;

static void *detached_one(void *arg)
{
	COUNT(ended);
	return arg;
}

Test(fiber, detached_ones_are_freed)
{
	enum { N = 20000 };

	setup_start(2);
	for (unsigned i = 0; i < N; i++)
		spawn_with(detached_one, NULL, 65536, true);
	cr_assert(EVENTUALLY(GET(ended) == N && fz_fiber_alive() == 1));
}

/* ---- sizes --------------------------------------------------------------- */

static void *use_stack(void *arg)
{
	size_t n = (size_t)arg;
	volatile char *deep = __builtin_alloca(n);

	for (size_t i = 0; i < n; i += 4096)
		deep[i] = 1;
	deep[n - 1] = 1;
	return NULL;
}

Test(fiber, stacks_are_as_big_as_asked)
{
	const size_t sizes[] = { 65536, 131072, 1 << 20, 8 << 20, 64 << 20 };

	setup_start(2);
	for (int round = 0; round < 3; round++)
		for (int i = 0; i < 5; i++) {
			/* Some of it is TLS, and our frames. */
			struct fz_fiber *f = spawn_with(use_stack, (void *)(sizes[i] - 32768),
							sizes[i], false);

			cr_assert_geq(f->mem.stack_size, sizes[i]);
			join(f);
		}
}

static void *rounding_of(void *arg)
{
	(void)arg;
	return (void *)(intptr_t)fegetround();
}

Test(fiber, rounding_mode_is_inherited)
{
	setup_start(1);
	for (int i = 0; i < 3; i++) {
		fesetround(FE_UPWARD);
		cr_assert_eq((intptr_t)join(spawn(rounding_of, NULL)), FE_UPWARD);
		fesetround(FE_TONEAREST);
		cr_assert_eq((intptr_t)join(spawn(rounding_of, NULL)), FE_TONEAREST);
	}
}

/* ---- the main thread ----------------------------------------------------- */

/* Returns the exit status of a child that does this. */
static int status_of(void (*fn)(void))
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		alarm(50);
		fn();
		_exit(99);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void *leave_later(void *arg)
{
	nap(20 * FZ_MSEC);
	return arg;
}

static void main_ends_first(void)
{
	setup_start(2);
	spawn_with(leave_later, NULL, 65536, true);
	fz_fiber_main_ended();
}

static void *join_and_exit(void *arg)
{
	_exit(fz_fiber_join(arg, now_ns() + 30 * FZ_SEC, NULL) == 0 ? 42 : 43);
}

static void main_is_joined(void)
{
	setup_start(2);
	spawn(join_and_exit, fz_self());
	fz_fiber_main_ended();
}

Test(fiber, last_thread_ends_the_process)
{
	cr_assert_eq(status_of(main_ends_first), 0);
}

Test(fiber, main_thread_can_be_joined)
{
	cr_assert_eq(status_of(main_is_joined), 42);
}
