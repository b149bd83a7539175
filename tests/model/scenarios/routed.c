/* SPDX-License-Identifier: MIT */
/*
 * tests/model/scenarios/routed.c - a signal of the process is on its way to a thread: whoever looks for it then sees it.
 */
#include "tests/model/scenario.h"

#include "runtime/base/sys.h"
#include "runtime/sched/sched.h"
#include "runtime/signal/signal_internal.h"

enum { SIG = 10 };

static _Atomic uint32_t arrived;

/* The main thread, and those that it makes. */
static void block(void)
{
	const uint64_t set = fz_signal_bit(SIG);

	fz_signal_set_mask(fz_self(), HOW_BLOCK, &set, NULL);
}

/*
 * All block it and all are fibers, so it stays: in the inbox, with who routes it, or pending.  The first waits in the
 * program's code, since on its way out of the runtime it would route the signal itself, as the other one does.
 */
static void look_or_arrive(int i)
{
	const struct fz_siginfo info = fz_signal_info(SIG, CODE_USER, 0);

	if (i == 0) {
		while (!arrived)
			fz_sys_futex_wait(&arrived, 0, NULL);
		MODEL_CHECK(fz_signal_has_come(fz_signal_bit(SIG)), "a signal that has arrived is overlooked");
	} else {
		fz_enter_runtime(fz_self());
		fz_signal_leave_to_monitor(SIG, &info);
		arrived = 1;
		fz_sys_futex_wake(&arrived, 1);
		fz_leave_runtime(fz_self());
	}
}

SCENARIO(signal_looked_for) = { .name = "signal_looked_for", .what = "a fiber looks for a signal while it is routed",
	.processors = 2, .fibers = 2, .prepare = block, .thread = look_or_arrive };
