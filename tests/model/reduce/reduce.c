/* SPDX-License-Identifier: MIT */
/*
 * tests/model/reduce/reduce.c - partial-order reduction with sleep sets (Godefroid, 1996), so that it keeps the bound on deviations.
 *
 * Two uses of a place by two kthreads depend on each other if one of them writes.  Runs that differ only in the order of uses
 * that do not are of one *order*: each kthread does the same in all of them, every check sees the same, the memory that they
 * leave is the same.  One run of each order is enough.
 *
 * A *segment* S of a kthread T is what T does from a choice at which it goes on by default until its next point.  If the
 * scheduler deviates there in favour of V, the *window* W is what others do until T goes on.  If S and W do not depend on each
 * other, W S and S W are of one order.  And S W has been tried: it is a deviation in favour of V, too, but one
 * point later, and the search is depth first, so later deviations come before earlier ones.  So:
 *
 *  - After a deviation T *sleeps* until somebody else uses a place on which S depends.  If T is to go on while it sleeps,
 *    the run is cut there, with all runs that begin like it; a pick of a kthread that sleeps is not tried at all.
 *  - What the windows used of all runs that began with the later deviation is known (a *footprint*).  If S does not depend
 *    on it, the deviation before S is not tried: each of its runs would be cut, when T goes on.  The later deviation's footprint
 *    is that of this one, too, and is compared with the segment before S next.
 *
 * Why S W is within the bound: it has as many deviations as W S.  V can be picked after S, for before S it could,
 * and S is only looked at if it is *whole*: it has ended at a point of T; no kthread has become runnable or blocked, has been
 * started or has got a signal or a poll to report meanwhile, and the kernel had no choice in it.  For the same reason all picks
 * within W mean the same with S before them as without, and cost the same.  A run that follows W S with a deviation just
 * after S follows S W with one at the end of W.
 * Why a run that is left out has been made, or one of its order: that run was before it in the search, and if it was left
 * out itself, then for one that was still before.
 *
 * What is no order of uses, and is looked at when T is to go on: T was signalled, or has polls to report, which it does before S.
 * Then it does not sleep, and W is no footprint.  Nor is it if the run ends before T goes on: S W has more uses then.
 * V is not the one that runs and gives way: picked, it goes on without a switch, and so does not report to its rings.
 * A window that the cutting of a run ends is that of a run of the same order, or ends there with S before it, too.
 * Points: T has one after S also if it comes from W, for since_point (memory.c) knows only what T has done since it was picked.
 * The clock, the kernel's objects and what invariants.c reads are places (reduce.h).  Counts that no check compares with others
 * (steps, switches, the streak of a spin) are of one kthread each, or only grow.
 *
 * Not with store buffers: a store is seen when the buffer drains, and not where the hook is.  outcomes.h: is it true?
 */
#include "tests/model/reduce/reduce.h"

#include <string.h>

#include "tests/model/reduce/outcomes.h"
#include "tests/model/rings.h"

/* Beyond the last LEVELS deviations of a run nothing is left out as a whole, beyond SLEEPERS nobody sleeps. */
enum { USES = 1 << 20, SLEEPERS = 8, LEVELS = 3, WORDS = PLACES / 64 };

bool reducing = true, watching;

static bool active;

/* The segments of all decisions, in their order. */
static struct { uint32_t place; bool writes; } use[USES];
static uint32_t uses, segment;
static struct decision *recorded;		/* its segment is going on */
static struct decision *just_ended;		/* its segment was whole, and has ended at this very point */

/* A bit of place->asleep_read and asleep_written is of the sleeper with that number. */
static struct { int kt; bool asleep; } sleeper[SLEEPERS];
static int sleepers, asleep;

struct footprint {
	bool known;
	bool spoilt;				/* more than the order of uses counts */
	uint32_t words;				/* of these that may have bits: a bit for each place */
	uint64_t read[WORDS], written[WORDS];
};

/*
 * Of the deviations with so many left behind them, by the kthread in favour of which they were: what the windows used of
 * all runs that began so.  They are of the last choice that was left, or of the one that is being tried.
 */
