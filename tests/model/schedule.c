/* SPDX-License-Identifier: MIT */
/*
 * tests/model/schedule.c - who goes on: exhaustive with a bound on preemptions, PCT, random.
 *
 * At a point the running kthread may be preempted; where it blocks, another must go on.  A choice
 * among n kthreads is noted as (step, n, pick); 0 is to go on, or the next in order.  A kthread whose
 * deadline is to come is a choice, too: then the clock jumps there.
 *
 * Exhaustive: depth first over all runs in which at most `budget` picks are not the default (delay
 * bounding; Emmi, Qadeer and Rakamaric, 2011): a preemption, a tick of the clock, another order, or something else than
 * usual that the kernel may do.
 * PCT (Burckhardt and others, 2010): each kthread has a random priority, the highest goes on; at
 * `depth - 1` random points the running one becomes the lowest.  A fault of depth d is found with a
 * probability of at least 1 / (n * k^(d - 1)), n kthreads, k points.
 */
#include "tests/model/model.h"
#include "tests/model/reduce/reduce.h"

#include <string.h>

enum { STEPS_MOST = 100000, PCT_CHANGES = 2, EARLY_MOST = 12 };

struct decision decided[DECISIONS];
uint32_t decisions;
int budget;
uint64_t seed, points, run_length, longest, most_points;

bool listed;
static bool fairness;
static enum how how;
static uint32_t at;			/* the next decision to be repeated */
static uint32_t used;			/* decisions of a list that this run had the choice for */
static int left;			/* picks that need not be the default */
static uint64_t random_state;
static uint32_t priority[KTHREADS], lowest, early_ticks;
static uint64_t change_at[PCT_CHANGES];

static uint64_t random_next(void)
{
	random_state ^= random_state >> 12;
	random_state ^= random_state << 25;
	random_state ^= random_state >> 27;
	return random_state * 0x2545f4914f6cdd1du;
}

void schedule_begin_run(enum how how_)
{
	how = how_;
	listed = how == HOW_LISTED;
	at = used = 0;
	left = budget;
	reduce_begin_run(how == HOW_EXHAUSTIVE || how == HOW_FIRST);
	step = points = 0;
	since_point = fairness = false;
	if (how == HOW_PCT || how == HOW_RANDOM) {
		random_state = seed * 0x9e3779b97f4a7c15u + 0x1234567;
		for (int i = 0; i < 4; i++)
			random_next();
		lowest = 1 << 20;
		early_ticks = 0;
		for (int i = 0; i < KTHREADS; i++)
			priority[i] = (1 << 20) + (uint32_t)(random_next() >> 40) % 4096;
		for (int i = 0; i < PCT_CHANGES; i++)
			change_at[i] = random_next() % (run_length + 1);
		decisions = 0;
	} else if (how == HOW_FIRST) {
		decisions = 0;
	}
}

bool schedule_has_used_all(void)
{
	return used == decisions;
}

bool schedule_backtrack(void)
{
	for (; decisions; decisions--) {
		struct decision *d = &decided[decisions - 1];

		while (++d->pick < d->n)
			if (!(d->skipped >> d->pick & 1)) {
				reduce_begin_pick(d);
				return true;
			}
		reduce_leave(d);
	}
	return false;
}

/*
 * The candidates, the default first: the running kthread at a point, else the next in order; those
 * that spin come behind the others.  *ret_ready of them need no clock.
 */
static int candidates(bool may_go_on, int *list, int *ret_ready)
{
	int spin[KTHREADS], late[KTHREADS], n = 0, spins = 0, lates = 0;

	if (may_go_on)
		list[n++] = M.current;
	for (int i = 1; i <= M.kthreads; i++) {
		const int kt = M.current + i < M.kthreads ? M.current + i : M.current + i - M.kthreads;
		const struct kthread *k = &M.kt[kt];

		if (k->state == KT_BLOCKED) {
			if (k->deadline != FOREVER)
				late[lates++] = kt;
		} else if (k->state == KT_RUNNABLE && !(kt == M.current && may_go_on)) {
			if (k->yielded)
				spin[spins++] = kt;
			else
				list[n++] = kt;
		}
	}
	for (int i = 0; i < spins; i++)
		list[n++] = spin[i];
	*ret_ready = n;
	for (int i = 0; i < lates; i++)
		list[n++] = late[i];
	return n;
}

