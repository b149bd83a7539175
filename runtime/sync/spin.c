/* SPDX-License-Identifier: MIT */
#include "runtime/sync/spin.h"

#include "runtime/sched/sched.h"

enum {
	SPINS = 100,		/* longer than a holder on another CPU usually keeps the lock */
	SPINS_AGAIN = 10,	/* after other fibers have run */
};

void fz_spin_lock_slowly(struct fz_spin *s)
{
	int spins = 0;

	do {
		/* relaxed: a hint; fz_spin_try() decides. */
		while (atomic_load_explicit(&s->word, memory_order_relaxed) != FZ_SPIN_FREE) {
			fz_cpu_relax();
			if (++spins < SPINS)
				continue;
			if (!fz_sched_give_way(fz_self()))
				fz_syscall0(__NR_sched_yield);
			spins = SPINS - SPINS_AGAIN;
		}
	} while (!fz_spin_try(s));
}