static struct footprint footprint[LEVELS][KTHREADS];

/* The windows of this run that are open. */
static struct { int kt; struct footprint *print; } window[LEVELS];
static int windows;

/* What no segment may change that is to be put off or brought forward. */
struct states { uint32_t runnable, signalled, reported; int kthreads; };
static struct states before;

static void look_on(void)
{
	watching = outcomes || recorded || asleep || windows;
}

void reduce_begin_run(bool exhaustive)
{
	active = reducing && exhaustive && !tso;
	recorded = just_ended = NULL;
	sleepers = asleep = windows = 0;
	look_on();
	if (outcomes)
		outcomes_begin_run();
}

/* ---- segments ------------------------------------------------------------------------------ */

static struct states states(void)
{
	struct states s = { .kthreads = M.kthreads, .reported = rings_reports(-1) };

	for (int i = 0; i < M.kthreads; i++) {
		s.runnable |= (uint32_t)(M.kt[i].state == KT_RUNNABLE) << i;
		s.signalled |= (uint32_t)M.kt[i].signalled << i;
	}
	return s;
}

/* Before it does what is its next segment, it handles its signals, and reports to its rings. */
static bool has_more_to_do(int kt)
{
	return M.kt[kt].signalled || rings_reports(kt);
}

static bool is_whole(void)
{
	const struct states now = states();

	return recorded->kt == M.current && uses < USES && now.runnable == before.runnable &&
	       now.signalled == before.signalled && now.reported == before.reported && now.kthreads == before.kthreads &&
	       !has_more_to_do(M.current);
}

static bool sleeps(int kt)
{
	for (int i = 0; i < sleepers; i++)
		if (sleeper[i].asleep && sleeper[i].kt == kt)
			return !has_more_to_do(kt);
	return false;
}

void reduce_note_choice(struct decision *d, const int *list)
{
	const struct decision *last = d - 1;

	uses = d == decided ? 0 : last->first_use + last->uses;
	d->first_use = uses;
	if (!active || !list)
		return;
	d->current = M.current;
	d->follows = just_ended && just_ended == last;
	just_ended = NULL;
	for (int i = 0; i < d->n; i++) {
		d->kts[i] = (uint8_t)list[i];
		d->skipped |= (uint32_t)(i && sleeps(list[i])) << i;
	}
	recorded = d;
	segment++;
	before = states();
	look_on();
}

void reduce_segment_ends(bool at_point)
{
	just_ended = NULL;
	if (!recorded)
		return;
	recorded->uses = uses - recorded->first_use;
	recorded->whole = at_point && is_whole();
	if (recorded->whole)
		just_ended = recorded;
	recorded = NULL;
	look_on();
}

/* ---- a deviation, and the end of its window ------------------------------------------------ */

static void put_to_sleep(const struct decision *d)
{
	const uint8_t bit = (uint8_t)(1 << sleepers);

	for (uint32_t i = d->first_use; i < d->first_use + d->uses; i++) {
		struct place *p = &places[use[i].place];

		if (p->asleep_in != run_number) {
			p->asleep_in = run_number;
			p->asleep_read = p->asleep_written = 0;
		}
		if (use[i].writes)
			p->asleep_written |= bit;
		else
			p->asleep_read |= bit;
	}
	sleeper[sleepers].kt = d->kt;
	sleeper[sleepers++].asleep = true;
	asleep++;
}

void reduce_deviates(const struct decision *d)
{
	if (!active || d->kt < 0)
		return;
	if (d->left <= LEVELS) {
		window[windows].kt = d->kt;
		window[windows++].print = &footprint[d->left - 1][d->kts[d->pick]];
	}
	if (d->whole && sleepers < SLEEPERS && d->kts[d->pick] != d->current)
		put_to_sleep(d);
	look_on();
}

static void wake(int i)
{
	if (sleeper[i].asleep)
		asleep--;
	sleeper[i].asleep = false;
}

