/* SPDX-License-Identifier: MIT */
/*
 * scripts/top/calls.c - two tables of calls: what becomes of all calls, and the calls from which the
 * monitor has taken a processor late.
 */
#include "tables_internal.h"

#include <stdio.h>

/* ---- calls -------------------------------------------------------------------------- */

static size_t count_calls(const struct watch *w)
{
	return w->now->counts.call_count;
}

struct call_rates {
	double calls, at_once, passed, outcome[FZ_OUTCOMES];
	uint64_t total;
};

static struct call_rates rates_of(const struct watch *w, size_t row)
{
	static const struct call_counts none;
	const struct call_counts *now = &w->now->counts.calls[row];
	const struct call_counts *before = watch_call_before(w, now);
	struct call_rates r = { .total = now->counts.by_fibers + now->counts.passed };

	if (!before)
		before = &none;
	r.calls = watch_rate(w, r.total, before->counts.by_fibers + before->counts.passed);
	r.at_once = watch_rate(w, now->at_once, before->at_once);
	r.passed = watch_rate(w, now->counts.passed, before->counts.passed);
	for (size_t i = 0; i < FZ_OUTCOMES; i++)
		r.outcome[i] = watch_rate(w, now->counts.outcome[i], before->counts.outcome[i]);
	return r;
}

static bool value_of_call(const struct watch *w, size_t row, const char *key, double *value)
{
	const struct call_rates r = rates_of(w, row);

	if (is(key, "total"))
		*value = (double)r.total;
	else if (is(key, "parked"))
		*value = r.outcome[FZ_OUTCOME_PARKED];
	else if (is(key, "announced"))
		*value = r.outcome[FZ_OUTCOME_ANNOUNCED];
	else
		*value = r.calls > 0 ? r.calls : (double)r.total / 1e18;
	return true;
}

static const char *text_of_call(const struct watch *w, size_t row, const char *key)
{
	const struct call_counts *call = &w->now->counts.calls[row];

	if (is(key, "rung"))
		return call->rung;
	return is(key, "function") ? call->name : NULL;
}

/* The name of the call's rung with - for a blank, so that programs can read the table by words. */
static const char *rung_of(const struct call_counts *call, char *word, size_t size)
{
	snprintf(word, size, "%s", call->rung);
	for (char *c = word; *c; c++)
		if (*c == ' ')
			*c = '-';
	return word;
}

static void print_call(const struct watch *w, size_t row, char *line, size_t size)
{
	const struct call_counts *call = &w->now->counts.calls[row];
	const struct call_rates r = rates_of(w, row);
	char rung[sizeof(call->rung)];

	snprintf(line, size, "%-22s %-13s %9.0f %9.0f %9.0f %9.0f %6.0f %6.0f %9.0f %12lu", call->name,
		 rung_of(call, rung, sizeof(rung)), r.calls, r.at_once, r.outcome[FZ_OUTCOME_PARKED],
		 r.outcome[FZ_OUTCOME_ANNOUNCED], r.outcome[FZ_OUTCOME_LATE],
		 r.outcome[FZ_OUTCOME_WIRED], r.passed, (unsigned long)r.total);
}

static const char *no_calls(const struct watch *w)
{
	return w->now->counts.has_calls ? NULL :
		"calls are not counted: the process runs without --stats (FIBERIZE_STATS)";
}

/* ---- late takeovers ----------------------------------------------------------------- */

static uint64_t late(const struct call_counts *call)
{
	return call ? call->counts.outcome[FZ_OUTCOME_LATE] : 0;
}

static bool value_of_late(const struct watch *w, size_t row, const char *key, double *value)
{
	const struct call_counts *call = &w->now->counts.calls[row];

	if (!late(call))
		return false;
	*value = is(key, "total") ? 0 : watch_rate(w, late(call), late(watch_call_before(w, call)));
	if (*value <= 0)
		*value = (double)late(call) / (is(key, "total") ? 1 : 1e18);
	return true;
}

static void print_late(const struct watch *w, size_t row, char *line, size_t size)
{
	const struct call_counts *call = &w->now->counts.calls[row];
	char rung[sizeof(call->rung)];

	snprintf(line, size, "%-22s %-13s %9.1f %12lu %6.2f", call->name,
		 rung_of(call, rung, sizeof(rung)),
		 watch_rate(w, late(call), late(watch_call_before(w, call))),
		 (unsigned long)late(call),
		 100 * (double)late(call) / (double)(call->counts.by_fibers ? call->counts.by_fibers : 1));
}

const struct table_kind calls_table = {
	.name = "calls",
	.heading = "FUNCTION               RUNG            CALLS/s   AT-ONCE    PARKED ANNOUNCED   LATE  WIRED    PASSED        TOTAL",
	.keys = { "rate", "total", "parked", "announced", "function", "rung" },
	.count = count_calls, .value = value_of_call, .text = text_of_call,
	.print = print_call, .missing = no_calls,
};

const struct table_kind late_table = {
	.name = "late",
	.heading = "FUNCTION               RUNG             LATE/s        TOTAL  LATE%",
	.keys = { "rate", "total", "function", "rung" },
	.count = count_calls, .value = value_of_late, .text = text_of_call,
	.print = print_late, .missing = no_calls,
};
