/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/sync/sync_stress.c - a thousand threads use one object of each family (fewer use a
 * spin lock); invariants are checked after each family.
 *
 *	sync_stress [SECONDS [FAMILY]]
 *
 * for SECONDS (0.1) each; FAMILY is one of mutex, cond, rwlock, barrier, spin, sem,
 * once, c11.
 */
#include "families.h"

#include <semaphore.h>
#include <threads.h>

/* ---- mutex --------------------------------------------------------------- */

static pthread_mutex_t lock;
static long plain, copy;

static void mutex_step(struct work *w)
{
	struct timespec ts;

	switch (random_next(&w->seed) % 4) {
	case 0:
		if (pthread_mutex_trylock(&lock))
			return;
		break;
	case 1:
		ts = in(CLOCK_MONOTONIC, (long long)(random_next(&w->seed) % MS));
		if (pthread_mutex_clocklock(&lock, CLOCK_MONOTONIC, &ts))
			return;
		break;
	default:
		CHECK_OK(pthread_mutex_lock(&lock));
	}
	plain++;
	w->a++;
	if (random_next(&w->seed) % 64 == 0)
		sched_yield();
	copy++;
	CHECK_INT(plain, copy);
	CHECK_OK(pthread_mutex_unlock(&lock));
}

static void mutex(void)
{
	static const int types[] = {
		PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK,
	};

	for (size_t i = 0; i < COUNT(types); i++) {
		pthread_mutexattr_t attr;

		CHECK_OK(pthread_mutexattr_init(&attr));
		CHECK_OK(pthread_mutexattr_settype(&attr, types[i]));
		CHECK_OK(pthread_mutex_init(&lock, &attr));
		plain = copy = 0;
		run(mutex_step, NULL);
		CHECK_INT(plain, sum_a);
		CHECK_OK(pthread_mutex_destroy(&lock));
	}
}

/* ---- condition variable: a bounded queue; nothing in it is lost ---------- */

static pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER, not_full = PTHREAD_COND_INITIALIZER;
static long queue[16], used, head;

static void cond_step(struct work *w)
{
	CHECK_OK(pthread_mutex_lock(&lock));
	if (w->id % 2) {
		while (used == COUNT(queue) && !stopped())
			CHECK_OK(pthread_cond_wait(&not_full, &lock));
		if (used < (long)COUNT(queue)) {
			long gift = (long)(random_next(&w->seed) % 1000);

			queue[(head + used++) % (long)COUNT(queue)] = gift;
			w->a += gift;
			CHECK_OK(pthread_cond_signal(&not_empty));
		}
	} else {
		struct timespec ts = in(CLOCK_REALTIME, (long long)(random_next(&w->seed) % MS));

		while (!used && !stopped())
			if (w->id % 4)
				CHECK_OK(pthread_cond_wait(&not_empty, &lock));
			else if (pthread_cond_timedwait(&not_empty, &lock, &ts))
				break;
		if (used) {
			w->b += queue[head];
			head = (head + 1) % (long)COUNT(queue);
			used--;
			CHECK_OK(pthread_cond_signal(&not_full));
		}
	}
	CHECK_OK(pthread_mutex_unlock(&lock));
}

static void cond_release(void)
{
	CHECK_OK(pthread_mutex_lock(&lock));
	CHECK_OK(pthread_cond_broadcast(&not_empty));
	CHECK_OK(pthread_cond_broadcast(&not_full));
	CHECK_OK(pthread_mutex_unlock(&lock));
}

static void cond(void)
{
	CHECK_OK(pthread_mutex_init(&lock, NULL));
	used = head = 0;
	run(cond_step, cond_release);
	while (used--) {
		sum_b += queue[head];
		head = (head + 1) % (long)COUNT(queue);
	}
	CHECK_INT(sum_a, sum_b);
}

/* ---- reader-writer lock -------------------------------------------------- */

static pthread_rwlock_t rwlock;
static int inside;

