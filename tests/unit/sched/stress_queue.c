/* SPDX-License-Identifier: MIT */
/*
 * tests/unit/sched/stress_queue.c - lock, run queue, timers and descriptor table
 * with kernel threads only, for ThreadSanitizer.
 *
 *	stress_queue [ROUNDS]
 */
#include "runtime/base/time.h"
#include "runtime/io/fdtab.h"
#include "runtime/base/lock.h"
#include "runtime/sched/runq.h"
#include "runtime/sched/timer.h"
#include "stress.h"

enum { QUEUES = 3, FIBERS = 64 };

static struct fz_lock lock = FZ_LOCK(FZ_RANK_LIMIT);
static unsigned long plain;

static void *increment(void *arg)
{
	for (unsigned i = 0; i < rounds; i++) {
		if (!((uintptr_t)arg & 1) || !fz_lock_try(&lock))
			fz_lock_acquire(&lock);
		plain++;
		fz_lock_release(&lock);
	}
	return NULL;
}

/* A fiber's plain fields are its holder's: the queue hands them over. */
static struct fz_fiber fibers[FIBERS];
static struct fz_runq queues[QUEUES] = { [0 ... QUEUES - 1].lock = FZ_LOCK(FZ_RANK_QUEUE) };

static void *juggle(void *arg)
{
	uint64_t seed = (uintptr_t)arg + 1;
	struct fz_runq *mine = &queues[(uintptr_t)arg % QUEUES];

	for (unsigned i = 0; i < rounds; i++) {
		struct fz_runq *other = &queues[random_next(&seed) % QUEUES];
		struct fz_fiber *f;

		switch (random_next(&seed) % 4) {
		case 0: f = fz_runq_pop_slot(other); break;
		case 1: f = other == mine ? NULL : fz_runq_steal(other, mine); break;
		case 2: f = fz_runq_pop_cpu_bound(mine); break;
		default: f = fz_runq_pop(mine); break;
		}
		if (!f)
			continue;
		f->sig.handlers_run++;
		f->sp = &f;
		random_next(&seed) & 1 ? fz_fiber_found_running(f) : fz_fiber_has_run(f);
		if (random_next(&seed) & 1)
			fz_runq_push_slot(other, f);
		else
			fz_runq_push(other, f);
	}
	return NULL;
}

static unsigned drain(void)
{
	unsigned n = 0;

	for (int i = 0; i < QUEUES; i++) {
		while (fz_runq_pop(&queues[i]))
			n++;
		n += fz_runq_pop_slot(&queues[i]) != NULL;
	}
	return n;
}

/* One thread expires and adds, the others remove what was theirs. */
static struct fz_processor processor;

static void *sleep_often(void *arg)
{
	struct fz_fiber *self = fz_self();
	uint64_t seed = (uintptr_t)arg + 1;

	for (unsigned i = 0; i < rounds / 4; i++) {
		struct fz_ticket t;

		fz_enter_runtime(self);
		t = fz_wait_arm(self, 0);
		fz_timer_add(&processor, self, now_ns() + random_next(&seed) % (5 * FZ_USEC),
			     t.number);
		if (random_next(&seed) % 2)
			fz_timers_expire(&processor.timers, fz_now());
		fz_timer_remove(self);
		fz_wait_disarm(self);
		fz_leave_runtime(self);
	}
	return NULL;
}

static void *remark(void *arg)
{
	uint64_t seed = (uintptr_t)arg + 1;

	for (unsigned i = 0; i < rounds; i++) {
		int fd = (int)(random_next(&seed) % 40);

		switch (random_next(&seed) % 6) {
		case 0: fz_fdtab_set(fd, FZ_FD_SOCKET | FZ_FD_OURS); break;
		case 1: fz_fdtab_change(fd, 0, FZ_FD_RECV_WAITED); break;
		case 2: fz_fdtab_forget_range((unsigned)fd, (unsigned)fd + 3); break;
		case 3: fz_fdtab_share(fd); break;
		case 4: fz_fdtab_share_all(); break;
		default: (void)fz_fdtab_get(fd);
		}
	}
	return NULL;
}

int main(int argc, char **argv)
{
	begin(argc, argv, 20000);
	run(increment);
	check("lock", plain == (unsigned long)THREADS * rounds);
	for (int i = 0; i < FIBERS; i++)
		fz_runq_push(&queues[i % QUEUES], &fibers[i]);
	run(juggle);
	check("runq", drain() == FIBERS);
	fz_timers_init(&processor.timers);
	run(sleep_often);
	check("timers", processor.timers.used == 0 &&
				fz_timers_earliest(&processor.timers) == FZ_FOREVER);
	run(remark);
	check("fdtab", true);
	return end();
}
