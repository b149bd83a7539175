/* SPDX-License-Identifier: MIT */
/*
 * tests/unit/sync/stress_sync.c - mutex, condition variable, semaphore, parking lot
 * and parking with kernel threads only: no context switches, so that
 * ThreadSanitizer can follow.  Plain data, guarded by what is tested, is what it
 * complains about if an order is missing.
 *
 *	stress_sync [ROUNDS]
 */
#include <string.h>

#include "runtime/sync/cond.h"
#include "runtime/sync/lot.h"
#include "runtime/sched/park.h"
#include "runtime/sync/sem.h"
#include "stress.h"

/* ---- mutex --------------------------------------------------------------- */

static struct fz_mutex mutex;
static unsigned long plain;

static void *lock_and_count(void *arg)
{
	uint64_t seed = (uintptr_t)arg + 1;

	for (unsigned i = 0; i < rounds; i++) {
		switch (random_next(&seed) % 3) {
		case 0:
			fz_mutex_lock(&mutex, FZ_FOREVER);
			break;
		case 1:
			while (fz_mutex_lock(&mutex, now_ns() + 20 * FZ_USEC))
				continue;
			break;
		default:
			while (fz_mutex_trylock(&mutex))
				sched_yield();
		}
		plain++;
		if (fz_mutex_unlock(&mutex))
			return (void *)1;
	}
	return NULL;
}

static void mutexes(void)
{
	for (int kind = FZ_MUTEX_NORMAL; kind <= FZ_MUTEX_ADAPTIVE; kind++) {
		plain = 0;
		memset(&mutex, 0, sizeof(mutex));
		mutex.kind = kind;
		check("mutex", run(lock_and_count) && plain == (unsigned long)THREADS * rounds &&
				       GET(mutex.lock) == 0 && mutex.users == 0);
	}
	memset(&mutex, 0, sizeof(mutex));
}

/* ---- condition variable: a bounded queue --------------------------------- */

static struct fz_cond not_full, not_empty;
static unsigned queue[3], head, used;
static unsigned long sum_in, sum_out;

static void *produce_or_consume(void *arg)
{
	uint64_t seed = (uintptr_t)arg + 1;

	for (unsigned i = 1; i <= rounds; i++) {
		fz_mutex_lock(&mutex, FZ_FOREVER);
		if ((uintptr_t)arg % 2) {
			while (used == 3)
				fz_cond_wait(&not_full, &mutex, FZ_FOREVER);
			queue[(head + used++) % 3] = i;
			sum_in += i;
			fz_cond_wake(&not_empty, 1);
		} else {
			while (!used)
				fz_cond_wait(&not_empty, &mutex,
					     random_next(&seed) % 2 ? FZ_FOREVER :
								      now_ns() + 30 * FZ_USEC);
			sum_out += queue[head];
			head = (head + 1) % 3;
			used--;
			fz_cond_wake(&not_full, 1);
		}
		fz_mutex_unlock(&mutex);
	}
	return NULL;
}

/* ---- semaphore as a lock, and as a count --------------------------------- */

static struct fz_sem binary, items;

static void *semaphore_user(void *arg)
{
	uint64_t seed = (uintptr_t)arg + 1;

	for (unsigned i = 0; i < rounds; i++) {
		while (fz_sem_wait(&binary, random_next(&seed) % 2 ? FZ_FOREVER :
								     now_ns() + 20 * FZ_USEC))
			continue;
		plain++;
		fz_sem_post(&binary);
		if ((uintptr_t)arg % 2)
			fz_sem_post(&items);
		else
			fz_sem_wait(&items, FZ_FOREVER);
	}
	return NULL;
}

/* ---- parking: data handed over with a wake-up ---------------------------- */

static struct {
	struct fz_fiber *fiber;		/* published by number */
	_Atomic uint64_t number;
	unsigned long gift;
} hatch;

static void *park_or_wake(void *arg)
{
	struct fz_fiber *self = fz_self();

	if ((uintptr_t)arg == 0) {
		unsigned long expected = 0;

		hatch.fiber = self;
		for (unsigned i = 0; i < rounds; i++) {
			struct fz_ticket t;
			enum fz_why why;

			fz_enter_runtime(self);
			t = fz_wait_arm(self, 0);
			atomic_store_explicit(&hatch.number, t.number, memory_order_release);
			why = fz_park(self, FZ_FOREVER);
			fz_leave_runtime(self);
			if (why != FZ_WHY_DONE || hatch.gift != ++expected)
				return (void *)1;
		}
		SET(hatch.number, ~(uint64_t)0);
		return NULL;
	}
	for (;;) {
		uint64_t number = atomic_load_explicit(&hatch.number, memory_order_acquire);

		if (number == ~(uint64_t)0)
			return NULL;
		/* Who takes the number has the right, and the duty, to wake. */
		if (number == 0 ||
		    !atomic_compare_exchange_strong(&hatch.number, &number, 0)) {
			sched_yield();
			continue;
		}
		/* Ours alone until the sleeper is woken: nobody else wakes it. */
		hatch.gift++;
		fz_enter_runtime(self);
		if (!fz_wake((struct fz_ticket){ hatch.fiber, number }, FZ_WHY_DONE)) {
			fz_leave_runtime(self);
			return (void *)1;
		}
		fz_leave_runtime(self);
	}
}

/* ---- the lot alone ------------------------------------------------------- */

static _Atomic uint32_t turn;

static void *take_turns(void *arg)
{
	uint32_t me = (uint32_t)(uintptr_t)arg;

	for (unsigned i = 0; i < rounds; i++) {
		uint32_t now;

		while ((now = atomic_load_explicit(&turn, memory_order_acquire)) % THREADS != me)
			fz_lot_wait(&turn, now, i % 3 ? FZ_FOREVER : now_ns() + 50 * FZ_USEC, 0);
		plain++;
		atomic_store_explicit(&turn, now + 1, memory_order_release);
		fz_lot_wake(&turn, UINT32_MAX);
	}
	return NULL;
}

/* Threads that end when woken: their records go with them. */
static _Atomic uint32_t gate;

static void *wait_at_gate(void *arg)
{
	(void)arg;
	while (!atomic_load_explicit(&gate, memory_order_acquire))
		fz_lot_wait(&gate, 0, FZ_FOREVER, 0);
	return NULL;
}

static void vanishing_threads(void)
{
	for (unsigned i = 0; i < rounds / 30; i++) {
		pthread_t threads[THREADS];

		SET(gate, 0);
		for (int n = 0; n < THREADS; n++)
			threads[n] = native(wait_at_gate, NULL);
		if (i % 2)
			sched_yield();
		SET(gate, 1);
		fz_lot_wake(&gate, UINT32_MAX);
		for (int n = 0; n < THREADS; n++)
			pthread_join(threads[n], NULL);
	}
	check("lot, vanishing threads", true);
}

int main(int argc, char **argv)
{
	begin(argc, argv, 3000);
	mutexes();
	check("cond", run(produce_or_consume) && sum_in == sum_out && used == 0);
	plain = 0;
	SET(binary.value, 1);
	check("sem", run(semaphore_user) && plain == (unsigned long)THREADS * rounds &&
			     GET(binary.both) == 1 && GET(items.both) == 0);
	check("park", run(park_or_wake));
	plain = 0;
	check("lot", run(take_turns) && plain == (unsigned long)THREADS * rounds);
	vanishing_threads();
	return end();
}
