/* SPDX-License-Identifier: MIT */
#include "tables_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scripts/inspect/ps.h"
#include "scripts/process/say.h"
#include "scripts/process/text.h"

/* ---- the whole ---------------------------------------------------------------------- */

static void head_threads(const struct watch *w, char *line)
{
	const struct picture *p = w->now;
	size_t used = (size_t)snprintf(line, LINE_MOST, "%s%s%d: ", p->counts.head.program,
				       *p->counts.head.program ? " " : "", w->target->source.pid);

	ps_summary(&p->all, p->states, line + used, LINE_MOST - used);
	used = strlen(line);
	snprintf(line + used, LINE_MOST - used, "; %lu in run queues", (unsigned long)w->processors.queued);
}

static void head_process(const struct watch *w, char *line)
{
	const struct picture *p = w->now;
	const double cpu = w->before && p->cpu > w->before->cpu ?
				   100 * (p->cpu - w->before->cpu) / w->seconds : 0;

	snprintf(line, LINE_MOST, "CPU %.1f %%, %.1f s in all; resident %.1f MB; %s; %.2f s from picture to picture",
		 cpu, p->cpu, p->resident / (1 << 20),
		 *p->counts.head.backend ? p->counts.head.backend : "no backend", w->seconds);
}

static void head_rates(const struct watch *w, char *line)
{
	const double enters = watch_sum_rate(w, FZ_COUNT_enters);
	const double requests = watch_sum_rate(w, FZ_COUNT_requests);

	snprintf(line, LINE_MOST,
		 "per second: %.0f switches, %.0f requests (%.1f a call), %.0f new threads, %.0f stolen, "
		 "%.0f processors taken, %.0f interrupted",
		 watch_sum_rate(w, FZ_COUNT_switches), requests, enters > 0 ? requests / enters : 0,
		 watch_sum_rate(w, FZ_COUNT_fibers_created) + watch_sum_rate(w, FZ_COUNT_fibers_recycled),
		 watch_sum_rate(w, FZ_COUNT_steals), watch_total_rate(w, FZ_TOTAL_processors_taken),
		 watch_total_rate(w, FZ_TOTAL_interruptions));
}

void table_head(const struct watch *w, char lines[HEAD_LINES][LINE_MOST])
{
	head_threads(w, lines[0]);
	head_process(w, lines[1]);
	head_rates(w, lines[2]);
}

/* ---- fibers ------------------------------------------------------------------------- */

static size_t count_fibers(const struct watch *w)
{
	return w->now->all.count;
}

static bool value_of_fiber(const struct watch *w, size_t row, const char *key, double *value)
{
	const struct fiber *f = &w->now->all.list[row];
	const struct heat *heat = &w->now->heat[row];

	if (is(key, "cpu"))
		*value = heat->cpu > 0 ? heat->cpu : (double)f->cpu_ns / 1e18;
	else if (is(key, "switches"))
		*value = heat->switches > 0 ? heat->switches : (double)f->switches / 1e18;
	else if (is(key, "since"))
		*value = f->waits_since;
	else if (is(key, "state"))
		*value = -(double)f->state;
	else
		*value = -(double)f->tid;
	return true;
}

static const char *text_of_fiber(const struct watch *w, size_t row, const char *key)
{
	if (is(key, "name"))
		return w->now->all.list[row].name;
	return is(key, "wait") ? w->now->kinds[row] : NULL;
}

static void print_fiber(const struct watch *w, size_t row, char *line, size_t size)
{
	const struct fiber *f = &w->now->all.list[row];
	const struct heat *heat = &w->now->heat[row];
	const char *detail = watch_detail(w, row);
	const char *name = f->is_main && !*f->name ? "(main)" : f->name;
	char since[24] = "-", processor[16] = "-";

	if (f->waits_since >= 0)
		snprintf(since, sizeof(since), "%.3f", f->waits_since);
	if (f->processor >= 0)
		snprintf(processor, sizeof(processor), "%d", f->processor);
	snprintf(line, size, "%8d %-9s %4s %5.1f %8.3f %8.0f %8s  %-*s %s", f->tid,
		 ps_states[f->state], processor, 100 * heat->cpu, (double)f->cpu_ns / 1e9,
		 heat->switches, since, text_field(name, 15), name,
		 *detail ? detail : "-");
}

