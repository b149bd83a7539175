/* SPDX-License-Identifier: MIT */
#include "runtime/sched/spawner.h"

#include "runtime/base/host.h"
#include "runtime/base/time.h"
#include "runtime/fiber/fiber.h"
#include "runtime/fiber/stack.h"
#include "runtime/sched/carrier.h"
#include "runtime/sched/monitor.h"

static struct {
	_Atomic uint32_t wanted;	/* futex; 1: asked for, and the spawner has not seen it */
} spawner;

void fz_spawner_want_spare(void)
{
	if (FZ_LIKELY(fz_carrier_has_spare()))
		return;
	/* release: pairs with the acquire in fz_spawner_run(). */
	if (!atomic_exchange_explicit(&spawner.wanted, 1, memory_order_release))
		fz_sys_futex_wake(&spawner.wanted, 1);
}

void fz_spawner_run(void)
{
	const struct __kernel_timespec late = fz_timespec(300 * FZ_MSEC);

	for (;;) {
		/* acquire: pairs with fz_spawner_want_spare(). */
		while (!atomic_exchange_explicit(&spawner.wanted, 0, memory_order_acquire))
			fz_sys_futex_wait(&spawner.wanted, 0, NULL);
		if (FZ_FAULT(late_spare))
			fz_syscall2(__NR_nanosleep, (long)&late, 0);
		/* After a failure the monitor asks again at its next tick. */
		if (fz_carrier_keep_spare() == 0)
			fz_monitor_poke();
	}
	__builtin_unreachable();
}

void fz_spawner_after_fork(void)
{
	__builtin_memset(&spawner, 0, sizeof(spawner));
}