/* Of those that wait for the clock, the one with the highest priority of those that are drawn; -1: none. */
static int pct_draw(const int *late, int lates, bool anybody_lowered)
{
	/* One that was made the lowest may be off its CPU for some ticks: the clock goes on meanwhile. */
	const int bits = anybody_lowered && early_ticks < EARLY_MOST ? 2 : 6;
	uint64_t drawn = 0, most = 0;
	int best = -1, left_of_it = 0;

	for (int i = 0; i < lates; i++, left_of_it--, drawn >>= bits) {
		if (!left_of_it) {
			drawn = random_next() >> 4;
			left_of_it = 60 / bits;
		}
		if (!(drawn & ((1u << bits) - 1)) && (best < 0 || priority[late[i]] > most)) {
			best = late[i];
			most = priority[best];
		}
	}
	early_ticks += best >= 0 && bits == 2;
	return best;
}

/*
 * The kthread with the highest priority.  One that spins counts as lower than others; once in a while one that
 * waits for the clock is first.
 */
static int pct_next(bool at_point)
{
	int late[KTHREADS], lates = 0, best = -1, drawn;
	uint64_t most = 0;
	bool lowered = false;

	for (int kt = 0; kt < M.kthreads; kt++) {
		const struct kthread *k = &M.kt[kt];
		const uint64_t rank = priority[kt] | (uint64_t)!k->yielded << 32;

		if (k->state == KT_BLOCKED && k->deadline != FOREVER)
			late[lates++] = kt;
		if (k->state != KT_RUNNABLE)
			continue;
		lowered |= priority[kt] < 1 << 20;
		/* It lets others go first, and they may all spin. */
		if (rank > most && (at_point || kt != M.current)) {
			best = kt;
			most = rank;
		}
	}
	drawn = lates ? pct_draw(late, lates, lowered) : -1;
	return drawn >= 0 ? drawn : best >= 0 ? best : M.current;
}

/* list: the kthreads, NULL: it is something else that is chosen. */
static int pick_listed(const int *list, int n)
{
	struct decision *d;

	if (n < 2 || !left)
		return 0;
	if (how == HOW_LISTED) {
		while (at < decisions && decided[at].step < step)
			at++;
		if (at == decisions || decided[at].step != step)
			return 0;
		d = &decided[at++];
		used += d->pick < n;
		return d->pick < n ? d->pick : 0;
	}
	if (at < decisions) {
		d = &decided[at++];
		if (d->step != step || d->n != n)
			model_outside("a run that was repeated went another way");
		if (d->pick)
			reduce_deviates(d);
		return d->pick;
	}
	if (decisions == DECISIONS)
		model_outside("more decisions than schedule.c has room for");
	d = &decided[decisions];
	*d = (struct decision){ .step = (uint32_t)step, .n = (uint16_t)n, .kt = list ? list[0] : -1, .left = left };
	reduce_note_choice(d, list);
	at = ++decisions;
	return 0;
}

/* Index into the list of what goes on. */
static int pick(const int *list, int n, int ready)
{
	int i;

	if (how == HOW_RANDOM)
		return (int)(random_next() % (random_next() % 8 ? (unsigned)ready : (unsigned)n));
	i = pick_listed(list, n);
	left -= i != 0;
	return i;
}

int schedule_choose(int n, unsigned odds)
{
	int i;

	if (!exploring || n < 2)
		return 0;
	reduce_segment_ends(false);
	/* A list names a choice by its step. */
	step++;
	if (how == HOW_PCT || how == HOW_RANDOM)
		return random_next() % odds ? 0 : 1 + (int)(random_next() % (unsigned)(n - 1));
	i = pick_listed(NULL, n);
	left -= i != 0;
	return i;
}

