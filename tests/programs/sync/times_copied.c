/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/sync/times_copied.c - the time until which a call waits is read once, when it begins: it may
 * change and its memory may go while the call waits.
 */
#include "check.h"

#include <linux/futex.h>
#include <semaphore.h>
#include <sys/mman.h>

enum kind {
	SEM_TIMED, SEM_CLOCK, MUTEX_TIMED, MUTEX_CLOCK, READ_TIMED, READ_CLOCK, WRITE_TIMED, WRITE_CLOCK, COND_TIMED,
	COND_CLOCK, JOIN_TIMED, JOIN_CLOCK, SLEEP_REALTIME, SLEEP_MONOTONIC, FUTEX, KINDS
};

static const struct {
	const char *name;
	clockid_t clock;
} kinds[KINDS] = {
	[SEM_TIMED] = { "sem_timedwait", CLOCK_REALTIME },
	[SEM_CLOCK] = { "sem_clockwait", CLOCK_MONOTONIC },
	[MUTEX_TIMED] = { "pthread_mutex_timedlock", CLOCK_REALTIME },
	[MUTEX_CLOCK] = { "pthread_mutex_clocklock", CLOCK_MONOTONIC },
	[READ_TIMED] = { "pthread_rwlock_timedrdlock", CLOCK_REALTIME },
	[READ_CLOCK] = { "pthread_rwlock_clockrdlock", CLOCK_MONOTONIC },
	[WRITE_TIMED] = { "pthread_rwlock_timedwrlock", CLOCK_REALTIME },
	[WRITE_CLOCK] = { "pthread_rwlock_clockwrlock", CLOCK_MONOTONIC },
	[COND_TIMED] = { "pthread_cond_timedwait", CLOCK_REALTIME },
	[COND_CLOCK] = { "pthread_cond_clockwait", CLOCK_MONOTONIC },
	[JOIN_TIMED] = { "pthread_timedjoin_np", CLOCK_REALTIME },
	[JOIN_CLOCK] = { "pthread_clockjoin_np", CLOCK_MONOTONIC },
	[SLEEP_REALTIME] = { "clock_nanosleep, CLOCK_REALTIME", CLOCK_REALTIME },
	[SLEEP_MONOTONIC] = { "clock_nanosleep, CLOCK_MONOTONIC", CLOCK_MONOTONIC },
	[FUTEX] = { "FUTEX_WAIT_BITSET", CLOCK_REALTIME },
};

struct waiter {
	enum kind kind;
	pthread_t thread;
	struct timespec *until;	/* alone in its page */
	int begun, ended;
};

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
/* Two threads that are still there, since not two may wait for the same one. */
static pthread_t joined[2];
static struct event released = EVENT_INIT;
static size_t page_size;

static int wait_for_cond(enum kind kind, const struct timespec *until, int *begun)
{
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
	int ret;

	CHECK_OK(pthread_mutex_lock(&lock));
	__atomic_store_n(begun, 1, __ATOMIC_RELEASE);
	ret = kind == COND_TIMED ? pthread_cond_timedwait(&cond, &lock, until) :
	      pthread_cond_clockwait(&cond, &lock, kinds[kind].clock, until);
	CHECK_OK(pthread_mutex_unlock(&lock));
	return ret;
}

/* Returns the error, or 0.  Nothing between what *begun says and the call makes the thread sleep. */
static int wait_until(enum kind kind, const struct timespec *until, int *begun)
{
	const clockid_t clock = kinds[kind].clock;
	uint32_t word = 0;
	sem_t sem;

	if (kind == COND_TIMED || kind == COND_CLOCK)
		return wait_for_cond(kind, until, begun);
	CHECK_OK(sem_init(&sem, 0, 0));
	__atomic_store_n(begun, 1, __ATOMIC_RELEASE);
	switch (kind) {
	case SEM_TIMED: return sem_timedwait(&sem, until) ? errno : 0;
	case SEM_CLOCK: return sem_clockwait(&sem, clock, until) ? errno : 0;
	case MUTEX_TIMED: return pthread_mutex_timedlock(&held, until);
	case MUTEX_CLOCK: return pthread_mutex_clocklock(&held, clock, until);
	case READ_TIMED: return pthread_rwlock_timedrdlock(&rwlock, until);
	case READ_CLOCK: return pthread_rwlock_clockrdlock(&rwlock, clock, until);
	case WRITE_TIMED: return pthread_rwlock_timedwrlock(&rwlock, until);
	case WRITE_CLOCK: return pthread_rwlock_clockwrlock(&rwlock, clock, until);
	case JOIN_TIMED: return pthread_timedjoin_np(joined[0], NULL, until);
	case JOIN_CLOCK: return pthread_clockjoin_np(joined[1], NULL, clock, until);
	case SLEEP_REALTIME:
	case SLEEP_MONOTONIC: return clock_nanosleep(clock, TIMER_ABSTIME, until, NULL);
	case FUTEX:
		return syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE | FUTEX_CLOCK_REALTIME, 0, until, NULL,
			       FUTEX_BITSET_MATCH_ANY) ? errno : 0;
	default: return -1;
	}
}

