/* SPDX-License-Identifier: MIT */
/*
 * preload/process/memory.c - mlockall, munlockall. The kernel counts and locks all that is mapped,
 * in use or not. So before mlockall() the address space that is reserved for stacks is given back, and
 * nothing is reserved meanwhile.
 */
#include "preload/gate.h"
#include "preload/init.h"
#include "runtime/fiber/stack.h"
#include "runtime/sched/sched.h"

static void drop_reserve(void)
{
	struct fz_fiber *self = fz_self();

	if (fz_runtime_runs())
		fz_enter_runtime(self);
	fz_stack_drop_reserve();
	if (fz_runtime_runs())
		fz_leave_runtime(self);
}

FZ_EXPORT int mlockall(int flags)
{
	bool before;
	int ret;

	fz_enter(FZ_SYM_mlockall);
	/* First, so that no thread reserves anything between here and the call. */
	before = fz_stack_set_all_locked(true);
	drop_reserve();
	ret = fz_real.mlockall(flags);
	fz_stack_set_all_locked(ret == 0 ? flags & MCL_FUTURE : before);
	return ret;
}

FZ_EXPORT int munlockall(void)
{
	int ret;

	fz_enter(FZ_SYM_munlockall);
	ret = fz_real.munlockall();
	if (ret == 0)
		fz_stack_set_all_locked(false);
	return ret;
}
