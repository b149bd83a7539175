/* SPDX-License-Identifier: MIT */
#include "runtime/spin.h"

#include "runtime/sched.h"

enum {
	SPINS = 100,		/* longer than who runs on another CPU usually has it */
	SPINS_AGAIN = 10,	/* once others have been let run */
};

static void give_way(struct fz_fiber *self)
{
	/* relaxed: only this thread and its handlers write it. */
	bool nested = atomic_load_explicit(&self->in_runtime, memory_order_relaxed);

	if (self->kind != FZ_KIND_FIBER || nested) {
		fz_syscall0(__NR_sched_yield);
		return;
	}
	fz_enter_runtime(self);
	fz_sched_yield(self);
	fz_leave_runtime(self);
}

void fz_spin_lock_slowly(struct fz_spin *s)
{
	int spins = 0;

	do {
		/* relaxed: a hint that trying again may succeed. */
		while (atomic_load_explicit(&s->word, memory_order_relaxed) != FZ_SPIN_FREE) {
			fz_cpu_relax();
			if (++spins < SPINS)
				continue;
			give_way(fz_self());
			spins = SPINS - SPINS_AGAIN;
		}
	} while (!fz_spin_try(s));
}
