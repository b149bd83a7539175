/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/sync/syscall_futex_wake.c - futexes by syscall(2): waking, requeueing, FUTEX_WAKE_OP, and
 * waiters of every kind on one word.
 */
#include "futex.h"

static uint32_t second;

/* ---- waking and requeueing ---------------------------------------------- */

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
			     start_affine(with_inline && i % 4 == 1 ? wait_inline : wait_once, NULL);
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
		threads[i] = start_affine(wait_inline, NULL);
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

int main(void)
{
	counts();
	requeue();
	requeue_timeout();
	wake_op();
	return success();
}
