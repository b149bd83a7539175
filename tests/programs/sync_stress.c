/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/sync_stress.c - a thousand threads, every tenth with an affinity of
 * its own, on one object of each family (fewer on a spin lock), with what must hold after each.
 *
 *	sync_stress [SECONDS [FAMILY]]
 *
 * for SECONDS (0.1) each; FAMILY is one of mutex, cond, rwlock, barrier, spin, sem,
 * once, c11, life, cancel.
 */
#include "check.h"

#include <poll.h>
#include <semaphore.h>
#include <threads.h>

#define THREADS 1000

/* Fewer where kernel threads would spin until the one with the lock has its turn. */
static int threads = THREADS;
static double seconds = 0.1;
static int stop;			/* what all may look at */
static int begun;
static pthread_mutex_t ready_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ready = PTHREAD_COND_INITIALIZER;

/* What each did, summed up when all have ended. */
struct work {
	void (*step)(struct work *);
	uint64_t seed;
	long done, a, b;
	int id;
} works[THREADS];

static int stopped(void)
{
	return __atomic_load_n(&stop, __ATOMIC_RELAXED);
}

static void *body(void *arg)
{
	struct work *w = arg;

	/* All of them exist before the first begins. */
	CHECK_OK(pthread_mutex_lock(&ready_lock));
	if (++begun == threads)
		CHECK_OK(pthread_cond_broadcast(&ready));
	while (begun < threads)
		CHECK_OK(pthread_cond_wait(&ready, &ready_lock));
	CHECK_OK(pthread_mutex_unlock(&ready_lock));
	/* At least once: a barrier is for all of them, however late they come. */
	do {
		w->step(w);
		w->done++;
		/* Most let others at it, as programs do that wait for other things. */
		switch (random_next(&w->seed) % 16) {
		case 0:
			usleep((useconds_t)(random_next(&w->seed) % 2000));
			break;
		case 1 ... 8:
			sched_yield();
		}
	} while (!stopped());
	return NULL;
}

static long sum_done, sum_a, sum_b;

static void wait_and_stop(void)
{
	CHECK_OK(pthread_mutex_lock(&ready_lock));
	while (begun < threads)
		CHECK_OK(pthread_cond_wait(&ready, &ready_lock));
	CHECK_OK(pthread_mutex_unlock(&ready_lock));
	usleep((useconds_t)(seconds * 1e6));
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
}

static void run(void (*step)(struct work *), void (*release)(void))
{
	static pthread_t t[THREADS];

	stop = begun = 0;
	sum_done = sum_a = sum_b = 0;
	for (int i = 0; i < threads; i++) {
		works[i] = (struct work){ .step = step, .seed = (uint64_t)i + 1, .id = i };
		t[i] = start_as(i % 10 == 9, body, &works[i]);
	}
	wait_and_stop();
	if (release)
		release();
	for (int i = 0; i < threads; i++) {
		finish(t[i]);
		sum_done += works[i].done;
		sum_a += works[i].a;
		sum_b += works[i].b;
	}
	CHECK(sum_done > 0);
}

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

/* ---- threads that live shortly: joined, detached, each once -------------- */

enum { PARENTS = 100 };
static long lived, too_many;
static _Thread_local long fresh;

static void *lives(void *arg)
{
	struct work *w = arg;

	CHECK_INT(fresh, 0);
	fresh = w->id + 1;
	if (w->done % 3 == 0)
		sched_yield();
	else if (w->done % 7 == 0)
		usleep(100);
	CHECK_INT(fresh, w->id + 1);
	__atomic_fetch_add(&lived, 1, __ATOMIC_RELEASE);
	return (void *)(intptr_t)(w->id + 1);
}