/* ---- waits -------------------------------------------------------------------------- */

/*
 * First one row for each kind of wait that the library counts, by its number. Then one row for each kind
 * of request (read, accept ...), because the library counts all requests as one kind.
 */
static size_t count_waits(const struct watch *w)
{
	return FZ_COUNTED_WAITS + w->now->wait_count;
}

static bool is_request(const struct watch *w, unsigned waits_for)
{
	return waits_for == target_value(w->target, ENTRY_for_request);
}

/* The number of threads that wait for the kind in this row now, and their longest wait. */
static struct kind wait_of_row(const struct watch *w, size_t row)
{
	const struct picture *p = w->now;
	struct kind sum = { .waits_for = (unsigned)row, .longest = -1 };

	if (row >= FZ_COUNTED_WAITS)
		return p->waits[row - FZ_COUNTED_WAITS];
	sum.name = is_request(w, sum.waits_for) ? "request" : wait_kind(w->target, sum.waits_for);
	for (size_t i = 0; i < p->wait_count; i++) {
		if (p->waits[i].waits_for != row)
			continue;
		sum.threads += p->waits[i].threads;
		sum.longest = fmax(sum.longest, p->waits[i].longest);
	}
	return sum;
}

static uint64_t counted_waits(const struct picture *p, size_t row)
{
	return p ? p->counts.waits[row].count : 0;
}

static double wait_rate(const struct watch *w, size_t row)
{
	return watch_rate(w, counted_waits(w->now, row), counted_waits(w->before, row));
}

static bool value_of_wait(const struct watch *w, size_t row, const char *key, double *value)
{
	const struct kind k = wait_of_row(w, row);
	const bool is_counted = row < FZ_COUNTED_WAITS;

	if (is(key, "longest"))
		*value = k.longest;
	else if (is(key, "rate"))
		*value = is_counted ? wait_rate(w, row) : 0;
	else
		*value = (double)k.threads;
	return is_counted ? k.threads || counted_waits(w->now, row) : is_request(w, k.waits_for);
}

static void print_wait(const struct watch *w, size_t row, char *line, size_t size)
{
	const bool is_counted = row < FZ_COUNTED_WAITS && w->now->counts.has_calls;
	const struct kind k = wait_of_row(w, row);
	char longest[24] = "-", rate[24] = "-", total[24] = "-";

	if (k.longest >= 0)
		snprintf(longest, sizeof(longest), "%.3f", k.longest);
	if (is_counted) {
		snprintf(rate, sizeof(rate), "%.0f", wait_rate(w, row));
		snprintf(total, sizeof(total), "%lu", (unsigned long)counted_waits(w->now, row));
	}
	snprintf(line, size, "%9zu %12s %9s %12s  %s%s", k.threads, longest, rate, total,
		 row < FZ_COUNTED_WAITS ? "" : "request: ", k.name);
}

/* ---- processors --------------------------------------------------------------------- */

static size_t count_processors(const struct watch *w)
{
	return w->processors.count;
}

static double processor_rate(const struct watch *w, size_t row, enum fz_processor_counter which)
{
	return w->before ? watch_rate(w, w->now->counts.head.processor[row].count[which],
				      w->before->counts.head.processor[row].count[which]) : 0;
}

static double mean_queue(const struct watch *w, size_t row)
{
	const struct processors *all = &w->processors;

	return all->looks ? (double)all->list[row].queued_sum / all->looks : 0;
}

/* A time as per cent of the time since the last picture; 0 in the first picture, as it is not known yet. */
static double per_cent(const struct watch *w, uint64_t ns)
{
	return w->seconds > 0 ? fmin((double)ns / 1e7 / w->seconds, 100) : 0;
}

/* How busy the processor was, by its CPU time. */
static double processor_busy(const struct watch *w, size_t row)
{
	return per_cent(w, w->processors.list[row].cpu_ns);
}

static bool value_of_processor(const struct watch *w, size_t row, const char *key, double *value)
{
	if (is(key, "busy"))
		*value = processor_busy(w, row);
	else if (is(key, "switches"))
		*value = processor_rate(w, row, FZ_COUNT_switches);
	else if (is(key, "queue"))
		*value = mean_queue(w, row);
	else
		*value = -(double)row;
	return true;
}

