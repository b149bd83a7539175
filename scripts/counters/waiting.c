/* SPDX-License-Identifier: MIT */
#include "waiting.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scripts/inspect/fibers.h"
#include "scripts/inspect/waits.h"
#include "scripts/process/say.h"

struct row {
	const char *kind;
	size_t threads;
	double longest;			/* seconds */
};

struct rows {
	struct row row[64];		/* more than there are kinds */
	size_t count;
};

static struct row *row_of(struct rows *rows, const char *kind)
{
	for (size_t i = 0; i < rows->count; i++)
		if (strcmp(rows->row[i].kind, kind) == 0)
			return &rows->row[i];
	if (rows->count == sizeof(rows->row) / sizeof(*rows->row))
		return NULL;
	rows->row[rows->count] = (struct row){ .kind = kind };
	return &rows->row[rows->count++];
}

static void add(struct rows *rows, const struct fiber *f, const char *kind)
{
	struct row *row = *kind ? row_of(rows, kind) : NULL;

	if (!row)
		return;
	row->threads++;
	if (f->waits_since > row->longest)
		row->longest = f->waits_since;
}

static void print(const struct rows *rows)
{
	puts("# HELP fiberize_threads_waiting threads that wait now, by what they wait for\n"
	     "# TYPE fiberize_threads_waiting gauge");
	for (size_t i = 0; i < rows->count; i++)
		printf("fiberize_threads_waiting{kind=\"%s\"} %zu\n", rows->row[i].kind, rows->row[i].threads);
	puts("# HELP fiberize_longest_wait_seconds how long the longest of the waits has lasted, by what the thread waits for\n"
	     "# TYPE fiberize_longest_wait_seconds gauge");
	for (size_t i = 0; i < rows->count; i++)
		printf("fiberize_longest_wait_seconds{kind=\"%s\"} %.6f\n", rows->row[i].kind,
		       rows->row[i].longest);
}

void waiting_print_prometheus(const struct target *t)
{
	struct rows rows = { .count = 0 };
	struct fibers all;
	const char **kinds;

	if (t->is_loading || !target_root(t, ENTRY_started))
		return;
	/* Print these kinds even if no thread waits: an alert needs a 0, not a missing value. */
	for (size_t i = 0; wait_plain_kind(i); i++)
		row_of(&rows, wait_plain_kind(i));
	if (!fibers_try(t, &all, false)) {
		kinds = calloc(all.count + 1, sizeof(*kinds));
		if (!kinds)
			die(EXIT_OTHER, "no memory for %zu threads", all.count);
		wait_kinds(t, all.list, all.count, kinds);
		for (size_t i = 0; i < all.count; i++)
			add(&rows, &all.list[i], kinds[i]);
		print(&rows);
		free(kinds);
	}
	fibers_free(&all);
}
