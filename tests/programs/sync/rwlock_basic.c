/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/sync/rwlock_basic.c - reader-writer locks of every kind: every way to lock
 * them, every error, and who gets the lock first.
 */
#include "check.h"

static struct event ready = EVENT_INIT, go = EVENT_INIT;
static int affine;		/* which sort of threads helpers are */

static const struct {
	int kind;
	const char *name;
} kinds[] = {
	{ PTHREAD_RWLOCK_PREFER_READER_NP, "reader" },
	{ PTHREAD_RWLOCK_PREFER_WRITER_NP, "writer" },
	{ PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP, "writer, not recursive" },
};

static pthread_t helper(void *(*fn)(void *), void *arg)
{
	return start_as(affine, fn, arg);
}

static int (*const timed[])(pthread_rwlock_t *, const struct timespec *) = {
	pthread_rwlock_timedrdlock, pthread_rwlock_timedwrlock,
};

static int (*const by_clock[])(pthread_rwlock_t *, clockid_t, const struct timespec *) = {
	pthread_rwlock_clockrdlock, pthread_rwlock_clockwrlock,
};

/* Somebody else has it in a way that excludes us. */
static void cannot(pthread_rwlock_t *l, int write)
{
	struct timespec ts;
	long long t0;

	CHECK_KEEPS(write ? pthread_rwlock_trywrlock(l) : pthread_rwlock_tryrdlock(l), EBUSY);
	ts = to_timespec(0);
	CHECK_INT(timed[write](l, &ts), ETIMEDOUT);
	CHECK_INT(by_clock[write](l, CLOCK_REALTIME, &ts), ETIMEDOUT);
	CHECK_INT(by_clock[write](l, CLOCK_MONOTONIC, &ts), ETIMEDOUT);
	ts.tv_sec = -1;
	CHECK_INT(timed[write](l, &ts), ETIMEDOUT);
	CHECK_INT(by_clock[write](l, CLOCK_MONOTONIC, &ts), ETIMEDOUT);
	t0 = now(CLOCK_REALTIME);
	ts = to_timespec(t0 + 5 * MS);
	CHECK_INT(timed[write](l, &ts), ETIMEDOUT);
	CHECK(now(CLOCK_REALTIME) >= t0 + 5 * MS);
	t0 = now(CLOCK_MONOTONIC);
	ts = to_timespec(t0 + 5 * MS);
	CHECK_INT(by_clock[write](l, CLOCK_MONOTONIC, &ts), ETIMEDOUT);
	CHECK(now(CLOCK_MONOTONIC) >= t0 + 5 * MS);
}

static void arguments(pthread_rwlock_t *l)
{
	/* Looked at even if nothing has to be waited for. */
	for (int write = 0; write < 2; write++) {
		struct timespec ts = { 0, 1000000000 };

		CHECK_INT(timed[write](l, &ts), EINVAL);
		CHECK_INT(by_clock[write](l, CLOCK_MONOTONIC, &ts), EINVAL);
		ts.tv_nsec = -1;
		CHECK_INT(timed[write](l, &ts), EINVAL);
		CHECK_INT(by_clock[write](l, CLOCK_REALTIME, &ts), EINVAL);
		ts.tv_nsec = 0;
		CHECK_INT(by_clock[write](l, CLOCK_PROCESS_CPUTIME_ID, &ts), EINVAL);
		CHECK_INT(by_clock[write](l, CLOCK_MONOTONIC_RAW, &ts), EINVAL);
		CHECK_INT(by_clock[write](l, 12345, &ts), EINVAL);
		/* And nothing else. */
		CHECK_OK(timed[write](l, &ts));
		CHECK_OK(pthread_rwlock_unlock(l));
		CHECK_OK(by_clock[write](l, CLOCK_MONOTONIC, &ts));
		CHECK_OK(pthread_rwlock_unlock(l));
	}
}