static void rwlock_step(struct work *w)
{
	int write = random_next(&w->seed) % 10 == 0;
	struct timespec ts;
	int r;

	switch (random_next(&w->seed) % 4) {
	case 0:
		r = write ? pthread_rwlock_trywrlock(&rwlock) : pthread_rwlock_tryrdlock(&rwlock);
		CHECK(r == 0 || r == EBUSY);
		break;
	case 1:
		ts = in(CLOCK_REALTIME, (long long)(random_next(&w->seed) % MS));
		r = write ? pthread_rwlock_timedwrlock(&rwlock, &ts) :
			    pthread_rwlock_timedrdlock(&rwlock, &ts);
		CHECK(r == 0 || r == ETIMEDOUT);
		break;
	default:
		r = write ? pthread_rwlock_wrlock(&rwlock) : pthread_rwlock_rdlock(&rwlock);
		CHECK_INT(r, 0);
	}
	if (r)
		return;
	if (write) {
		CHECK_INT(__atomic_load_n(&inside, __ATOMIC_RELAXED), 0);
		plain++;
		w->a++;
		if (random_next(&w->seed) % 16 == 0)
			sched_yield();
		copy++;
	} else {
		__atomic_fetch_add(&inside, 1, __ATOMIC_RELAXED);
		CHECK_INT(plain, copy);
		if (random_next(&w->seed) % 16 == 0)
			sched_yield();
		CHECK_INT(plain, copy);
		__atomic_fetch_sub(&inside, 1, __ATOMIC_RELAXED);
	}
	CHECK_OK(pthread_rwlock_unlock(&rwlock));
}

static void rwlocks(void)
{
	for (int kind = 0; kind < 3; kind++) {
		pthread_rwlockattr_t attr;

		CHECK_OK(pthread_rwlockattr_init(&attr));
		CHECK_OK(pthread_rwlockattr_setkind_np(&attr, kind));
		CHECK_OK(pthread_rwlock_init(&rwlock, &attr));
		plain = copy = 0;
		run(rwlock_step, NULL);
		CHECK_INT(plain, sum_a);
		/* Nobody is left in it. */
		CHECK_OK(pthread_rwlock_trywrlock(&rwlock));
		CHECK_OK(pthread_rwlock_unlock(&rwlock));
		CHECK_OK(pthread_rwlock_destroy(&rwlock));
	}
}

/* ---- barrier: all of a round are there before one goes on ---------------- */

static pthread_barrier_t barrier;
static long arrived;
static int over;

static void barrier_step(struct work *w)
{
	int r;

	/* All leave in the same round: the one that ends it decides. */
	for (;;) {
		w->b++;
		__atomic_fetch_add(&arrived, 1, __ATOMIC_RELAXED);
		r = pthread_barrier_wait(&barrier);
		CHECK_INT(__atomic_load_n(&arrived, __ATOMIC_RELAXED), w->b * THREADS);
		if (r == PTHREAD_BARRIER_SERIAL_THREAD) {
			w->a++;
			over = stopped();
		} else {
			CHECK_INT(r, 0);
		}
		pthread_barrier_wait(&barrier);
		if (over)
			return;
	}
}

static void barriers(void)
{
	CHECK_OK(pthread_barrier_init(&barrier, NULL, THREADS));
	arrived = over = 0;
	run(barrier_step, NULL);
	CHECK_INT(sum_a * THREADS, sum_b);
	CHECK_OK(pthread_barrier_destroy(&barrier));
}

/* ---- spin lock: held across what parks ----------------------------------- */

static pthread_spinlock_t spin;

static void spin_step(struct work *w)
{
	CHECK_OK(pthread_spin_lock(&spin));
	plain++;
	w->a++;
	if (random_next(&w->seed) % 64 == 0)
		sched_yield();
	copy++;
	CHECK_INT(plain, copy);
	CHECK_OK(pthread_spin_unlock(&spin));
}

static void spins(void)
{
	CHECK_OK(pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE));
	plain = copy = 0;
	threads = 32;
	run(spin_step, NULL);
	threads = THREADS;
	CHECK_INT(plain, sum_a);
}

/* ---- semaphore: tokens are neither made nor lost ------------------------- */

enum { TOKENS = 20 };
static sem_t tokens;
static int taken;

