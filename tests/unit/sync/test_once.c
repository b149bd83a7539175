/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>

#include "runtime/sync/once.h"
#include "runtime_setup.h"

static struct fz_once once;
static _Atomic unsigned waited;

static bool is_parked(struct fz_fiber *f)
{
	return (GET(f->wait) & FZ_WAIT_STATE_MASK) == FZ_WAIT_PARKED;
}

static void *come(void *arg)
{
	bool mine = fz_once_begin(&once);

	(void)arg;
	if (mine) {
		nap(FZ_MSEC);
		fz_once_end(&once, true);
	}
	COUNT(waited);
	return (void *)(uintptr_t)mine;
}

Test(once, others_wait_and_the_next_takes_over)
{
	struct fz_fiber *f[5];
	unsigned did = 0;

	setup_start(1);
	cr_assert(fz_once_begin(&once));
	cr_assert(!fz_once_is_done(&once));
	for (int i = 0; i < 5; i++) {
		f[i] = spawn(come, NULL);
		cr_assert(EVENTUALLY(is_parked(f[i])));
	}
	cr_assert_eq(GET(waited), 0);
	fz_once_end(&once, false);
	for (int i = 0; i < 5; i++)
		did += join(f[i]) != NULL;
	cr_assert_eq(did, 1);
	cr_assert(fz_once_is_done(&once));
	cr_assert(!fz_once_begin(&once));
	cr_assert_eq(GET(once.word), 2, "as in glibc");
}

Test(once, a_child_does_not_wait_for_the_parents_thread)
{
	setup_layout();
	cr_assert(fz_once_begin(&once));
	fz_once_after_fork();
	cr_assert(fz_once_begin(&once));
	fz_once_end(&once, true);
	cr_assert(!fz_once_begin(&once));
}