static void *cannot_read_or_write(void *l)
{
	cannot(l, 0);
	cannot(l, 1);
	return NULL;
}

static void *can_read_not_write(void *l)
{
	struct timespec ts = to_timespec(0);

	cannot(l, 1);
	CHECK_OK(pthread_rwlock_tryrdlock(l));
	CHECK_OK(pthread_rwlock_rdlock(l));
	CHECK_OK(timed[0](l, &ts));
	CHECK_OK(by_clock[0](l, CLOCK_MONOTONIC, &ts));
	cannot(l, 1);
	for (int i = 0; i < 4; i++)
		CHECK_OK(pthread_rwlock_unlock(l));
	return NULL;
}

static void alone(pthread_rwlock_t *l)
{
	struct timespec ts = in(CLOCK_REALTIME, 1000 * MS);

	arguments(l);
	CHECK_KEEPS(pthread_rwlock_rdlock(l), 0);
	CHECK_OK(pthread_rwlock_rdlock(l));
	CHECK_INT(pthread_rwlock_trywrlock(l), EBUSY);
	finish(helper(can_read_not_write, l));
	CHECK_KEEPS(pthread_rwlock_unlock(l), 0);
	finish(helper(can_read_not_write, l));
	CHECK_OK(pthread_rwlock_unlock(l));

	CHECK_KEEPS(pthread_rwlock_wrlock(l), 0);
	CHECK_INT(pthread_rwlock_rdlock(l), EDEADLK);
	CHECK_INT(pthread_rwlock_wrlock(l), EDEADLK);
	CHECK_INT(timed[0](l, &ts), EDEADLK);
	CHECK_INT(timed[1](l, &ts), EDEADLK);
	CHECK_INT(by_clock[0](l, CLOCK_REALTIME, &ts), EDEADLK);
	CHECK_INT(by_clock[1](l, CLOCK_REALTIME, &ts), EDEADLK);
	CHECK_INT(pthread_rwlock_tryrdlock(l), EBUSY);
	CHECK_INT(pthread_rwlock_trywrlock(l), EBUSY);
	finish(helper(cannot_read_or_write, l));
	CHECK_OK(pthread_rwlock_unlock(l));

	CHECK_OK(pthread_rwlock_trywrlock(l));
	CHECK_INT(pthread_rwlock_rdlock(l), EDEADLK);
	finish(helper(cannot_read_or_write, l));
	CHECK_OK(pthread_rwlock_unlock(l));
	CHECK_OK(pthread_rwlock_tryrdlock(l));
	finish(helper(can_read_not_write, l));
	CHECK_OK(pthread_rwlock_unlock(l));
}

/* ---- who goes first ----------------------------------------------------- */

static pthread_rwlock_t *lock;
static char order[64];
static int length;

static void note(char c)
{
	order[__atomic_fetch_add(&length, 1, __ATOMIC_SEQ_CST)] = c;
}

static void *reader(void *arg)
{
	(void)arg;
	event_post(&ready);
	CHECK_OK(pthread_rwlock_rdlock(lock));
	note('r');
	usleep(1000);
	CHECK_OK(pthread_rwlock_unlock(lock));
	return NULL;
}

static void *writer(void *arg)
{
	struct timespec ts = in(CLOCK_MONOTONIC, 60000 * MS);

	event_post(&ready);
	if (arg)
		CHECK_OK(pthread_rwlock_clockwrlock(lock, CLOCK_MONOTONIC, &ts));
	else
		CHECK_OK(pthread_rwlock_wrlock(lock));
	note('w');
	usleep(1000);
	CHECK_OK(pthread_rwlock_unlock(lock));
	return NULL;
}

