/* SPDX-License-Identifier: MIT */
/*
 * scripts/counters/stat.c - fiberize stat: prints the counters of a process, once or every few seconds.
 */
#include "scripts/inspect/commands.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "counts.h"
#include "runtime/base/die.h"
#include "scripts/process/say.h"
#include "waiting.h"

typedef unsigned long ulong_t;

/* ---- all, once ---------------------------------------------------------------------- */

static double per(uint64_t n, uint64_t of)
{
	return of ? (double)n / (double)of : 0;
}

static void print_head(const struct counts *c)
{
	const time_t begin = (time_t)c->head.begin;
	char since[64] = "";
	struct tm tm;

	if (localtime_r(&begin, &tm))
		strftime(since, sizeof(since), "%F %T", &tm);
	printf("%s%sprocess %u, %u processor%s, %s, since %s\n", c->head.program,
	       *c->head.program ? ": " : "", c->head.pid, c->head.processors, fz_plural(c->head.processors),
	       *c->head.backend ? c->head.backend : "no backend", since);
}

static void print_always(const struct counts *c)
{
	const uint64_t *sums = c->sums;
	const _Atomic uint64_t *total = c->head.total;
	const double mb = 1 << 20;

	printf("fibers      %lu alive, %lu created, %lu recycled, %lu ended; at most %lu thread%s\n",
	       (ulong_t)c->fibers, (ulong_t)sums[FZ_COUNT_fibers_created],
	       (ulong_t)sums[FZ_COUNT_fibers_recycled], (ulong_t)sums[FZ_COUNT_fibers_ended],
	       (ulong_t)total[FZ_TOTAL_threads_most], fz_plural(total[FZ_TOTAL_threads_most]));
	printf("kernel      %lu thread%s made for fibers, %lu native thread%s, %lu fiber%s wired\n",
	       (ulong_t)total[FZ_TOTAL_kernel_threads], fz_plural(total[FZ_TOTAL_kernel_threads]),
	       (ulong_t)total[FZ_TOTAL_native_threads], fz_plural(total[FZ_TOTAL_native_threads]),
	       (ulong_t)total[FZ_TOTAL_fibers_wired], fz_plural(total[FZ_TOTAL_fibers_wired]));
	for (size_t i = 0; i < FZ_COUNTED_REASONS; i++)
		if (c->head.wired[i].state == 2)
			printf("  wired     %lu for %s\n", (ulong_t)c->head.wired[i].count,
			       c->head.wired[i].why);
	printf("switches    %lu, %lu fibers stolen\n", (ulong_t)sums[FZ_COUNT_switches],
	       (ulong_t)sums[FZ_COUNT_steals]);
	printf("requests    %lu in %lu system calls (%.1f each), %lu completions (%.1f each)\n",
	       (ulong_t)sums[FZ_COUNT_requests], (ulong_t)sums[FZ_COUNT_enters],
	       per(sums[FZ_COUNT_requests], sums[FZ_COUNT_enters]),
	       (ulong_t)sums[FZ_COUNT_completions],
	       per(sums[FZ_COUNT_completions], sums[FZ_COUNT_enters]));
	printf("preempted   %lu processors taken, %lu fibers interrupted\n",
	       (ulong_t)total[FZ_TOTAL_processors_taken], (ulong_t)total[FZ_TOTAL_interruptions]);
	printf("memory      ");
	if (c->resident)
		printf("%.1f MB of the process are resident; ", (double)c->resident / mb);
	printf("address space: stacks %.1f MB, tables %.1f MB, rings %.1f MB\n",
	       (double)total[FZ_TOTAL_stack_bytes] / mb, (double)total[FZ_TOTAL_table_bytes] / mb,
	       (double)total[FZ_TOTAL_ring_bytes] / mb);
}

static int by_calls(const void *a, const void *b)
{
	const struct call_counts *x = a, *y = b;
	const uint64_t n = x->counts.by_fibers + x->counts.passed;
	const uint64_t m = y->counts.by_fibers + y->counts.passed;

	return n > m ? -1 : n < m;
}

/* Print the lower limit of a bucket in ns, us, ms or s. It is a power of two ns, rounded to 3 digits. */
static void put_time(size_t bucket)
{
	static const char *const units[] = { "ns", "us", "ms", "s" };
	double value = (double)((uint64_t)1 << bucket);
	size_t unit = 0;

	for (; value >= 1000 && unit < 3; unit++)
		value /= 1000;
	printf("%8.3g %-2s ", bucket ? value : 0, units[unit]);
}

static void print_times(const struct counts *c)
{
	printf("\n%12s %12s %16s   (one wake-up in %d)\n", "from", "to run", "to completion",
	       FZ_TIME_SAMPLE);
	for (size_t i = 0; i < FZ_TIME_BUCKETS; i++) {
		if (!c->to_run.bucket[i] && !c->to_complete.bucket[i])
			continue;
		put_time(i);
		printf(" %12lu %16lu\n", (ulong_t)c->to_run.bucket[i],
		       (ulong_t)c->to_complete.bucket[i]);
	}
}

