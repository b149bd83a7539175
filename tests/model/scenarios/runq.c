/* SPDX-License-Identifier: MIT */
/*
 * tests/model/scenarios/runq.c - two run queues alone, against a sequential model of their FIFOs and
 * slots: each fiber is in one place, and leaves it in its turn.
 *
 * A call that takes in one step and gives in another (it never holds both locks) is two operations of
 * the history, which begin and end together.
 */
#include "tests/model/scenario.h"

#include "runtime/sched/runq.h"
#include "runtime/sched/sched.h"

enum { FIBERS = 6, QUEUES = 2, MAIN = 7 };

static struct fz_runq queue[QUEUES];
static struct fz_fiber fiber[FIBERS];

enum { PUSH, POP, POP_CPU_BOUND, POP_SLOT, EXCHANGE_SLOT, TAKE_HALF, GIVE, LENGTH };

/*
 * Sequential model: a byte for each fiber, its place and its rank there; the last byte has a bit for each
 * thread that has taken what it is still to give.  The rank 0 is nobody's.
 */
enum { NOWHERE, BRIEF = 1, CPU_BOUND = 3, SLOT = 5, ON_THE_WAY = 7 };	/* plus queue, or thread */

static uint64_t at_first;		/* what the state is when the exploring begins; XORed, that is 0 */

static bool is_cpu_bound(int f)
{
	return f >= FIBERS / 2;
}

static int place_of(uint64_t state, int f)
{
	return (int)(state >> (f * 8 + 4) & 15);
}

static int rank_of(uint64_t state, int f)
{
	return (int)(state >> f * 8 & 15);
}

static void put(uint64_t *state, int f, int place)
{
	int last = 0;

	for (int other = 0; other < FIBERS; other++)
		if (place_of(*state, other) == place && rank_of(*state, other) > last)
			last = rank_of(*state, other);
	MODEL_CHECK(last < 15, "the sequential model has too few ranks");
	*state &= ~((uint64_t)255 << f * 8);
	if (place != NOWHERE)
		*state |= (uint64_t)(place << 4 | (last + 1)) << f * 8;
}

static void put_into_fifo(uint64_t *state, int f, int q)
{
	put(state, f, (is_cpu_bound(f) ? CPU_BOUND : BRIEF) + q);
}

/* Take the first fiber of a place; -1: none. */
static int take(uint64_t *state, int place, int to)
{
	int first = -1;

	for (int f = 0; f < FIBERS; f++)
		if (place_of(*state, f) == place &&
		    (first < 0 || rank_of(*state, f) < rank_of(*state, first)))
			first = f;
	if (first >= 0)
		put(state, first, to);
	return first;
}

static int take_of_two(uint64_t *state, int place, int other, int to)
{
	int f = take(state, place, to);

	return f < 0 ? take(state, other, to) : f;
}

static int length(uint64_t state, int q)
{
	int n = 0;

	for (int f = 0; f < FIBERS; f++)
		n += place_of(state, f) == BRIEF + q || place_of(state, f) == CPU_BOUND + q;
	return n;
}

static uint64_t has_taken(int thread)
{
	return (uint64_t)1 << (56 + thread);
}

static bool give(uint64_t *state, int thread, int q)
{
	bool in_turn = *state & has_taken(thread);
	int f;

	*state &= ~has_taken(thread);
	while ((f = take(state, ON_THE_WAY + thread, NOWHERE)) >= 0)
		put_into_fifo(state, f, q);
	return in_turn;
}

static bool half_is(uint64_t *state, int q, int thread, long first)
{
	const int n = length(*state, q);

	*state |= has_taken(thread);
	if (take_of_two(state, BRIEF + q, CPU_BOUND + q, NOWHERE) != first)
		return false;
	for (int taken = 1; taken < n - n / 2; taken++)
		take_of_two(state, BRIEF + q, CPU_BOUND + q, ON_THE_WAY + thread);
	return true;
}

static bool queues(uint64_t *from_first, const struct operation *op)
{
	const int q = op->object;
	uint64_t state = *from_first ^ at_first;
	bool allowed = true;

	switch (op->kind) {
	case PUSH:
		put_into_fifo(&state, op->arg, q);
		break;
	case POP:
		allowed = take_of_two(&state, BRIEF + q, CPU_BOUND + q, NOWHERE) == op->result;
		break;
	case POP_CPU_BOUND:
		allowed = take_of_two(&state, CPU_BOUND + q, BRIEF + q, NOWHERE) == op->result;
		break;
	case POP_SLOT:
		allowed = take(&state, SLOT + q, NOWHERE) == op->result;
		break;
	case EXCHANGE_SLOT:
		state |= has_taken(op->thread);
		take(&state, SLOT + q, ON_THE_WAY + op->thread);
		if (op->arg >= 0)
			put(&state, op->arg, SLOT + q);
		break;
	case TAKE_HALF:
		allowed = half_is(&state, q, op->thread, op->result);
		break;
	case GIVE:
		allowed = give(&state, op->thread, q);
		break;
	default:
		allowed = length(state, q) == op->result;
	}
	*from_first = state ^ at_first;
	return allowed;
}

