/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/sync/syscall_futex.c - futexes by syscall(2): arguments, results,
 * timeouts, signals, each operation, and waiters of every kind on one word.
 */
#include "check.h"

#include <linux/futex.h>
#include <sys/mman.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { WAITERS = 20 };

static long futex(uint32_t *word, int op, uint32_t value, const void *timeout, uint32_t *word2,
		  uint32_t value3)
{
	return syscall(SYS_futex, word, op, value, timeout, word2, value3);
}

static long wait_for(uint32_t *word, uint32_t expected)
{
	return futex(word, FUTEX_WAIT_PRIVATE, expected, NULL, NULL, 0);
}

static long wake(uint32_t *word, uint32_t n)
{
	return futex(word, FUTEX_WAKE_PRIVATE, n, NULL, NULL, 0);
}

/* What a library does that has no function to call. */
static long inline_futex(uint32_t *word, int op, uint32_t value)
{
#ifdef __x86_64__
	register long timeout __asm__("r10") = 0;
	long ret;

	__asm__ volatile("syscall" : "=a"(ret)
			 : "a"(SYS_futex), "D"(word), "S"(op), "d"((long)value), "r"(timeout)
			 : "rcx", "r11", "memory");
	return ret;
#else
	long ret = futex(word, op, value, NULL, NULL, 0);

	return ret < 0 ? -errno : ret;
#endif
}

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

/* ---- waking and requeueing ---------------------------------------------- */

static uint32_t first, second;

static void *wait_once(void *arg)
{
	CHECK_OK(wait_for(&first, 0));
	return arg;
}

static void *wait_inline(void *arg)
{
	long ret;

	do {
		ret = inline_futex(&first, FUTEX_WAIT_PRIVATE, 0);
	} while (ret == -EINTR);
	CHECK_INT(ret, 0);
	return arg;
}

static void *wait_bits(void *arg)
{
	CHECK_OK(futex(&first, FUTEX_WAIT_BITSET_PRIVATE, 0, NULL, NULL, (uint32_t)(uintptr_t)arg));
	return arg;
}

/* A kernel thread, with and without our library. */
static pthread_t start_native(void *(*fn)(void *), void *arg)
{
	pthread_attr_t attr;
	cpu_set_t cpus;
	pthread_t t;

	CHECK_OK(pthread_attr_init(&attr));
	CHECK_OK(sched_getaffinity(0, sizeof(cpus), &cpus));
	CHECK_OK(pthread_attr_setaffinity_np(&attr, sizeof(cpus), &cpus));
	CHECK_OK(pthread_create(&t, &attr, fn, arg));
	CHECK_OK(pthread_attr_destroy(&attr));
	return t;
}

/* Waiters come when they come: go on until it has been n in all. */
static void until(long n, long (*some)(void))
{
	while (n) {
		long did = some();

		CHECK(did >= 0 && did <= n);
		n -= did;
		if (n)
			usleep(200);
	}
}

static long wake_one(void) { return wake(&first, 1); }
static long wake_none(void) { return wake(&first, 0); }
static long wake_all(void) { return wake(&first, INT32_MAX); }
static long wake_second(void) { return wake(&second, INT32_MAX); }
static long wake_inline(void) { return inline_futex(&first, FUTEX_WAKE_PRIVATE, 1); }
static long wake_three(void)
{
	return futex(&first, FUTEX_WAKE_BITSET_PRIVATE, INT32_MAX, NULL, NULL, 3);
}

static long wake_four(void)
{
	return futex(&first, FUTEX_WAKE_BITSET_PRIVATE, INT32_MAX, NULL, NULL, 4);
}

static long move_all(void)
{
	return futex(&first, FUTEX_REQUEUE_PRIVATE, 0, (void *)INT32_MAX, &second, 0);
}

/* Requeued to where it is: only counted. */
static long is_at(uint32_t *word)
{
	return futex(word, FUTEX_REQUEUE_PRIVATE, 0, (void *)1, word, 0);
}

static long is_at_first(void) { return is_at(&first); }
static long is_at_second(void) { return is_at(&second); }

static long move_some(void)
{
	return futex(&first, FUTEX_CMP_REQUEUE_PRIVATE, 0, (void *)3, &second, 0);
}

/* Half of them are fibers under us, a quarter kernel threads that ask us. */
static void start_mixed(pthread_t *threads, bool with_inline)
{
	for (int i = 0; i < WAITERS; i++)
		threads[i] = i % 2 == 0 ? start(wait_once, NULL) :
			     start_native(with_inline && i % 4 == 1 ? wait_inline : wait_once, NULL);
}

static void finish_all(pthread_t *threads)
{
	for (int i = 0; i < WAITERS; i++)
		finish(threads[i]);
}

static void counts(void)
{
	pthread_t threads[WAITERS];
	long (*const wakers[])(void) = { wake_one, wake_none, wake_all };

	for (size_t i = 0; i < COUNT(wakers); i++) {
		start_mixed(threads, true);
		until(WAITERS, wakers[i]);
		finish_all(threads);
		CHECK_INT(wake_all(), 0);
	}
	/* By nobody but kernel threads, without a function. */
	for (int i = 0; i < WAITERS; i++)
		threads[i] = start_native(wait_inline, NULL);
	until(WAITERS, wake_inline);
	finish_all(threads);

	for (uintptr_t i = 0; i < WAITERS; i++)
		threads[i] = start(wait_bits, (void *)(uintptr_t)(i % 2 ? 5 : 2));
	until(WAITERS / 2, wake_four);
	until(WAITERS / 2, wake_three);
	finish_all(threads);
}