static void print_processor(const struct watch *w, size_t row, char *line, size_t size)
{
	static const char *const words[DOING_COUNT] = {
		[DOING_BUSY] = "busy", [DOING_LIBRARY] = "library", [DOING_CALL] = "call",
		[DOING_IDLE] = "idle",
	};
	const struct processors *all = &w->processors;
	const double busy = processor_busy(w, row);
	const double delayed = fmin(per_cent(w, all->list[row].delayed_ns), 100 - busy);
	const enum doing doing = all->list[row].doing;

	snprintf(line, size, "%4zu %-7s %6.1f %6.1f %6.1f %8.1f %6.1f %10.0f %8.0f %10.0f %7lu %7.1f", row,
		 doing == DOING_IDLE && row >= w->now->all.open ? "closed" : words[doing], busy, delayed,
		 100 - busy - delayed, processor_library(all, row),
		 processor_share(all, row, DOING_CALL), processor_rate(w, row, FZ_COUNT_switches),
		 processor_rate(w, row, FZ_COUNT_steals), processor_rate(w, row, FZ_COUNT_requests),
		 (unsigned long)all->list[row].queued, mean_queue(w, row));
}

/* ---- all tables --------------------------------------------------------------------- */

static const struct table_kind fibers_table = {
	.name = "fibers",
	.heading = "     TID STATE     PROC  CPU%    CPU s SWITCH/s  WAITS s  NAME            WAITS FOR",
	.keys = { "cpu", "switches", "since", "tid", "name", "state", "wait" },
	.count = count_fibers, .value = value_of_fiber, .text = text_of_fiber,
	.print = print_fiber,
};

static const struct table_kind waits_table = {
	.name = "waits",
	.heading = "  WAITING    LONGEST s   WAITS/s        TOTAL  FOR",
	.keys = { "threads", "longest", "rate" },
	.count = count_waits, .value = value_of_wait, .print = print_wait,
};

static const struct table_kind processors_table = {
	.name = "processors",
	.heading = "PROC NOW      BUSY% DELAY%  IDLE% LIBRARY%  CALL% SWITCHES/s STOLEN/s REQUESTS/s  QUEUED    MEAN",
	.keys = { "number", "busy", "switches", "queue" },
	.count = count_processors, .value = value_of_processor, .print = print_processor,
};

const struct table_kind *const table_kinds[TABLE_COUNT] = {
	[TABLE_FIBERS] = &fibers_table, [TABLE_CALLS] = &calls_table, [TABLE_WAITS] = &waits_table,
	[TABLE_LATE] = &late_table, [TABLE_PROCESSORS] = &processors_table,
};

/* Compare by the text if both have one, and then by the value: the largest comes first. */
static int by_place(const void *a, const void *b)
{
	const struct place *x = a, *y = b;
	const int order = x->text && y->text ? strcmp(x->text, y->text) : 0;

	if (order)
		return order;
	if (x->value != y->value)
		return x->value > y->value ? -1 : 1;
	return x->row < y->row ? -1 : x->row > y->row;
}

void table_sort(struct table *table, const struct watch *w)
{
	const struct table_kind *kind = table->kind;
	const char *key = kind->keys[table->key];
	const size_t rows = kind->count(w);

	if (rows > table->room) {
		table->room = rows + rows / 2;
		table->order = realloc(table->order, table->room * sizeof(*table->order));
		if (!table->order)
			die(EXIT_OTHER, "no memory for %zu rows", rows);
	}
	table->count = 0;
	for (size_t row = 0; row < rows; row++) {
		struct place *place = &table->order[table->count];

		if (!kind->value(w, row, key, &place->value))
			continue;
		place->row = row;
		place->text = kind->text ? kind->text(w, row, key) : NULL;
		table->count++;
	}
	if (table->count)
		qsort(table->order, table->count, sizeof(*table->order), by_place);
}

void table_line(const struct table *table, const struct watch *w, size_t place, char *line)
{
	table->kind->print(w, table->order[place].row, line, LINE_MOST);
}

bool table_set_key(struct table *table, const char *key)
{
	for (unsigned i = 0; i < KEYS_MOST && table->kind->keys[i]; i++)
		if (is(table->kind->keys[i], key)) {
			table->key = i;
			return true;
		}
	return false;
}
