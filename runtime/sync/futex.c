/* SPDX-License-Identifier: MIT */
#include "runtime/sync/futex.h"

#include <asm/errno.h>

#include "runtime/backend/backend.h"
#include "runtime/base/host.h"
#include "runtime/base/time.h"
#include "runtime/base/uapi.h"
#include "runtime/fiber/wire.h"
#include "runtime/io/op.h"
#include "runtime/io/real_call.h"
#include "runtime/sched/cancel.h"
#include "runtime/sched/park.h"
#include "runtime/sched/sched.h"
#include "runtime/sched/timer.h"
#include "runtime/signal/signal.h"
#include "runtime/sync/lot.h"

enum {
	KERNEL_FIRST_EVERY = 64,
	SOON = 20000,		/* ns: shorter than most waits */
};

/* Wake-ups by this thread.  Thread-local, so that counting costs no shared cache line. */
static __thread uint32_t wakes;

/* This thread's last wait that a wake-up ended. */
static __thread struct {
	const uint32_t *word;
	fz_nsec over;
	fz_nsec since;		/* when the first of several waits in a row began; 0: none */
} last;

static long real(uint32_t *word, int op, uint32_t value, long timeout_or_value2,
		 uint32_t *word2, uint32_t value3)
{
	return fz_syscall6(__NR_futex, (long)word, op, value, timeout_or_value2, (long)word2,
			   value3);
}

/* The kernel's first check of a futex address: its alignment. */
static long check_address(const uint32_t *word)
{
	return (uintptr_t)word % sizeof(*word) ? -EINVAL : 0;
}

static bool readable(const uint32_t *word)
{
	/*
	 * Test the 8 bytes around the word, which lie on one page.  NULL must not count as
	 * readable.
	 */
	return (uintptr_t)word >= 8 &&
	       fz_sys_readable((const void *)((uintptr_t)word & ~(uintptr_t)7));
}

/* ---- waiting ------------------------------------------------------------ */

struct timeout {
	fz_nsec deadline;		/* of CLOCK_MONOTONIC */
	fz_nsec at;			/* the caller's absolute time of CLOCK_REALTIME, or FZ_FOREVER */
};

static fz_nsec to_nsec(const struct __kernel_timespec *ts)
{
	if ((uint64_t)ts->tv_sec >= UINT64_MAX / FZ_SEC / 4)
		return FZ_FOREVER;
	return (fz_nsec)ts->tv_sec * FZ_SEC + (fz_nsec)ts->tv_nsec;
}

/* Read the caller's timeout, once: another thread may change it during the wait. */
static long parse_timeout(int op, const struct __kernel_timespec *ts, struct timeout *ret)
{
	bool absolute = (op & FUTEX_CMD_MASK) != FUTEX_WAIT;
	fz_nsec span;

	*ret = (struct timeout){ FZ_FOREVER, FZ_FOREVER };
	if (!ts)
		return 0;
	if (!fz_sys_readable(&ts->tv_sec) || !fz_sys_readable(&ts->tv_nsec))
		return -EFAULT;
	if (ts->tv_sec < 0 || ts->tv_nsec < 0 || ts->tv_nsec >= (long long)FZ_SEC)
		return -EINVAL;
	span = to_nsec(ts);
	if (span == FZ_FOREVER)
		return 0;
	if (absolute && op & FUTEX_CLOCK_REALTIME) {
		ret->at = span;
		ret->deadline = fz_clock_until(fz_self(), span);
	} else {
		ret->deadline = absolute ? span : fz_now() + span;
	}
	return 0;
}

struct wait {
	uint32_t *word;
	uint32_t expected, bits;
	bool shared;
	bool restarts;			/* after a handler with SA_RESTART, also if there is a timeout */
	struct timeout timeout;
};

/*
 * Wait in the kernel, where other processes can find the waiter, by a request on the ring; the
 * fiber parks.
 */
static long wait_on_ring(struct fz_fiber *self, const struct wait *w, unsigned flags)
{
	struct fz_op op = {
		.opcode = FZ_UAPI_OP_FUTEX_WAIT,
		.fd = FZ_UAPI_FUTEX2_SIZE_U32,
		.addr = (uintptr_t)w->word,
		.off = w->expected,
		.addr3 = w->bits,
	};
	int ret = fz_op_wait(self, &op, w->timeout.deadline, flags);

	switch (ret) {
	case FZ_OP_TIMEOUT: return -ETIMEDOUT;
	case FZ_OP_SIGNAL: return -EINTR;
	case FZ_OP_CANCEL: return -ECANCELED;
	default: return ret;
	}
}