bool reduce_resumes(int kt)
{
	int open = 0;

	if (!windows && !asleep)
		return false;
	for (int i = 0; i < windows; i++)
		if (window[i].kt != kt)
			window[open++] = window[i];
		else if (has_more_to_do(kt))
			window[i].print->spoilt = true;
	windows = open;
	if (sleeps(kt))
		return true;
	for (int i = 0; i < sleepers; i++)
		if (sleeper[i].kt == kt)
			wake(i);
	look_on();
	return false;
}

void reduce_end_run(bool cut)
{
	for (int i = 0; i < windows && !cut; i++)
		window[i].print->spoilt = true;
}

/* ---- between runs -------------------------------------------------------------------------- */

void reduce_begin_pick(const struct decision *d)
{
	struct footprint *f;

	if (!active || d->kt < 0 || d->left > LEVELS)
		return;
	f = &footprint[d->left - 1][d->kts[d->pick]];
	memset(f->read, 0, f->words * sizeof(f->read[0]));
	memset(f->written, 0, f->words * sizeof(f->written[0]));
	f->words = 0;
	f->known = true;
	f->spoilt = false;
}

static bool depends(const struct decision *d, const struct footprint *f)
{
	for (uint32_t i = d->first_use; i < d->first_use + d->uses; i++) {
		const uint32_t word = use[i].place / 64;
		const uint64_t bit = (uint64_t)1 << use[i].place % 64;

		if (f->written[word] & bit || (use[i].writes && f->read[word] & bit))
			return true;
	}
	return false;
}

/* Which picks of the choice before need not be tried, if the segment there has led here? */
void reduce_leave(const struct decision *d)
{
	struct decision *earlier = &decided[d - decided - d->follows];

	if (!active || d->left > LEVELS)
		return;
	if (!d->follows) {
		for (int i = 0; i < KTHREADS; i++)
			footprint[d->left - 1][i].known = false;
		return;
	}
	for (int i = 1; i < earlier->n; i++) {
		const struct footprint *f = &footprint[d->left - 1][earlier->kts[i]];

		if (f->known && !f->spoilt && earlier->kts[i] != earlier->current && !depends(earlier, f))
			earlier->skipped |= (uint32_t)1 << i;
	}
}

/* ---- uses ---------------------------------------------------------------------------------- */

/* Each place once, or twice if it is read before it is written. */
static void record(struct place *p, bool writes)
{
	if (p->segment == segment && (p->segment_writes || !writes))
		return;
	p->segment = segment;
	p->segment_writes = writes;
	if (uses == USES)
		return;
	use[uses].place = (uint32_t)(p - places);
	use[uses++].writes = writes;
}

static void add(struct footprint *f, uint32_t place, bool writes)
{
	const uint32_t word = place / 64;

	(writes ? f->written : f->read)[word] |= (uint64_t)1 << place % 64;
	if (word >= f->words)
		f->words = word + 1;
}

void reduce_touch(struct place *p, bool writes)
{
	uint32_t woken;

	if (outcomes)
		outcomes_use(p, writes);
	if (recorded)
		record(p, writes);
	for (int i = 0; i < windows; i++)
		add(window[i].print, (uint32_t)(p - places), writes);
	if (!asleep || p->asleep_in != run_number)
		return;
	woken = p->asleep_written | (writes ? p->asleep_read : 0u);
	for (; woken; woken &= woken - 1)
		wake(__builtin_ctz(woken));
	look_on();
}

void reduce_use(uintptr_t object, bool writes)
{
	if (!exploring)
		return;
	since_point = true;
	if (watching)
		reduce_touch(memory_place(object), writes);
}

static void touch_all(const void *p, size_t size, bool writes)
{
	if (exploring && watching)
		for (uintptr_t key = (uintptr_t)p / 8; key <= ((uintptr_t)p + size - 1) / 8; key++)
			reduce_touch(memory_place(key), writes);
}

void reduce_read(const void *p, size_t size)
{
	touch_all(p, size, false);
}

void reduce_write(const void *p, size_t size)
{
	touch_all(p, size, true);
}