static void requeue(void)
{
	long (*const movers[])(void) = { move_all, move_some };
	pthread_t threads[WAITERS];

	for (size_t i = 0; i < COUNT(movers); i++) {
		start_mixed(threads, true);
		until(WAITERS, movers[i]);
		CHECK_INT(wake_all(), 0);
		CHECK_INT(wake(&second, 2), 2);
		until(WAITERS - 2, wake_second);
		finish_all(threads);
	}
	/* One is woken, the rest moves, and both count. */
	start_mixed(threads, true);
	until(WAITERS, move_all);
	CHECK_INT(futex(&second, FUTEX_CMP_REQUEUE_PRIVATE, 1, (void *)(uintptr_t)(WAITERS - 1),
			&first, 0), WAITERS);
	CHECK_INT(wake(&second, INT32_MAX), 0);
	until(WAITERS - 1, wake_all);
	finish_all(threads);
}

/* Moved, it still ends at its own deadline, and takes no wake-up with it. */
static void *wait_moved(void *arg)
{
	struct timespec ts = to_timespec(30 * MS);

	CHECK_ERR(futex(&first, FUTEX_WAIT_PRIVATE, 0, &ts, NULL, 0), ETIMEDOUT);
	return arg;
}

static void requeue_timeout(void)
{
	pthread_t impatient = start(wait_moved, NULL), patient;
	bool left = false;

	/* On a machine that is too slow for this it has left already. */
	while (move_all() == 0 && !left) {
		usleep(200);
		left = pthread_tryjoin_np(impatient, NULL) == 0;
	}
	if (!left)
		finish(impatient);
	patient = start(wait_once, NULL);
	until(1, move_all);
	CHECK_INT(wake(&second, 5), 1);
	finish(patient);
}

/* ---- FUTEX_WAKE_OP ------------------------------------------------------ */

static uint32_t changed(uint32_t before, uint32_t op, long *ret)
{
	second = before;
	*ret = futex(&first, FUTEX_WAKE_OP_PRIVATE, 1, (void *)1, &second, op);
	return second;
}

static void *wait_on_second(void *arg)
{
	CHECK_OK(wait_for(&second, 5));
	return arg;
}

static void wake_op(void)
{
	uint32_t *read_only = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_t a, b;
	long ret = 0;

	CHECK(read_only != MAP_FAILED);
	CHECK_INT(changed(5, FUTEX_OP(FUTEX_OP_SET, 9, FUTEX_OP_CMP_EQ, 0), &ret), 9);
	CHECK_INT(ret, 0);
	CHECK_INT(changed(5, FUTEX_OP(FUTEX_OP_ADD, 2, FUTEX_OP_CMP_EQ, 0), &ret), 7);
	CHECK_INT(changed(5, FUTEX_OP(FUTEX_OP_ADD, 0xfff, FUTEX_OP_CMP_EQ, 0), &ret), 4);
	CHECK_INT(changed(5, FUTEX_OP(FUTEX_OP_OR, 2, FUTEX_OP_CMP_NE, 0), &ret), 7);
	CHECK_INT(changed(5, FUTEX_OP(FUTEX_OP_ANDN, 1, FUTEX_OP_CMP_LT, 0), &ret), 4);
	CHECK_INT(changed(5, FUTEX_OP(FUTEX_OP_XOR, 1, FUTEX_OP_CMP_GE, 0), &ret), 4);
	CHECK_INT(changed(0, FUTEX_OP((FUTEX_OP_OR | FUTEX_OP_OPARG_SHIFT), 4,
				      FUTEX_OP_CMP_LE, 0), &ret), 16);
	CHECK_INT(changed(5, FUTEX_OP(6, 1, FUTEX_OP_CMP_GE, 0), &ret), 5);
	CHECK_INT(ret, -1);
	CHECK_INT(errno, ENOSYS);
	CHECK_ERR(futex(&first, FUTEX_WAKE_OP_PRIVATE, 1, (void *)1, read_only, 0), EFAULT);
	CHECK_ERR(futex(&first, FUTEX_WAKE_OP_PRIVATE, 1, (void *)1, NULL, 0), EFAULT);
	CHECK_OK(munmap(read_only, 4096));

	/* The waiter on the first word, and that on the second if it was 5. */
	for (int was_five = 0; was_five < 2; was_five++) {
		second = 5;
		a = start(wait_once, NULL);
		b = start(wait_on_second, NULL);
		until(1, is_at_first);
		until(1, is_at_second);
		ret = futex(&first, FUTEX_WAKE_OP_PRIVATE, 1, (void *)1, &second,
			    FUTEX_OP(FUTEX_OP_ADD, 1, FUTEX_OP_CMP_EQ, was_five ? 5 : 6));
		CHECK_INT(ret, was_five ? 2 : 1);
		if (!was_five)
			CHECK_INT(wake(&second, 2), 1);
		finish(a);
		finish(b);
	}
	second = 0;
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
		threads[i] = i % 8 == 7 ? start_native(locker, arg) : start(locker, arg);
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
	finish(start_native(arguments, NULL));
	timeouts(NULL);
	finish(start(timeouts, NULL));
	counts();
	requeue();
	requeue_timeout();
	wake_op();
	signals();
	wake_from_handler();
	cancel();
	processes();
	mutex((void *)1);
	mutex(NULL);
	return success();
}
