/* SPDX-License-Identifier: MIT */
#include "runtime/fiber/make.h"

#include <asm/errno.h>

#include "runtime/base/host.h"
#include "runtime/base/limits.h"
#include "runtime/base/time.h"
#include "runtime/fiber/adopt.h"
#include "runtime/fiber/pool.h"
#include "runtime/fiber/stack.h"
#include "runtime/sched/announce.h"
#include "runtime/sched/birth.h"
#include "runtime/sched/carrier.h"
#include "runtime/sched/park.h"
#include "runtime/sched/sched.h"
#include "runtime/sched/spawner.h"

static int manufacture(const struct fz_birth *birth, void (*live)(struct fz_fiber *),
		       struct fz_fiber **ret_fiber)
{
	struct fz_fiber *f;
	void *stack;
	size_t size;
	int err;

	fz_enter_runtime(fz_self());
	err = fz_stack_alloc(birth->stack_size, birth->guard_size, &stack, &size);
	fz_leave_runtime(fz_self());
	if (err)
		return -ENOMEM;
	err = fz_adopt_context(stack, size, live, &f);
	if (err) {
		fz_enter_runtime(fz_self());
		fz_stack_free(stack, birth->stack_size, birth->guard_size);
		fz_leave_runtime(fz_self());
		return err;
	}
	f->kind = FZ_KIND_FIBER;
	f->mem.stack = stack;
	f->mem.stack_size = size;
	f->mem.guard_size = birth->guard_size;
	*ret_fiber = f;
	return 0;
}

/*
 * libc calls the allocator while it makes a kernel thread, for the caller or for the carrier
 * spawner.  If the allocator is the program's own, its locks may be held by a fiber that waits
 * for a processor.  Only a carrier that exists already can run that fiber, so wait for a spare
 * one, for at most 50 times 0.2 ms.
 */
static void await_spare(struct fz_fiber *self)
{
	const int most = 50;

	if (!fz_host.has_own_allocator || self->kind != FZ_KIND_FIBER)
		return;
	for (int tries = 0; tries < most && !fz_carrier_has_spare(); tries++) {
		fz_spawner_want_spare();
		fz_waits_for(self, FZ_FOR_RUNTIME, NULL);
		fz_wait_arm(self, 0);
		fz_park(self, fz_now() + FZ_MSEC / 5);
	}
}

int fz_fiber_make(struct fz_fiber *self, const struct fz_birth *birth,
		  void (*live)(struct fz_fiber *), struct fz_fiber **ret_fiber)
{
	const struct __kernel_timespec pause = fz_timespec(FZ_MSEC);
	const size_t small_stack = 512 * 1024, headroom = 1 << 20;
	struct fz_birth small = *birth;
	int err;

	*ret_fiber = NULL;
	if (birth->any_stack_size && birth->stack_size > small_stack &&
	    !fz_limits_allow_memory(birth->stack_size + headroom)) {
		fz_limits_tell("the limit on memory (ulimit -v or -d) leaves little: new threads "
			       "get stacks of 512 KB; raise the limit for larger ones");
		small.stack_size = small_stack;
		birth = &small;
		*ret_fiber = fz_pool_search(birth);
		if (*ret_fiber)
			return 0;
	}
	await_spare(self);
	for (int tries = 10; tries; tries--) {
		fz_leave_runtime(self);
		/* libc takes locks of its own. */
		fz_spawner_turn_begin(self);
		err = manufacture(birth, live, ret_fiber);
		fz_spawner_turn_end(self);
		fz_enter_runtime(self);
		if (!err)
			return 0;
		*ret_fiber = fz_pool_search(birth);
		if (!*ret_fiber && self->kind == FZ_KIND_FIBER) {
			fz_sched_yield(self);
			*ret_fiber = fz_pool_search(birth);
		}
		if (*ret_fiber)
			return 0;
		/* The kernel threads of new fibers count against the limit until they have ended. */
		if (err == -EAGAIN && fz_birth_await_all()) {
			tries++;
			continue;
		}
		if (err != -EAGAIN || tries == 1)
			break;
		fz_carrier_make_room();
		fz_leave_runtime(self);
		fz_announce_brief(self);
		fz_syscall2(__NR_nanosleep, (long)&pause, 0);
		fz_announce_end(self);
		fz_enter_runtime(self);
	}
	return -EAGAIN;
}
