/* SPDX-License-Identifier: MIT */
#include "runtime/maker.h"

#include "runtime/carrier.h"
#include "runtime/fiber.h"
#include "runtime/host.h"
#include "runtime/monitor.h"
#include "runtime/stack.h"

static struct {
	_Atomic uint32_t wanted;	/* futex; 1: not yet seen */
} maker;

void fz_maker_want_spare(void)
{
	if (FZ_LIKELY(fz_carrier_has_spare()))
		return;
	/* release: pairs with the acquire in fz_maker_run(). */
	if (!atomic_exchange_explicit(&maker.wanted, 1, memory_order_release))
		fz_sys_futex_wake(&maker.wanted, 1);
}

void fz_maker_run(void)
{
	for (;;) {
		/* acquire: pairs with fz_maker_want_spare(). */
		while (!atomic_exchange_explicit(&maker.wanted, 0, memory_order_acquire))
			fz_sys_futex_wait(&maker.wanted, 0, NULL);
		/* Out of memory: the monitor wants it again. */
		if (fz_carrier_keep_spare() == 0)
			fz_monitor_poke();
	}
	__builtin_unreachable();
}

void fz_maker_after_fork(void)
{
	__builtin_memset(&maker, 0, sizeof(maker));
}