/* Held for writing, then a writer, a reader, a writer and a reader get in line: who goes first. */
static void after_a_writer(int kind)
{
	pthread_t t[4];

	length = ready.count = 0;
	CHECK_OK(pthread_rwlock_wrlock(lock));
	for (intptr_t i = 0; i < 4; i++) {
		t[i] = i % 2 ? helper(reader, NULL) : helper(writer, (void *)(i / 2));
		event_wait(&ready, (int)i + 1);
		await_others();
	}
	CHECK_INT(length, 0);
	CHECK_OK(pthread_rwlock_unlock(lock));
	for (int i = 0; i < 4; i++)
		finish(t[i]);
	CHECK_INT(length, 4);
	CHECK(memcmp(order, kind == PTHREAD_RWLOCK_PREFER_READER_NP ? "rrww" : "wwrr", 4) == 0);
}

/* Held for reading, and a writer waits: may another reader come in? */
static void behind_a_reader(int kind)
{
	int recursive = kind != PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP;
	struct timespec ts;
	pthread_t t, r;

	length = ready.count = 0;
	CHECK_OK(pthread_rwlock_rdlock(lock));
	t = helper(writer, NULL);
	event_wait(&ready, 1);
	await_others();
	if (recursive) {
		CHECK_OK(pthread_rwlock_rdlock(lock));
		CHECK_OK(pthread_rwlock_tryrdlock(lock));
		r = helper(reader, NULL);
		finish(r);
		CHECK_INT(length, 1);
		CHECK_OK(pthread_rwlock_unlock(lock));
		CHECK_OK(pthread_rwlock_unlock(lock));
		CHECK_OK(pthread_rwlock_unlock(lock));
		finish(t);
		CHECK_INT(order[1], 'w');
		return;
	}
	CHECK_INT(pthread_rwlock_tryrdlock(lock), EBUSY);
	ts = in(CLOCK_REALTIME, 5 * MS);
	CHECK_INT(pthread_rwlock_timedrdlock(lock, &ts), ETIMEDOUT);
	r = helper(reader, NULL);
	event_wait(&ready, 2);
	await_others();
	CHECK_INT(length, 0);
	CHECK_OK(pthread_rwlock_unlock(lock));
	finish(t);
	finish(r);
	CHECK_INT(order[0], 'w');
	CHECK_INT(order[1], 'r');
}

static void *gives_up(void *arg)
{
	struct timespec ts = in(CLOCK_MONOTONIC, 30 * MS);

	(void)arg;
	event_post(&ready);
	CHECK_INT(pthread_rwlock_clockwrlock(lock, CLOCK_MONOTONIC, &ts), ETIMEDOUT);
	note('x');
	return NULL;
}

/* A writer that no longer waits holds nobody up. */
static void behind_one_that_gives_up(void)
{
	pthread_t t, r[3];

	length = ready.count = 0;
	CHECK_OK(pthread_rwlock_rdlock(lock));
	t = helper(gives_up, NULL);
	event_wait(&ready, 1);
	for (int i = 0; i < 3; i++)
		r[i] = helper(reader, NULL);
	finish(t);
	for (int i = 0; i < 3; i++)
		finish(r[i]);
	CHECK_INT(length, 4);
	CHECK_OK(pthread_rwlock_unlock(lock));
	CHECK_OK(pthread_rwlock_trywrlock(lock));
	CHECK_OK(pthread_rwlock_unlock(lock));
}

/* Everybody in line is let in together. */
static pthread_barrier_t all_in;

static void *together(void *arg)
{
	(void)arg;
	event_post(&ready);
	CHECK_OK(pthread_rwlock_rdlock(lock));
	pthread_barrier_wait(&all_in);
	CHECK_OK(pthread_rwlock_unlock(lock));
	return NULL;
}

static void readers_share(void)
{
	pthread_t t[20];

	ready.count = 0;
	CHECK_OK(pthread_barrier_init(&all_in, NULL, 20));
	CHECK_OK(pthread_rwlock_wrlock(lock));
	for (int i = 0; i < 20; i++)
		t[i] = i % 2 ? start(together, NULL) : helper(together, NULL);
	event_wait(&ready, 20);
	await_others();
	CHECK_OK(pthread_rwlock_unlock(lock));
	for (int i = 0; i < 20; i++)
		finish(t[i]);
	CHECK_OK(pthread_barrier_destroy(&all_in));
}

