/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/lock.h"
#include "runtime_setup.h"

Test(lock, try_succeeds_only_when_free)
{
	struct fz_lock l = FZ_LOCK(FZ_RANK_QUEUE);

	cr_assert(fz_lock_try(&l));
	cr_assert(!fz_lock_try(&l));
	fz_lock_release(&l);
	cr_assert_eq(GET(l.word), 0);
	fz_lock_acquire(&l);
	cr_assert(!fz_lock_try(&l));
	fz_lock_release(&l);
	cr_assert(fz_lock_try(&l));
}

enum { THREADS = 4, ROUNDS = 200000 };

static struct fz_lock lock = FZ_LOCK(FZ_RANK_QUEUE);
static unsigned long plain_count;
static _Atomic int inside;
static _Atomic unsigned violations;

static void *increment(void *arg)
{
	bool tries = (uintptr_t)arg & 1;

	for (unsigned i = 0; i < ROUNDS; i++) {
		if (!tries || !fz_lock_try(&lock))
			fz_lock_acquire(&lock);
		if (atomic_fetch_add_explicit(&inside, 1, memory_order_relaxed))
			COUNT(violations);
		plain_count++;
		atomic_fetch_sub_explicit(&inside, 1, memory_order_relaxed);
		fz_lock_release(&lock);
	}
	return NULL;
}

Test(lock, mutual_exclusion)
{
	pthread_t threads[THREADS];

	for (uintptr_t i = 0; i < THREADS; i++)
		threads[i] = native(increment, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	cr_assert_eq(GET(violations), 0);
	cr_assert_eq(plain_count, (unsigned long)THREADS * ROUNDS);
	cr_assert_eq(GET(lock.word), 0);
}

static _Atomic unsigned entered;

static void *wait_for_it(void *arg)
{
	fz_lock_acquire(&lock);
	COUNT(entered);
	fz_lock_release(&lock);
	return arg;
}

/* Sleepers on the futex are woken, one after the other, to the last. */
Test(lock, all_waiters_get_it)
{
	pthread_t threads[20];

	fz_lock_acquire(&lock);
	for (int i = 0; i < 20; i++)
		threads[i] = native(wait_for_it, NULL);
	cr_assert(EVENTUALLY(GET(lock.word) == 2));
	cr_assert_eq(GET(entered), 0);
	fz_lock_release(&lock);
	for (int i = 0; i < 20; i++)
		pthread_join(threads[i], NULL);
	cr_assert_eq(GET(entered), 20);
}

/* ---- ranks ---------------------------------------------------------------- */

#ifdef FZ_DEBUG

static struct fz_lock ranked[] = {
	FZ_LOCK(FZ_RANK_REGISTRY), FZ_LOCK(FZ_RANK_BUCKET), FZ_LOCK(FZ_RANK_BUCKET),
	FZ_LOCK(FZ_RANK_QUEUE), FZ_LOCK(FZ_RANK_UNSET),
};
enum { OUTER, LOW, HIGH, INNER, UNRANKED };

Test(lock, ranks_are_taken_downwards)
{
	for (int i = OUTER; i <= INNER; i++)
		fz_lock_acquire(&ranked[i]);
	/* Released in any order. */
	fz_lock_release(&ranked[LOW]);
	fz_lock_release(&ranked[INNER]);
	fz_lock_acquire(&ranked[INNER]);
	fz_lock_release(&ranked[OUTER]);
	fz_lock_release(&ranked[INNER]);
	fz_lock_release(&ranked[HIGH]);
	fz_lock_check_none_held("the end");
	/* Who does not wait may ask in any order. */
	fz_lock_acquire(&ranked[INNER]);
	cr_assert(fz_lock_try(&ranked[OUTER]));
	fz_lock_release(&ranked[OUTER]);
	fz_lock_release(&ranked[INNER]);
}

static void take_upwards(void)
{
	fz_lock_acquire(&ranked[INNER]);
	fz_lock_acquire(&ranked[OUTER]);
}

static void take_twice(void)
{
	fz_lock_acquire(&ranked[LOW]);
	fz_lock_acquire(&ranked[LOW]);
}

static void take_pair_upwards(void)
{
	fz_lock_acquire(&ranked[HIGH]);
	fz_lock_acquire(&ranked[LOW]);
}

static void take_unranked(void)
{
	fz_lock_acquire(&ranked[UNRANKED]);
}

static void park_with_lock(void)
{
	fz_lock_acquire(&ranked[OUTER]);
	fz_park(fz_self(), 0);
}

static void release_of_nobody(void)
{
	fz_lock_release(&ranked[OUTER]);
}

static void dies(void (*fn)(void), const char *message)
{
	char said[512] = "";
	int ends[2], status;
	ssize_t n;
	pid_t child;

	cr_assert_eq(pipe(ends), 0);
	child = fork();
	if (child == 0) {
		dup2(ends[1], 2);
		signal(SIGABRT, SIG_DFL);
		fn();
		_exit(0);
	}
	close(ends[1]);
	n = read(ends[0], said, sizeof(said) - 1);
	close(ends[0]);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(n > 0 && WIFSIGNALED(status), "status %x", status);
	cr_assert_eq(WTERMSIG(status), SIGABRT);
	cr_assert_not_null(strstr(said, message), "it said: %s", said);
}

Test(lock, wrong_ranks_are_named)
{
	dies(take_upwards, "asks for a lock of rank REGISTRY while it holds one of rank QUEUE");
	dies(take_twice, "asks for a lock of rank BUCKET while it holds one of rank BUCKET");
	dies(take_pair_upwards, "asks for a lock of rank BUCKET while it holds one of rank BUCKET");
	dies(take_unranked, "has no rank");
	dies(park_with_lock, "fz_park with a lock of rank REGISTRY held");
	dies(release_of_nobody, "rank REGISTRY is released by a thread that does not hold it");
}

#endif