static void print_calls(struct counts *c)
{
	qsort(c->calls, c->call_count, sizeof(*c->calls), by_calls);
	printf("\n%12s %12s %12s %10s %8s %8s %12s  %s\n", "BY FIBERS", "AT ONCE", "PARKED",
	       "ANNOUNCED", "LATE", "WIRED", "PASSED", "FUNCTION");
	for (size_t i = 0; i < c->call_count; i++) {
		const struct call_counts *call = &c->calls[i];
		const uint64_t *outcome = call->counts.outcome;

		printf("%12lu %12lu %12lu %10lu %8lu %8lu %12lu  %s (%s)\n",
		       (ulong_t)call->counts.by_fibers, (ulong_t)call->at_once,
		       (ulong_t)outcome[FZ_OUTCOME_PARKED], (ulong_t)outcome[FZ_OUTCOME_ANNOUNCED],
		       (ulong_t)outcome[FZ_OUTCOME_LATE], (ulong_t)outcome[FZ_OUTCOME_WIRED],
		       (ulong_t)call->counts.passed, call->name, call->rung);
	}
	printf("\n%12s  %s\n", "WAITS", "FOR");
	for (size_t i = 0; i < FZ_COUNTED_WAITS; i++)
		if (c->waits[i].count)
			printf("%12lu  %s\n", (ulong_t)c->waits[i].count, c->waits[i].name);
	print_times(c);
}

static void print_text(struct counts *c)
{
	print_head(c);
	print_always(c);
	if (c->has_calls)
		print_calls(c);
	else
		puts("calls and times are not counted: the process runs without --stats "
		     "(FIBERIZE_STATS)");
}

/* ---- every few seconds -------------------------------------------------------------- */

static uint64_t calls_of(const struct counts *c)
{
	uint64_t n = 0;

	for (size_t i = 0; i < c->call_count; i++)
		n += c->calls[i].counts.by_fibers + c->calls[i].counts.passed;
	return n;
}

static double rate(const struct counts *now, const struct counts *before,
		   enum fz_processor_counter which, double seconds)
{
	return (double)(now->sums[which] - before->sums[which]) / seconds;
}

static void print_rates(const struct counts *now, const struct counts *before, double seconds)
{
	const double enters = rate(now, before, FZ_COUNT_enters, seconds);
	const double requests = rate(now, before, FZ_COUNT_requests, seconds);

	printf("%8lu %10.0f %10.0f %10.0f %8.1f %8.0f %10.0f ", (ulong_t)now->fibers,
	       rate(now, before, FZ_COUNT_fibers_created, seconds) +
		       rate(now, before, FZ_COUNT_fibers_recycled, seconds),
	       rate(now, before, FZ_COUNT_switches, seconds), requests,
	       enters > 0 ? requests / enters : 0, rate(now, before, FZ_COUNT_steals, seconds),
	       (double)(now->head.total[FZ_TOTAL_processors_taken] +
			now->head.total[FZ_TOTAL_interruptions] -
			before->head.total[FZ_TOTAL_processors_taken] -
			before->head.total[FZ_TOTAL_interruptions]) / seconds);
	if (now->has_calls)
		printf("%10.0f\n", (double)(calls_of(now) - calls_of(before)) / seconds);
	else
		printf("%10s\n", "-");
}

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Print a line or an object every interval seconds, until the process ends. */
static void watch(const struct counts_source *s, struct counts *first, double interval, bool json)
{
	const struct timespec pause = {
		.tv_sec = (time_t)interval,
		.tv_nsec = (long)((interval - (double)(time_t)interval) * 1e9),
	};
	static struct counts second;
	struct counts *before = first, *now = &second, *swap;
	double at = now_s(), then;

	if (!json)
		printf("%8s %10s %10s %10s %8s %8s %10s %10s\n", "fibers", "new/s", "switches/s",
		       "requests/s", "per-call", "steals/s", "preempt/s", "calls/s");
	for (;;) {
		fflush(stdout);
		if (ferror(stdout))
			return;
		nanosleep(&pause, NULL);
		/* Another process may write the file now. */
		if (!counts_read(s, now) || now->head.pid != before->head.pid ||
		    now->head.begin != before->head.begin)
			return;
		then = at;
		at = now_s();
		if (json)
			counts_print_json(now);
		else
			print_rates(now, before, at - then);
		if (s->file && kill((pid_t)now->head.pid, 0) != 0 && errno == ESRCH)
			return;
		swap = before;
		before = now;
		now = swap;
	}
}

/* ---- the command line --------------------------------------------------------------- */

static double interval_of(const char *word)
{
	char *end;
	double value = strtod(word, &end);

	if (end == word || *end || !(value >= 0.01 && value <= 86400))
		die(EXIT_USAGE, "stat: %s: not a number of seconds from 0.01 to 86400", word);
	return value;
}

int command_stat(char **words)
{
	static struct counts first;
	static struct counts_source source;
	bool json = false, prometheus = false;
	enum command_option option;
	char *value;

	while ((option = option_next("stat", &words, &value)) != OPTION_NONE)
		*(option == OPTION_stat_json ? &json : &prometheus) = true;
	if (!words[0] || (words[1] && words[2]))
		wrong_usage("stat", "one process id or file is needed");
	if (prometheus && (json || words[1]))
		wrong_usage("stat", "--prometheus: neither --json nor an interval with it");
	if (words[1])
		interval_of(words[1]);
	counts_open(&source, words[0]);
	if (!counts_read(&source, &first))
		target_die(&source.target, EXIT_OTHER, "%s: the counters cannot be read", words[0]);
	if (words[1])
		watch(&source, &first, interval_of(words[1]), json);
	else if (prometheus) {
		counts_print_prometheus(&first);
		if (!source.file)
			waiting_print_prometheus(&source.target);
	} else if (json)
		counts_print_json(&first);
	else
		print_text(&first);
	return 0;
}