/*
 * Wait in the kernel by the real call, if the ring has no request for futexes: until the baseline
 * is 6.7.
 */
static long wait_announced(struct fz_fiber *self, const struct wait *w)
{
	const struct timeout *t = &w->timeout;
	const bool by_realtime = t->at != FZ_FOREVER;
	/* Absolute, so that repeated attempts share one time limit. */
	const struct __kernel_timespec until = fz_timespec(by_realtime ? t->at : t->deadline);
	struct fz_real_call call =
		fz_call_begin(self, t->deadline == FZ_FOREVER ? FZ_CALL_RESTARTS : 0);
	long ret;

	do
		ret = real(w->word, FUTEX_WAIT_BITSET | (by_realtime ? FUTEX_CLOCK_REALTIME : 0),
			   w->expected, t->deadline == FZ_FOREVER ? 0 : (long)&until, NULL,
			   w->bits);
	while (fz_call_again(&call, ret));
	fz_call_end(&call, ret);
	return ret;
}

static long wait_in_kernel(struct fz_fiber *self, const struct wait *w, unsigned flags)
{
	long ret = FZ_OP_FORBIDDEN;

	if (fz_backend_kind() == FZ_BACKEND_RING && fz_ring_knows(FZ_UAPI_OP_FUTEX_WAIT))
		ret = wait_on_ring(self, w, flags);
	return ret == FZ_OP_FORBIDDEN ? wait_announced(self, w) : ret;
}

/*
 * A thread that waits again for a word less than SOON after it was woken has likely lost a lock to
 * a thread that came later.  Returns FZ_LOT_STARVES if that goes on for long, else 0.
 */
static unsigned patience(const uint32_t *word)
{
	if (word == last.word && fz_now() - last.over < SOON)
		return fz_lot_patience(&last.since);
	last.since = 0;
	return 0;
}

static void note_wake_up(const uint32_t *word)
{
	last.word = word;
	last.over = fz_now();
}

static long wait_by_fiber(struct fz_fiber *self, struct wait *w)
{
	/* syscall() is no cancellation point, but asynchronous cancellation acts everywhere. */
	unsigned flags = FZ_WAIT_SIGNAL |
			 (fz_cancel_type_is_asynchronous(self) ? FZ_WAIT_CANCEL : 0);

	if (!w->shared)
		flags |= patience(w->word);
	for (;;) {
		long ret;

		self->sig.handlers_run = 0;
		fz_signal_mark(self);
		ret = w->shared ? wait_in_kernel(self, w, flags) :
				  fz_lot_wait_bits((_Atomic uint32_t *)w->word, w->expected,
						   w->bits, w->timeout.deadline, flags);
		if (ret == -ECANCELED) {
			fz_host.test_cancel();
		} else if (ret == -EINTR) {
			/* With a timeout, futex(2) is not restarted after a handler (signal(7)). */
			if (self->sig.handlers_run &&
			    ((w->timeout.deadline != FZ_FOREVER && !w->restarts) ||
			     !fz_signal_restarts(self)))
				return ret;
		} else if (ret == -ETIMEDOUT && fz_clock_goes_on(self, &w->timeout.deadline)) {
			continue;
		} else {
			if (!ret && !w->shared)
				note_wake_up(w->word);
			return ret;
		}
	}
}

static long wait_common(struct fz_fiber *self, struct wait *w, int op,
			const struct __kernel_timespec *ts)
{
	long err = parse_timeout(op, ts, &w->timeout);

	if (!err && !w->bits)
		err = -EINVAL;
	if (!err)
		err = check_address(w->word);
	if (!err && !w->shared && !readable(w->word))
		err = -EFAULT;
	return err ? err : wait_by_fiber(self, w);
}

long fz_futex_wait(struct fz_fiber *self, uint32_t *word, uint32_t expected, uint32_t bits, bool shared,
		   const struct __kernel_timespec *when, bool by_realtime)
{
	struct wait w = {
		.word = word, .expected = expected, .bits = bits, .shared = shared, .restarts = true,
	};

	return wait_common(self, &w, FUTEX_WAIT_BITSET | (by_realtime ? FUTEX_CLOCK_REALTIME : 0), when);
}