/* A handler runs while its thread waits, and the wait goes on. */
static volatile sig_atomic_t handled;

static void on_signal(int sig)
{
	(void)sig;
	handled++;
}

static void *undisturbed(void *arg)
{
	event_post(&ready);
	CHECK_OK(arg ? pthread_rwlock_wrlock(lock) : pthread_rwlock_rdlock(lock));
	CHECK_OK(pthread_rwlock_unlock(lock));
	event_post(&go);
	return NULL;
}

static void signals(void)
{
	struct sigaction action = { .sa_handler = on_signal };

	CHECK_OK(sigaction(SIGUSR1, &action, NULL));
	for (intptr_t write = 0; write < 2; write++) {
		pthread_t t;

		ready.count = go.count = handled = 0;
		CHECK_OK(pthread_rwlock_wrlock(lock));
		t = helper(undisturbed, (void *)write);
		event_wait(&ready, 1);
		await_others();
		CHECK_OK(pthread_kill(t, SIGUSR1));
		while (!handled)
			usleep(1000);
		await_others();
		CHECK_INT(go.count, 0);
		CHECK_OK(pthread_rwlock_unlock(lock));
		finish(t);
	}
}

static void attributes(void)
{
	pthread_rwlockattr_t attr;
	int v;

	CHECK_OK(pthread_rwlockattr_init(&attr));
	CHECK_OK(pthread_rwlockattr_getkind_np(&attr, &v));
	CHECK_INT(v, PTHREAD_RWLOCK_DEFAULT_NP);
	CHECK_OK(pthread_rwlockattr_getpshared(&attr, &v));
	CHECK_INT(v, PTHREAD_PROCESS_PRIVATE);
	CHECK_INT(pthread_rwlockattr_setkind_np(&attr, 3), EINVAL);
	CHECK_INT(pthread_rwlockattr_setkind_np(&attr, -1), EINVAL);
	CHECK_INT(pthread_rwlockattr_setpshared(&attr, 2), EINVAL);
	CHECK_OK(pthread_rwlockattr_setpshared(&attr, PTHREAD_PROCESS_SHARED));
	CHECK_OK(pthread_rwlockattr_getpshared(&attr, &v));
	CHECK_INT(v, PTHREAD_PROCESS_SHARED);
	CHECK_OK(pthread_rwlockattr_destroy(&attr));
	puts("attributes");
}

static void exercise(pthread_rwlock_t *l, int kind)
{
	lock = l;
	for (affine = 0; affine < 2; affine++) {
		alone(l);
		after_a_writer(kind);
		behind_a_reader(kind);
		behind_one_that_gives_up();
		readers_share();
		signals();
	}
	CHECK_OK(pthread_rwlock_destroy(l));
}

int main(void)
{
	static pthread_rwlock_t plain = PTHREAD_RWLOCK_INITIALIZER;
	static pthread_rwlock_t no_recursion =
		PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;

	attributes();
	for (size_t i = 0; i < COUNT(kinds); i++) {
		pthread_rwlockattr_t attr;
		pthread_rwlock_t l;

		CHECK_OK(pthread_rwlockattr_init(&attr));
		CHECK_OK(pthread_rwlockattr_setkind_np(&attr, kinds[i].kind));
		CHECK_OK(pthread_rwlock_init(&l, &attr));
		CHECK_OK(pthread_rwlockattr_destroy(&attr));
		exercise(&l, kinds[i].kind);
		puts(kinds[i].name);
	}
	exercise(&plain, PTHREAD_RWLOCK_PREFER_READER_NP);
	exercise(&no_recursion, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	puts("static");
	return success();
}
