/* SPDX-License-Identifier: MIT */
#include "tests/model/kernel_futex.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <time.h>

#include "tests/model/files.h"
#include "tests/model/model.h"
#include "tests/model/reduce/reduce.h"
#include "tests/model/scenario.h"

#define BIT(sig) ((uint64_t)1 << ((sig) - 1))

long futex_wake(const void *word, int most, uint32_t bits)
{
	long woken = 0;

	reduce_use(OBJECT_QUEUE(word), true);
	for (int i = 0; i < M.kthreads && woken < most; i++)
		if (M.kt[i].state == KT_BLOCKED && M.kt[i].futex == word && M.kt[i].futex_bits & bits) {
			M.kt[i].state = KT_RUNNABLE;
			M.kt[i].futex = NULL;
			M.kt[i].result = 0;
			woken++;
		}
	return woken;
}

/*
 * A wait that nobody ends: by a wake-up that was meant for an earlier user of the word, which futex(2) asks all callers to
 * expect, or by a signal whose handler does nothing, unless all are blocked.  At once, or when others have run.
 */
static bool ends_by_itself(long *ret_result)
{
	const bool all_blocked = !(~M.kt[M.current].mask & ~(BIT(SIGKILL) | BIT(SIGSTOP)));
	int way;

	if (scenario_now->counts_wakes)
		return false;
	way = schedule_choose(all_blocked ? 3 : 4, RARE);
	if (!way)
		return false;
	if (way == 2)
		schedule_give_way();
	*ret_result = way == 3 ? -EINTR : 0;
	trace_say("%s: the futex wait ends by itself: %ld", M.kt[M.current].name, *ret_result);
	return true;
}

static long futex_wait(uint32_t *word, uint32_t value, uint64_t deadline, uint32_t bits)
{
	long err;

	do {
		reduce_use(OBJECT_QUEUE(word), true);
		reduce_read(word, sizeof(*word));
		/* relaxed: one real thread. */
		if (__atomic_load_n(word, __ATOMIC_RELAXED) != value)
			return -EAGAIN;
		if (ends_by_itself(&err))
			return err;
		M.kt[M.current].futex = word;
		M.kt[M.current].futex_bits = bits;
		err = sleep_in_kernel(deadline);
	} while (err == -EINTR && !signals_interrupt());
	return err == -EINTR && deadline == FOREVER ? CALL_RESTARTS : err;
}

static long futex_requeue(const uint32_t *word, int wake, int move, const uint32_t *to)
{
	long done = futex_wake(word, wake, UINT32_MAX);

	reduce_use(OBJECT_QUEUE(to), true);
	for (int i = 0, moved = 0; i < M.kthreads && moved < move; i++)
		if (M.kt[i].state == KT_BLOCKED && M.kt[i].futex == word) {
			M.kt[i].futex = to;
			moved++;
			done++;
		}
	return done;
}

/* The library's only one asks whether it may write: it ORs with 0, and an unknown comparison is refused after that. */
static long futex_wake_op(uint32_t encoded)
{
	if (encoded != FUTEX_OP(FUTEX_OP_OR, 0, 15u, 0))
		model_outside("FUTEX_WAKE_OP with another operation");
	return -ENOSYS;
}

long futex(uint32_t *word, int operation, uint32_t value, long d, uint32_t *word2, uint32_t value3)
{
	const struct timespec *timeout = (void *)d;

	if ((uintptr_t)word % sizeof(*word))
		return -EINVAL;
	switch (operation & FUTEX_CMD_MASK) {
	case FUTEX_WAIT: return futex_wait(word, value, deadline_of(timeout), UINT32_MAX);
	case FUTEX_WAIT_BITSET:
		if (!value3)
			return -EINVAL;
		/* Absolute; both clocks are the same. */
		return futex_wait(word, value, timeout ? deadline_of(timeout) - M.now : FOREVER, value3);
	case FUTEX_WAKE: return futex_wake(word, (int)value, UINT32_MAX);
	case FUTEX_WAKE_BITSET: return value3 ? futex_wake(word, (int)value, value3) : -EINVAL;
	case FUTEX_CMP_REQUEUE:
		reduce_read(word, sizeof(*word));
		if (__atomic_load_n(word, __ATOMIC_RELAXED) != value3)
			return -EAGAIN;
		/* fall through */
	case FUTEX_REQUEUE: return futex_requeue(word, (int)value, (int)d, word2);
	case FUTEX_WAKE_OP: return futex_wake_op(value3);
	default:
		model_outside("futex with another operation");
	}
}