/* ---- waking ------------------------------------------------------------- */

/* The kernel wakes at least one waiter, even if asked for 0 or a negative number. */
static uint32_t how_many(uint32_t value)
{
	return (int32_t)value < 1 ? 1 : value;
}

static long wake_private(uint32_t *word, uint32_t n, uint32_t bits)
{
	const _Atomic uint32_t *key = (_Atomic uint32_t *)word;
	const int op = FUTEX_WAKE_BITSET_PRIVATE;
	uint32_t woken;
	long more;

	if (++wakes % KERNEL_FIRST_EVERY == 0) {
		more = real(word, op, n, 0, NULL, bits);
		if (more < 0 || (uint32_t)more >= n)
			return more;
		return more + fz_lot_wake_bits(key, n - (uint32_t)more, bits);
	}
	woken = fz_lot_wake_bits(key, n, bits);
	if (woken >= n)
		return woken;
	more = real(word, op, n - woken, 0, NULL, bits);
	/*
	 * An error of the kernel, such as an unmapped word, counts only if the lot had no waiter.
	 */
	return more < 0 ? (woken ? (long)woken : more) : more + woken;
}

static long requeue_private(uint32_t *word, int op, uint32_t wake, uint32_t move,
			    uint32_t *word2, uint32_t expected)
{
	bool compares = (op & FUTEX_CMD_MASK) == FUTEX_CMP_REQUEUE;
	struct fz_lot_requeue order = { .wake = wake, .move = move };
	long done, more;

	if ((int32_t)wake < 0 || (int32_t)move < 0)
		return -EINVAL;
	done = check_address(word);
	if (!done)
		done = check_address(word2);
	if (done)
		return done;
	if (compares && !readable(word))
		return -EFAULT;
	if (!fz_lot_requeue((_Atomic uint32_t *)word, (_Atomic uint32_t *)word2,
			    compares ? &expected : NULL, &order))
		return -EAGAIN;
	done = (long)order.woken + order.moved;
	if (order.woken == wake && order.moved == move)
		return done;
	more = real(word, op, wake - order.woken, (long)(move - order.moved), word2, expected);
	/*
	 * If the word has changed since, the kernel refuses its part; the lot's part happened
	 * before the change.
	 */
	return more < 0 ? (done ? done : more) : done + more;
}

/* ---- FUTEX_WAKE_OP ------------------------------------------------------ */

static int32_t twelve_bits(uint32_t n)
{
	return (int32_t)(n << 20) >> 20;
}

/*
 * Returns 0 if word may be written, else -errno.  Only the kernel can test that without a fault:
 * let it OR the word with 0.
 */
static long check_writable(uint32_t *word)
{
	uint32_t nobody = 0;
	/* An unknown comparison: the kernel refuses it after the OR, and so wakes no waiter of word. */
	const uint32_t unknown = 15;
	long ret = real(&nobody, FUTEX_WAKE_OP_PRIVATE, 1, 1, word, FUTEX_OP(FUTEX_OP_OR, 0, unknown, 0));

	return ret == -ENOSYS ? 0 : ret;
}

/*
 * Change the word as FUTEX_WAKE_OP encodes it.  Returns 1 if its waiters must be woken, too, 0 if
 * not, or -errno.
 */
static long modify(uint32_t *word, uint32_t encoded)
{
	_Atomic uint32_t *p = (_Atomic uint32_t *)word;
	int32_t arg = twelve_bits(encoded >> 12), cmp_arg = twelve_bits(encoded), old;
	/* seq_cst, as in the kernel: the caller's earlier writes are visible before the wake-up. */
	const memory_order order = memory_order_seq_cst;

	if (encoded & (uint32_t)FUTEX_OP_OPARG_SHIFT << 28)
		arg = (int32_t)(1u << (arg & 31));
	switch (encoded >> 28 & 7) {
	case FUTEX_OP_SET: old = (int32_t)atomic_exchange_explicit(p, (uint32_t)arg, order); break;
	case FUTEX_OP_ADD: old = (int32_t)atomic_fetch_add_explicit(p, (uint32_t)arg, order); break;
	case FUTEX_OP_OR: old = (int32_t)atomic_fetch_or_explicit(p, (uint32_t)arg, order); break;
	case FUTEX_OP_ANDN: old = (int32_t)atomic_fetch_and_explicit(p, ~(uint32_t)arg, order); break;
	case FUTEX_OP_XOR: old = (int32_t)atomic_fetch_xor_explicit(p, (uint32_t)arg, order); break;
	default: return -ENOSYS;
	}
	switch (encoded >> 24 & 15) {
	case FUTEX_OP_CMP_EQ: return old == cmp_arg;
	case FUTEX_OP_CMP_NE: return old != cmp_arg;
	case FUTEX_OP_CMP_LT: return old < cmp_arg;
	case FUTEX_OP_CMP_GE: return old >= cmp_arg;
	case FUTEX_OP_CMP_LE: return old <= cmp_arg;
	case FUTEX_OP_CMP_GT: return old > cmp_arg;
	default: return -ENOSYS;
	}
}

