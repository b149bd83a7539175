/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/sync/syscall_futex.c - futexes by syscall(2): arguments, results,
 * timeouts, signals, cancellation, other processes, and a mutex made of them.
 */
#include "futex.h"

static uint32_t words[4];

/* ---- arguments ---------------------------------------------------------- */

static void *arguments(void *arg)
{
	const int ops[] = { FUTEX_WAIT_PRIVATE, FUTEX_WAIT };
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint32_t *last = (uint32_t *)(void *)(page + 4092), *gone = (uint32_t *)(void *)(page + 4096);
	uint32_t *odd = (uint32_t *)(void *)(page + 2);
	struct timespec bad[] = { { 0, 1000000000 }, { 0, -1 }, { -1, 0 } };

	CHECK(page != MAP_FAILED);
	CHECK_OK(mprotect(gone, 4096, PROT_NONE));
	for (size_t i = 0; i < COUNT(ops); i++) {
		words[0] = 1;
		CHECK_ERR(futex(words, ops[i], 0, NULL, NULL, 0), EAGAIN);
		CHECK_ERR(futex(odd, ops[i], 0, NULL, NULL, 0), EINVAL);
		CHECK_ERR(futex(NULL, ops[i], 0, NULL, NULL, 0), EFAULT);
		CHECK_ERR(futex(gone, ops[i], 0, NULL, NULL, 0), EFAULT);
		CHECK_ERR(futex(last, ops[i], 1, NULL, NULL, 0), EAGAIN);
		CHECK_ERR(futex(words, ops[i], 1, (void *)8, NULL, 0), EFAULT);
		CHECK_ERR(futex(words, ops[i], 1, gone, NULL, 0), EFAULT);
		for (size_t k = 0; k < COUNT(bad); k++)
			CHECK_ERR(futex(words, ops[i], 1, &bad[k], NULL, 0), EINVAL);
	}
	CHECK_ERR(futex(words, FUTEX_WAIT_BITSET_PRIVATE, 1, NULL, NULL, 0), EINVAL);
	CHECK_ERR(futex(words, FUTEX_WAKE_BITSET_PRIVATE, 1, NULL, NULL, 0), EINVAL);
	CHECK_ERR(futex(odd, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0), EINVAL);
	CHECK_KEEPS(futex(gone, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0), 0);
	CHECK_ERR(futex(words, FUTEX_WAKE_PRIVATE | FUTEX_CLOCK_REALTIME, 1, NULL, NULL, 0), ENOSYS);
	CHECK_ERR(futex(words, 99 | FUTEX_PRIVATE_FLAG, 1, NULL, NULL, 0), ENOSYS);
	CHECK_ERR(futex(words, FUTEX_CMP_REQUEUE_PRIVATE, 1, (void *)1, words + 1, 0), EAGAIN);
	CHECK_ERR(futex(gone, FUTEX_CMP_REQUEUE_PRIVATE, 1, (void *)1, words + 1, 0), EFAULT);
	CHECK_ERR(futex(words, FUTEX_CMP_REQUEUE_PRIVATE, -1, (void *)1, words + 1, 1), EINVAL);
	CHECK_ERR(futex(words, FUTEX_REQUEUE_PRIVATE, 1, (void *)1, odd, 1), EINVAL);
	CHECK_KEEPS(futex(words, FUTEX_CMP_REQUEUE_PRIVATE, 1, (void *)1, words + 1, 1), 0);
	CHECK_KEEPS(wake(words, 1), 0);
	CHECK_OK(munmap(page, 4096));
	return arg;
}

/* ---- timeouts ----------------------------------------------------------- */