static void sem_step(struct work *w)
{
	struct timespec ts;

	switch (random_next(&w->seed) % 3) {
	case 0:
		if (sem_trywait(&tokens))
			return;
		break;
	case 1:
		ts = in(CLOCK_REALTIME, (long long)(random_next(&w->seed) % MS));
		if (sem_timedwait(&tokens, &ts))
			return;
		break;
	default:
		CHECK_OK(sem_wait(&tokens));
	}
	CHECK(__atomic_fetch_add(&taken, 1, __ATOMIC_ACQ_REL) < TOKENS);
	if (random_next(&w->seed) % 16 == 0)
		sched_yield();
	__atomic_fetch_sub(&taken, 1, __ATOMIC_ACQ_REL);
	CHECK_OK(sem_post(&tokens));
}

static void sems(void)
{
	int v;

	CHECK_OK(sem_init(&tokens, 0, TOKENS));
	run(sem_step, NULL);
	CHECK_OK(sem_getvalue(&tokens, &v));
	CHECK_INT(v, TOKENS);
	CHECK_OK(sem_destroy(&tokens));
}

/* ---- once: each of many controls, for all who come to it ----------------- */

enum { CONTROLS = 100000 };
static pthread_once_t controls[CONTROLS];
static long once_runs;
static _Thread_local long *once_mine;

static void once_routine(void)
{
	__atomic_fetch_add(&once_runs, 1, __ATOMIC_RELAXED);
	*once_mine += 1;
	if (*once_mine % 4 == 0)
		sched_yield();
}

static void once_step(struct work *w)
{
	long next = __atomic_load_n(&once_runs, __ATOMIC_RELAXED);

	once_mine = &w->a;
	/* All come to the same few, in about the same order. */
	for (long i = next; i < next + 3 && i < CONTROLS; i++)
		CHECK_OK(pthread_once(&controls[i], once_routine));
}

static void onces(void)
{
	long done = 0;

	memset(controls, 0, sizeof(controls));
	once_runs = 0;
	run(once_step, NULL);
	for (int i = 0; i < CONTROLS; i++)
		done += controls[i] != PTHREAD_ONCE_INIT;
	CHECK_INT(once_runs, done);
	CHECK_INT(sum_a, done);
}

/* ---- C11's mutex and condition: a baton passed in turn ------------------- */

static mtx_t mtx;
static cnd_t cnds[THREADS];
static int baton;

static void c11_step(struct work *w)
{
	CHECK_INT(mtx_lock(&mtx), thrd_success);
	while (baton != w->id && !stopped())
		CHECK_INT(cnd_wait(&cnds[w->id], &mtx), thrd_success);
	if (baton == w->id) {
		w->a++;
		baton = (baton + 1) % THREADS;
		CHECK_INT(cnd_signal(&cnds[baton]), thrd_success);
	}
	CHECK_INT(mtx_unlock(&mtx), thrd_success);
}

static void c11_release(void)
{
	CHECK_INT(mtx_lock(&mtx), thrd_success);
	for (int i = 0; i < THREADS; i++)
		CHECK_INT(cnd_broadcast(&cnds[i]), thrd_success);
	CHECK_INT(mtx_unlock(&mtx), thrd_success);
}

static void c11(void)
{
	CHECK_INT(mtx_init(&mtx, mtx_plain), thrd_success);
	for (int i = 0; i < THREADS; i++)
		CHECK_INT(cnd_init(&cnds[i]), thrd_success);
	baton = 0;
	run(c11_step, c11_release);
	/* Nobody had it twice in a round, nobody was passed over. */
	for (int i = 1; i < THREADS; i++)
		CHECK(works[0].a - works[i].a >= 0 && works[0].a - works[i].a <= 1);
	for (int i = 0; i < THREADS; i++)
		cnd_destroy(&cnds[i]);
	mtx_destroy(&mtx);
}

int main(int argc, char **argv)
{
	static const struct family families[] = {
		{ "mutex", mutex }, { "cond", cond }, { "rwlock", rwlocks },
		{ "barrier", barriers }, { "spin", spins }, { "sem", sems },
		{ "once", onces }, { "c11", c11 },
	};

	return run_families(families, COUNT(families), argc, argv);
}