/* ---- the calls -------------------------------------------------------------------------- */

static long number(const struct fz_fiber *f)
{
	return f ? f - fiber : -1;
}

static void push(int i, int q, int f)
{
	int op = op_begin(i, PUSH, q, f);

	fz_runq_push(&queue[q], &fiber[f]);
	op_end(op, 0);
}

static long pop(int i, int q)
{
	int op = op_begin(i, POP, q, 0);

	return op_end(op, number(fz_runq_pop(&queue[q])));
}

static void pop_cpu_bound(int i, int q)
{
	int op = op_begin(i, POP_CPU_BOUND, q, 0);

	op_end(op, number(fz_runq_pop_cpu_bound(&queue[q])));
}

static long pop_slot(int i, int q)
{
	int op = op_begin(i, POP_SLOT, q, 0);

	return op_end(op, number(fz_runq_pop_slot(&queue[q])));
}

/* The fiber that is in the slot goes into its FIFO; f < 0: no other takes its place. */
static void push_slot(int i, int q, int f)
{
	int exchange = op_begin(i, EXCHANGE_SLOT, q, f), rest = op_begin(i, GIVE, q, 0);

	if (f < 0)
		fz_runq_empty_slot(&queue[q]);
	else
		fz_runq_push_slot(&queue[q], &fiber[f]);
	op_end(exchange, 0);
	op_end(rest, 0);
}

static void steal(int i, int victim, int mine)
{
	int half = op_begin(i, TAKE_HALF, victim, 0), rest = op_begin(i, GIVE, mine, 0);

	op_end(half, number(fz_runq_steal(&queue[victim], &queue[mine])));
	op_end(rest, 0);
}

/* Not beside a theft: each fiber that the thief takes is counted out by itself. */
static void ask_length(int i, int q)
{
	int op = op_begin(i, LENGTH, q, 0);

	op_end(op, fz_runq_length(&queue[q]));
}

/* ---- the scenarios ---------------------------------------------------------------------- */

/* Three fibers are in the FIFOs of the first queue: two of the brief ones, and one that is CPU-bound. */
static void fill(void)
{
	at_first = 0;
	fz_enter_runtime(fz_self());
	for (int q = 0; q < QUEUES; q++)
		fz_runq_init(&queue[q]);
	for (int f = 0; f < FIBERS; f++) {
		uint8_t score = is_cpu_bound(f) ? FZ_CPU_BOUND_FROM : 0;

		atomic_store_explicit(&fiber[f].cpu_bound_score, score, memory_order_relaxed);
		if (f < 2 || f == FIBERS - 1) {
			fz_runq_push(&queue[0], &fiber[f]);
			put_into_fifo(&at_first, f, 0);
		}
	}
	fz_leave_runtime(fz_self());
}

/* The main thread takes what is left, as operations of the history. */
static void empty(void)
{
	fz_enter_runtime(fz_self());
	for (int q = 0; q < QUEUES; q++) {
		MODEL_CHECK(fz_runq_is_sound(&queue[q]), "queue %d is not sound", q);
		pop_slot(MAIN, q);
		while (pop(MAIN, q) >= 0)
			;
	}
	fz_leave_runtime(fz_self());
}

static void push_pop_steal(int i)
{
	fz_enter_runtime(fz_self());
	switch (i) {
	case 0:
		push(i, 0, 2);
		pop(i, 0);
		break;
	case 1:
		push(i, 0, 3);
		pop_cpu_bound(i, 0);
		break;
	default:
		steal(i, 0, 1);
		ask_length(i, 0);
		pop(i, 1);
	}
	fz_leave_runtime(fz_self());
}

SCENARIO(runq) = { .name = "runq", .what = "run queues: 2 threads push and pop, a third steals",
	.processors = 1, .natives = 3, .prepare = fill, .thread = push_pop_steal, .finish = empty,
	.apply = queues };

static void steal_both_ways(int i)
{
	fz_enter_runtime(fz_self());
	if (i == 2) {
		push(i, 1, 2);
		push(i, 1, 4);
	} else {
		steal(i, i, !i);
		pop(i, !i);
	}
	fz_leave_runtime(fz_self());
}

SCENARIO(runq_both) = { .name = "runq_both", .what = "run queues: 2 threads steal from each other's, a third pushes",
	.processors = 1, .natives = 3, .prepare = fill, .thread = steal_both_ways, .finish = empty,
	.apply = queues };

static void use_slot(int i)
{
	fz_enter_runtime(fz_self());
	switch (i) {
	case 0:
		push_slot(i, 0, 2);
		push_slot(i, 0, 4);
		pop_slot(i, 0);
		break;
	case 1:
		pop_slot(i, 0);
		pop(i, 0);
		break;
	default:
		push_slot(i, 0, -1);
		steal(i, 0, 1);
	}
	fz_leave_runtime(fz_self());
}

SCENARIO(runq_slot) = { .name = "runq_slot", .what = "run queues: the slot is filled, emptied and robbed",
	.processors = 1, .natives = 3, .prepare = fill, .thread = use_slot, .finish = empty,
	.apply = queues };