static void timed(int op, clockid_t clock, bool absolute)
{
	long long begin = now(CLOCK_MONOTONIC);
	struct timespec ts = absolute ? in(clock, 5 * MS) : to_timespec(5 * MS);
	struct timespec past = absolute ? in(clock, -5 * MS) : to_timespec(0);

	words[0] = 7;
	CHECK_ERR(futex(words, op, 7, &ts, NULL, FUTEX_BITSET_MATCH_ANY), ETIMEDOUT);
	/* The two clocks are read one after the other, and may be slewed. */
	CHECK(now(CLOCK_MONOTONIC) - begin >= (clock == CLOCK_REALTIME ? 4 : 5) * MS);
	CHECK_ERR(futex(words, op, 7, &past, NULL, FUTEX_BITSET_MATCH_ANY), ETIMEDOUT);
	CHECK_ERR(futex(words, op, 8, &past, NULL, FUTEX_BITSET_MATCH_ANY), EAGAIN);
}

static void *timeouts(void *arg)
{
	timed(FUTEX_WAIT_PRIVATE, CLOCK_MONOTONIC, false);
	timed(FUTEX_WAIT_BITSET_PRIVATE, CLOCK_MONOTONIC, true);
	timed(FUTEX_WAIT_BITSET_PRIVATE | FUTEX_CLOCK_REALTIME, CLOCK_REALTIME, true);
	timed(FUTEX_WAIT, CLOCK_MONOTONIC, false);
	timed(FUTEX_WAIT_BITSET, CLOCK_MONOTONIC, true);
	timed(FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, CLOCK_REALTIME, true);
	/* Linux 4.5 began to allow this, and newer ones do not any more. */
	words[0] = 7;
	printf("FUTEX_WAIT by CLOCK_REALTIME: %ld\n",
	       futex(words, FUTEX_WAIT_PRIVATE | FUTEX_CLOCK_REALTIME, 7,
		     &(struct timespec){ 0, 5 * MS }, NULL, 0));
	printf("%s\n", strerrorname_np(errno));
	return arg;
}

/* ---- signals ------------------------------------------------------------ */

static _Atomic int handled, about;

static void handler(int sig)
{
	(void)sig;
	handled++;
}

static void *interrupted(void *arg)
{
	struct timespec ts = to_timespec(10000 * MS);

	about++;
	CHECK_ERR(futex(&first, FUTEX_WAIT_PRIVATE, 0, arg ? &ts : NULL, NULL, 0), EINTR);
	return NULL;
}

static void *restarted(void *arg)
{
	about++;
	CHECK_OK(wait_for(&first, 0));
	return arg;
}

static void install(int flags)
{
	struct sigaction sa = { .sa_flags = flags };

	sa.sa_handler = handler;
	CHECK_OK(sigaction(SIGUSR1, &sa, NULL));
}

static void signals(void)
{
	pthread_t t;

	/* Without SA_RESTART, and with a timeout in any case. */
	for (int flags = 0; flags < 3; flags++) {
		install(flags & 1 ? SA_RESTART : 0);
		about = 0;
		t = start(interrupted, flags ? (void *)1 : NULL);
		while (!about)
			usleep(100);
		do {
			CHECK_OK(pthread_kill(t, SIGUSR1));
			settle();
		} while (pthread_tryjoin_np(t, NULL) == EBUSY);
	}
	install(SA_RESTART);
	about = handled = 0;
	t = start(restarted, NULL);
	while (!about)
		usleep(100);
	settle();
	CHECK_OK(pthread_kill(t, SIGUSR1));
	while (!handled)
		usleep(100);
	settle();
	CHECK_INT(pthread_tryjoin_np(t, NULL), EBUSY);
	until(1, wake_one);
	finish(t);
}

/* From a handler, which may wake what it interrupted. */
static void waking_handler(int sig)
{
	(void)sig;
	first = 1;
	wake(&first, 1);
}

static void *wait_for_change(void *arg)
{
	about++;
	while (__atomic_load_n(&first, __ATOMIC_ACQUIRE) == 0)
		wait_for(&first, 0);
	return arg;
}

static void wake_from_handler(void)
{
	struct sigaction sa = { .sa_flags = SA_RESTART };
	pthread_t t;

	sa.sa_handler = waking_handler;
	CHECK_OK(sigaction(SIGUSR2, &sa, NULL));
	about = 0;
	t = start(wait_for_change, NULL);
	while (!about)
		usleep(100);
	settle();
	CHECK_OK(raise(SIGUSR2));
	finish(t);
	first = 0;
}