static void *lives_apart(void *arg)
{
	CHECK_INT(fresh, 0);
	fresh = 1;
	if (arg)
		CHECK_OK(pthread_detach(pthread_self()));
	__atomic_fetch_sub(&too_many, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&lived, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void start_apart(pthread_t *t, const pthread_attr_t *attr, void *arg)
{
	while (__atomic_load_n(&too_many, __ATOMIC_RELAXED) > PARENTS)
		usleep(100);
	__atomic_fetch_add(&too_many, 1, __ATOMIC_RELAXED);
	CHECK_OK(pthread_create(t, attr, lives_apart, arg));
}

static void life_step(struct work *w)
{
	struct timespec ts;
	pthread_attr_t attr;
	void *result = NULL;
	pthread_t t;
	int r;

	w->a++;
	switch (random_next(&w->seed) % 6) {
	case 0:
		start_apart(&t, NULL, NULL);
		CHECK_OK(pthread_detach(t));
		return;
	case 1:
		start_apart(&t, NULL, w);
		return;
	case 2:
		CHECK_OK(pthread_attr_init(&attr));
		CHECK_OK(pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED));
		start_apart(&t, &attr, NULL);
		CHECK_OK(pthread_attr_destroy(&attr));
		return;
	case 3:
		t = start(lives, w);
		while ((r = pthread_tryjoin_np(t, &result)) == EBUSY)
			sched_yield();
		CHECK_INT(r, 0);
		break;
	case 4:
		t = start(lives, w);
		ts = in(CLOCK_REALTIME, (long long)(random_next(&w->seed) % MS));
		while ((r = pthread_timedjoin_np(t, &result, &ts)) == ETIMEDOUT)
			ts = in(CLOCK_REALTIME, MS);
		CHECK_INT(r, 0);
		break;
	default:
		t = start(lives, w);
		CHECK_OK(pthread_join(t, &result));
	}
	CHECK((intptr_t)result == w->id + 1);
}

static void lifes(void)
{
	lived = too_many = 0;
	threads = PARENTS;
	run(life_step, NULL);
	threads = THREADS;
	while (__atomic_load_n(&lived, __ATOMIC_ACQUIRE) < sum_a)
		usleep(1000);
	usleep(1000);
	CHECK_INT(lived, sum_a);
}

/* ---- cancellation: of threads that wait for all kinds of things ---------- */

static int silent[2];

struct victim {
	unsigned kind;
	int cleaned;
};

static void clean(void *arg)
{
	((struct victim *)arg)->cleaned++;
}

static void unlock(void *arg)
{
	(void)arg;
	/* Error-checking: fails unless it is ours. */
	CHECK_OK(pthread_mutex_unlock(&lock));
}

static void wait_to_be_cancelled(unsigned kind)
{
	struct pollfd p = { .fd = silent[0], .events = POLLIN };
	char c;

	switch (kind) {
	case 0:
		CHECK_INT(read(silent[0], &c, 1), 1);
		break;
	case 1:
		CHECK_OK(sem_wait(&tokens));
		CHECK(__atomic_fetch_add(&taken, 1, __ATOMIC_ACQ_REL) < TOKENS);
		sched_yield();
		__atomic_fetch_sub(&taken, 1, __ATOMIC_ACQ_REL);
		CHECK_OK(sem_post(&tokens));
		break;
	case 2:
		CHECK_OK(pthread_mutex_lock(&lock));
		pthread_cleanup_push(unlock, NULL);
		CHECK_OK(pthread_cond_wait(&not_empty, &lock));
		pthread_cleanup_pop(1);
		break;
	case 3:
		usleep(1000000);
		break;
	case 4:
		poll(&p, 1, -1);
		break;
	case 5:
		sched_yield();
		pthread_testcancel();
		break;
	case 6:
		/* Between its end and the next time it is not to be cancelled at all. */
		CHECK_OK(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL));
		usleep(50);
		CHECK_OK(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL));
		pthread_testcancel();
		break;
	default:
		CHECK_OK(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL));
		for (volatile int i = 0;; i = i + 1)
			continue;
	}
}

static void *victim(void *arg)
{
	struct victim *v = arg;

	pthread_cleanup_push(clean, v);
	for (;;)
		wait_to_be_cancelled(v->kind);
	pthread_cleanup_pop(0);
	return NULL;
}

static void cancel_step(struct work *w)
{
	uint64_t r = random_next(&w->seed);
	/* Few compute: the others are to have their turn. */
	struct victim v = { .kind = r % 64 ? (unsigned)(r / 64 % 7) : 7 };
	pthread_t t = start_as(r / 512 % 16 == 0, victim, &v);

	switch (r / 8192 % 4) {
	case 0:
		break;
	case 1:
		usleep((useconds_t)(r >> 32) % 1000);
		break;
	default:
		sched_yield();
	}
	CHECK_OK(pthread_mutex_lock(&lock));
	if (r / 32768 % 4 == 0)
		CHECK_OK(pthread_cond_signal(&not_empty));
	CHECK_OK(pthread_mutex_unlock(&lock));
	CHECK_OK(pthread_cancel(t));
	CHECK(finish(t) == PTHREAD_CANCELED);
	CHECK_INT(v.cleaned, 1);
}

static void cancels(void)
{
	pthread_mutexattr_t attr;
	int v;

	CHECK_OK(pipe(silent));
	CHECK_OK(sem_init(&tokens, 0, TOKENS));
	CHECK_OK(pthread_mutexattr_init(&attr));
	CHECK_OK(pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK));
	CHECK_OK(pthread_mutex_init(&lock, &attr));
	CHECK_OK(pthread_mutexattr_destroy(&attr));
	threads = PARENTS;
	run(cancel_step, NULL);
	threads = THREADS;
	/* Whoever was cancelled had no token, and nobody has the mutex. */
	CHECK_OK(sem_getvalue(&tokens, &v));
	CHECK_INT(v, TOKENS);
	CHECK_OK(pthread_mutex_trylock(&lock));
	CHECK_OK(pthread_mutex_unlock(&lock));
	CHECK_OK(pthread_mutex_destroy(&lock));
	CHECK_OK(sem_destroy(&tokens));
	CHECK_OK(close(silent[0]));
	CHECK_OK(close(silent[1]));
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*fn)(void);
	} families[] = {
		{ "mutex", mutex }, { "cond", cond }, { "rwlock", rwlocks },
		{ "barrier", barriers }, { "spin", spins }, { "sem", sems },
		{ "once", onces }, { "c11", c11 }, { "life", lifes }, { "cancel", cancels },
	};

	if (argc > 1)
		seconds = atof(argv[1]);
	for (size_t i = 0; i < COUNT(families); i++) {
		if (argc > 2 && strcmp(argv[2], families[i].name))
			continue;
		families[i].fn();
		puts(families[i].name);
		fflush(stdout);
	}
	return success();
}
