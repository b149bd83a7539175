/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <string.h>

#include "runtime_setup.h"

/* A program of its own, because of its big thread-local variables. */
static _Atomic bool go;
static _Atomic unsigned started;

/*
 * More free fibers than a processor keeps: the memory of their stacks is given
 * back, but what libc has at the top stays, and so do they.  Some of it belongs
 * to the thread-local variables of the program, as many as it likes.
 */
static __thread volatile char many_locals[48 * 1024];

static void *use_locals(void *arg)
{
	many_locals[0] = many_locals[sizeof(many_locals) - 1] = 1;
	COUNT(started);
	while (!GET(go))
		nap(FZ_MSEC);
	return arg;
}

static void trimmed_ones_live_again(void)
{
	enum { N = 200 };
	struct fz_fiber *f[N], *first[N];
	unsigned again = 0;

	setup_start(1);
	for (int round = 0; round < 4; round++) {
		SET(go, false);
		SET(started, 0);
		for (uintptr_t i = 0; i < N; i++)
			f[i] = spawn_with(use_locals, (void *)i, 256 * 1024, false);
		cr_assert(EVENTUALLY(GET(started) == N));
		SET(go, true);
		for (uintptr_t i = 0; i < N; i++)
			cr_assert_eq((uintptr_t)join(f[i]), i);
		if (round == 0)
			memcpy(first, f, sizeof(f));
	}
	for (int i = 0; i < N; i++)
		for (int n = 0; n < N; n++)
			again += f[i] == first[n];
	cr_assert_eq(again, N, "only %u of %d were used again", again, N);
}

Test(trim, free_fibers_with_big_locals_live_again)
{
	trimmed_ones_live_again();
}