/* ---- cancellation ------------------------------------------------------- */

static void *not_cancelled(void *arg)
{
	about++;
	CHECK_OK(wait_for(&first, 0));
	about++;
	pthread_testcancel();
	return arg;
}

/* A futex is no cancellation point. */
static void cancel(void)
{
	pthread_t t;

	about = 0;
	t = start(not_cancelled, NULL);
	while (!about)
		usleep(100);
	settle();
	CHECK_OK(pthread_cancel(t));
	settle();
	CHECK_INT(about, 1);
	until(1, wake_one);
	CHECK(finish(t) == PTHREAD_CANCELED);
	CHECK_INT(about, 2);
}

/* ---- another process ---------------------------------------------------- */

static void *shared_waiter(void *arg)
{
	uint32_t *word = arg;

	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == 0)
		CHECK(futex(word, FUTEX_WAIT, 0, NULL, NULL, 0) == 0 || errno == EAGAIN);
	return NULL;
}

static void processes(void)
{
	uint32_t *word = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			      -1, 0);
	pthread_t threads[WAITERS];
	int status;
	pid_t pid;

	CHECK(word != MAP_FAILED);
	for (int i = 0; i < WAITERS; i++)
		threads[i] = start(shared_waiter, word);
	settle();
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		usleep(2000);
		__atomic_store_n(word, 1, __ATOMIC_RELEASE);
		_exit(futex(word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0) < 0);
	}
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK_INT(status, 0);
	finish_all(threads);
	CHECK_OK(munmap(word, 4096));
}

/* ---- a mutex of futexes ------------------------------------------------- */

enum { LOCKERS = 40, ROUNDS = 2000 };

static uint32_t lock_word;
static long guarded;

/* Drepper's: 0 free, 1 held, 2 held and waited for. */
static void lock(int op_wait)
{
	uint32_t c = 0;

	if (__atomic_compare_exchange_n(&lock_word, &c, 1, false, __ATOMIC_ACQUIRE,
					__ATOMIC_RELAXED))
		return;
	while (__atomic_exchange_n(&lock_word, 2, __ATOMIC_ACQUIRE) != 0)
		futex(&lock_word, op_wait, 2, NULL, NULL, FUTEX_BITSET_MATCH_ANY);
}

static void unlock(int op_wake)
{
	if (__atomic_exchange_n(&lock_word, 0, __ATOMIC_RELEASE) == 2)
		futex(&lock_word, op_wake, 1, NULL, NULL, 0);
}

static void *locker(void *arg)
{
	bool private_ = arg != NULL;

	for (int i = 0; i < ROUNDS; i++) {
		lock(private_ ? FUTEX_WAIT_BITSET_PRIVATE : FUTEX_WAIT);
		guarded++;
		if (i % 16 == 0)
			sched_yield();
		unlock(private_ ? FUTEX_WAKE_PRIVATE : FUTEX_WAKE);
	}
	return NULL;
}

static void mutex(void *arg)
{
	pthread_t threads[LOCKERS];

	guarded = 0;
	for (int i = 0; i < LOCKERS; i++)
		threads[i] = i % 8 == 7 ? start_affine(locker, arg) : start(locker, arg);
	for (int i = 0; i < LOCKERS; i++)
		finish(threads[i]);
	CHECK_INT(guarded, LOCKERS * ROUNDS);
}

int main(void)
{
	/* Before the first thread, in the main thread, in another one. */
	arguments(NULL);
	finish(start(arguments, NULL));
	arguments(NULL);
	finish(start_affine(arguments, NULL));
	timeouts(NULL);
	finish(start(timeouts, NULL));
	signals();
	wake_from_handler();
	cancel();
	processes();
	mutex((void *)1);
	mutex(NULL);
	return success();
}