static void commit_some(void)
{
	if (how != HOW_PCT && how != HOW_RANDOM)
		return;
	for (int kt = 0; kt < M.kthreads; kt++)
		if (kt != M.current && M.store_count[kt] && random_next() % 4 == 0)
			tso_commit_one(kt);
}

static void go_on_with(int kt, const char *why)
{
	const bool late = M.kt[kt].state == KT_BLOCKED;

	if (reduce_resumes(kt))
		run_over(RUN_CUT);
	if (late)
		kthread_fire(kt);
	M.kt[kt].yielded = false;
	if (kt == M.current)
		return;
	/* A point before it does anything would be this one. */
	since_point = late;
	if (tracing)
		trace_switch(M.current, kt, why, late);
	kthread_goto(kt);
}

static void choose_at_point(void)
{
	int list[2 * KTHREADS], n, ready;

	reduce_segment_ends(true);
	points++;
	since_point = false;
	if (step > STEPS_MOST)
		model_fail("livelock: no end after %d steps", STEPS_MOST);
	if (how == HOW_PCT)
		for (int i = 0; i < PCT_CHANGES; i++)
			if (change_at[i] == points) {
				priority[M.current] = --lowest - 4096;
				trace_say("%s has the lowest priority from here on: change point %lu",
					  M.kt[M.current].name, (unsigned long)points);
			}
	if (tso && M.stores)
		commit_some();
	/* Nothing to choose: the common case once all preemptions are used up. */
	if ((how == HOW_EXHAUSTIVE || how == HOW_FIRST) && !left)
		return;
	/* Repeated: there was nothing to choose, or the default was taken. */
	if (how == HOW_EXHAUSTIVE && at < decisions && decided[at].step > step)
		return;
	if (how == HOW_EXHAUSTIVE && at < decisions && decided[at].step == step && !decided[at].pick) {
		at++;
		return;
	}
	if (how == HOW_RANDOM && random_next() % 16)
		return;
	if (how == HOW_PCT) {
		go_on_with(pct_next(true), "is preempted");
		return;
	}
	n = candidates(true, list, &ready);
	if (n > 1)
		go_on_with(list[pick(list, n, ready)], "is preempted");
}

void schedule_point(void)
{
	choose_at_point();
	/* What others have sent it: it comes from the kernel, unless it is there still. */
	if (M.kt[M.current].signalled)
		signals_return();
}

/* It may wait, by looking again and again, for one that never gets its turn: the kernel is fair. */
void schedule_give_way(void)
{
	M.kt[M.current].yielded = true;
	priority[M.current] = --lowest - 8192;
	fairness = true;
	schedule_block();
	if (M.kt[M.current].signalled)
		signals_return();
}

void schedule_block(void)
{
	int list[2 * KTHREADS], n, ready, i;

	reduce_segment_ends(false);
	step++;
	M.kt[M.current].streak = M.kt[M.current].relaxed = 0;
	if (step > STEPS_MOST)
		model_fail("livelock: no end after %d steps", STEPS_MOST);
	/* One that spins may be the only one that can go on. */
	n = candidates(false, list, &ready);
	if (!ready) {
		int first = -1;

		check_quiet();
		for (i = 0; i < n; i++)
			if (first < 0 || M.kt[list[i]].deadline < M.kt[list[first]].deadline)
				first = i;
		if (first < 0)
			model_fail("deadlock: every kernel thread sleeps, and no deadline is to come");
		i = first;
	} else {
		/* Not if it has only been made to give way: then it does something. */
		if (ready == 1 && list[0] == M.current && !fairness)
			check_spin();
		i = n > 1 && how != HOW_PCT ? pick(list, n, ready) : 0;
	}
	fairness = false;
	go_on_with(ready && how == HOW_PCT ? pct_next(false) : list[i],
		   M.kt[M.current].state == KT_RUNNABLE ? "lets others go first" :
		   M.kt[M.current].state == KT_ENDED ? "has ended" : "sleeps");
}