static void *waits(void *arg)
{
	struct waiter *w = arg;
	const int expected = w->kind == SLEEP_REALTIME || w->kind == SLEEP_MONOTONIC ? 0 : ETIMEDOUT;
	struct timespec until;
	int ret;

	pthread_barrier_wait(&barrier);
	until = in(kinds[w->kind].clock, 1000 * MS);
	*w->until = until;
	ret = wait_until(w->kind, w->until, &w->begun);
	if (ret != expected)
		fail(__FILE__, __LINE__, "%s: %d, not %d\n", kinds[w->kind].name, ret, expected);
	CHECK(now(kinds[w->kind].clock) >= until.tv_sec * 1000 * MS + until.tv_nsec);
	__atomic_store_n(&w->ended, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void *is_joined(void *arg)
{
	event_wait(&released, *(const int *)arg);
	return NULL;
}

/* Long only where there is a fault. */
static void await_end(const struct waiter *w, int is_gone)
{
	const long long end = now(CLOCK_MONOTONIC) + 20000 * MS;

	while (!__atomic_load_n(&w->ended, __ATOMIC_ACQUIRE)) {
		if (now(CLOCK_MONOTONIC) > end)
			fail(__FILE__, __LINE__, "%s: no end, its time %s\n", kinds[w->kind].name,
			     is_gone ? "has gone" : "has changed");
		usleep(1000);
	}
	finish(w->thread);
}

static void start_waiters(struct waiter *waiters)
{
	for (int i = 0; i < KINDS; i++) {
		struct timespec *until = mmap(NULL, page_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
					      -1, 0);

		CHECK(until != MAP_FAILED);
		waiters[i] = (struct waiter){ .kind = (enum kind)i, .until = until };
		waiters[i].thread = start(waits, &waiters[i]);
	}
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < KINDS; i++)
		while (!__atomic_load_n(&waiters[i].begun, __ATOMIC_ACQUIRE))
			usleep(1000);
	/* On a busy machine some may have ended meanwhile. */
	await_others();
	for (int i = 0; i < 3; i++)
		settle();
}

/* Every second kind's time goes, beginning with the first or the second, and the others' change. */
static void wait_while_times_change(int first_gone)
{
	struct waiter waiters[KINDS];
	int count = first_gone + 1;

	for (int i = 0; i < 2; i++)
		joined[i] = start(is_joined, &count);
	start_waiters(waiters);
	for (int i = 0; i < KINDS; i++) {
		if (i % 2 == first_gone)
			CHECK_OK(munmap(waiters[i].until, page_size));
		else
			waiters[i].until->tv_sec += 1000;
	}
	for (int i = 0; i < KINDS; i++)
		await_end(&waiters[i], i % 2 == first_gone);
	for (int i = 0; i < KINDS; i++)
		if (i % 2 != first_gone)
			CHECK_OK(munmap(waiters[i].until, page_size));
	event_post(&released);
	for (int i = 0; i < 2; i++)
		finish(joined[i]);
}

int main(void)
{
	page_size = (size_t)sysconf(_SC_PAGESIZE);
	CHECK_OK(pthread_barrier_init(&barrier, NULL, KINDS + 1));
	CHECK_OK(pthread_mutex_lock(&held));
	CHECK_OK(pthread_rwlock_wrlock(&rwlock));
	for (int first_gone = 0; first_gone < 2; first_gone++) {
		wait_while_times_change(first_gone);
		printf("round %d\n", first_gone + 1);
	}
	CHECK_OK(pthread_rwlock_unlock(&rwlock));
	CHECK_OK(pthread_mutex_unlock(&held));
	CHECK_OK(pthread_barrier_destroy(&barrier));
	return success();
}