/*
 * FUTEX_WAKE_OP: change word2, then wake the waiters.  Each step is atomic, but not both together.  No
 * thread can tell: natively, too, waiters run some time after the change, and a thread that begins to
 * wait in between must expect to be woken without a reason.
 */
static long wake_op_private(uint32_t *word, uint32_t n, uint32_t n2, uint32_t *word2,
			    uint32_t encoded)
{
	long both, woken = check_address(word);

	if (!woken)
		woken = check_address(word2);
	if (!woken && !readable(word2))
		woken = -EFAULT;
	if (!woken)
		woken = check_writable(word2);
	if (woken)
		return woken;
	both = modify(word2, encoded);
	if (both < 0)
		return both;
	woken = wake_private(word, how_many(n), UINT32_MAX);
	if (woken >= 0 && both) {
		long more = wake_private(word2, how_many(n2), UINT32_MAX);

		woken += more < 0 ? 0 : more;
	}
	return woken;
}

/* ---- the call ----------------------------------------------------------- */

long fz_futex(struct fz_fiber *self, uint32_t *word, int op, uint32_t value,
	      long timeout_or_value2, uint32_t *word2, uint32_t value3)
{
	const struct __kernel_timespec *ts = (void *)timeout_or_value2;
	int command = op & FUTEX_CMD_MASK;
	bool is_wait;

	/* acquire: pairs with fz_sched_start(). */
	if (!atomic_load_explicit(&fz_sched.started, memory_order_acquire))
		return real(word, op, value, timeout_or_value2, word2, value3);
	switch (command) {
	case FUTEX_LOCK_PI:
	case FUTEX_LOCK_PI2:
	case FUTEX_TRYLOCK_PI:
	case FUTEX_UNLOCK_PI:
	case FUTEX_WAIT_REQUEUE_PI:
		if (self)
			fz_fiber_wire_for(self, "a priority-inheriting futex");
		return real(word, op, value, timeout_or_value2, word2, value3);
	}
	/* Only the kernel knows which other commands may have FUTEX_CLOCK_REALTIME. */
	is_wait = command == FUTEX_WAIT_BITSET ||
		  (command == FUTEX_WAIT && !(op & FUTEX_CLOCK_REALTIME));
	if (op & FUTEX_CLOCK_REALTIME && !is_wait)
		return real(word, op, value, timeout_or_value2, word2, value3);
	if (is_wait && self) {
		struct wait w = {
			.word = word,
			.expected = value,
			.bits = command == FUTEX_WAIT ? UINT32_MAX : value3,
			.shared = !(op & FUTEX_PRIVATE_FLAG),
		};

		return wait_common(self, &w, op, ts);
	}
	if (is_wait || !(op & FUTEX_PRIVATE_FLAG))
		return real(word, op, value, timeout_or_value2, word2, value3);
	switch (command) {
	case FUTEX_WAKE:
		if (check_address(word))
			break;
		return wake_private(word, how_many(value), UINT32_MAX);
	case FUTEX_WAKE_BITSET:
		if (check_address(word) || !value3)
			break;
		return wake_private(word, how_many(value), value3);
	case FUTEX_REQUEUE:
	case FUTEX_CMP_REQUEUE:
		return requeue_private(word, op, value, (uint32_t)timeout_or_value2, word2,
				       value3);
	case FUTEX_WAKE_OP:
		return wake_op_private(word, value, (uint32_t)timeout_or_value2, word2, value3);
	}
	return real(word, op, value, timeout_or_value2, word2, value3);
}
