/* SPDX-License-Identifier: MIT */
/*
 * scripts/top/top.c - fiberize top: shows every few seconds what a process does, on a terminal
 * (screen.c) or as plain text (--batch).
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scripts/inspect/commands.h"
#include "scripts/process/say.h"
#include "screen.h"

struct command {
	bool batch;
	unsigned long count;		/* how many pictures; 0: until the process ends */
	unsigned long rows;		/* with batch: how many rows of each table; 0: all */
	double interval;		/* seconds */
	struct table tables[TABLE_COUNT];
};

/* ---- plain text ----------------------------------------------------------------------- */

static void print_table(const struct watch *w, struct table *table, unsigned long most)
{
	const char *missing = table->kind->missing ? table->kind->missing(w) : NULL;
	char line[LINE_MOST];

	table_sort(table, w);
	printf("\n%s, by %s", table->kind->name, table->kind->keys[table->key]);
	if (missing) {
		printf(": %s\n", missing);
		return;
	}
	printf(": %zu\n%s\n", table->count, table->kind->heading);
	for (size_t i = 0; i < table->count && (!most || i < most); i++) {
		table_line(table, w, i, line);
		puts(line);
	}
}

static void print_picture(const struct watch *w, struct command *c)
{
	static const enum table_number order[] = {
		TABLE_PROCESSORS, TABLE_CALLS, TABLE_LATE, TABLE_WAITS, TABLE_FIBERS,
	};
	char head[HEAD_LINES][LINE_MOST];

	table_head(w, head);
	for (size_t i = 0; i < HEAD_LINES; i++)
		puts(head[i]);
	for (size_t i = 0; i < TABLE_COUNT; i++)
		print_table(w, &c->tables[order[i]], c->rows);
	putchar('\n');
	fflush(stdout);
}

/* Print pictures. The first one comes after one interval, because a picture shows the interval before it. */
static int print_pictures(struct watch *w, struct command *c)
{
	unsigned long printed = 0;

	while ((!c->count || printed < c->count) && !ferror(stdout)) {
		const double until = w->now->at + c->interval;

		while (!w->end && watch_wait(w, until, true, -1, NULL) != WAIT_TIME)
			continue;
		if (!watch_take(w)) {
			fprintf(stderr, "fiberize: %s: %s\n", w->target->source.name, w->end);
			return c->count ? EXIT_NO_PROCESS : 0;
		}
		print_picture(w, c);
		printed++;
	}
	return 0;
}

/* ---- the command line ----------------------------------------------------------------- */

static unsigned long number_of(const char *option, const char *word, unsigned long least)
{
	char *end;
	const unsigned long value = strtoul(word, &end, 10);

	if (*end || !*word || word[strspn(word, "0123456789")] || value < least || value > INT32_MAX)
		die(EXIT_USAGE, "top: %s %s: must be a whole number from %lu to %d", option, word, least,
		    INT32_MAX);
	return value;
}

static double interval_of(const char *word)
{
	char *end;
	const double value = strtod(word, &end);

	if (end == word || *end || !(value >= 0.1 && value <= 86400))
		die(EXIT_USAGE, "top: %s: not a number of seconds from 0.1 to 86400", word);
	return value;
}

/* Sort each table that has this key by it. Ends the tool if no table has the key. */
static void sort_by(struct command *c, const char *key)
{
	char all[256] = "";
	bool known = false;

	for (size_t i = 0; i < TABLE_COUNT; i++) {
		const char *const *keys = c->tables[i].kind->keys;
		const size_t used = strlen(all);

		known |= table_set_key(&c->tables[i], key);
		snprintf(all + used, sizeof(all) - used, "%s%s:", i ? "; " : "", c->tables[i].kind->name);
		for (size_t k = 0; k < KEYS_MOST && keys[k]; k++)
			snprintf(all + strlen(all), sizeof(all) - strlen(all), " %s", keys[k]);
	}
	if (!known)
		die(EXIT_USAGE, "top: --sort %s: no such key; there are %s", key, all);
}

static char **parse(struct command *c, char **words)
{
	enum command_option option;
	bool has_rows = false;
	char *value;

	while ((option = option_next("top", &words, &value)) != OPTION_NONE) {
		if (option == OPTION_top_batch)
			c->batch = true;
		else if (option == OPTION_top_count)
			c->count = number_of("--count", value, 1);
		else if (option == OPTION_top_rows)
			c->rows = number_of("--rows", value, 0);
		else
			sort_by(c, value);
		has_rows |= option == OPTION_top_rows;
	}
	if (!words[0] || (words[1] && words[2]))
		wrong_usage("top", "one process id is needed");
	if (!c->batch && (c->count || has_rows))
		die(EXIT_USAGE, "top: --count and --rows: with --batch only");
	if (words[1])
		c->interval = interval_of(words[1]);
	return words;
}

int command_top(char **words)
{
	static struct command c = { .rows = 20, .interval = 1 };
	static struct watch w;
	int code;

	for (size_t i = 0; i < TABLE_COUNT; i++)
		c.tables[i].kind = table_kinds[i];
	words = parse(&c, words);
	if (!watch_open(&w, *words))
		return 0;
	if (!watch_take(&w))
		die(EXIT_NO_PROCESS, "%s: %s", *words, w.end);
	code = c.batch ? print_pictures(&w, &c) : screen_run(&w, c.tables, c.interval);
	for (size_t i = 0; i < TABLE_COUNT; i++)
		free(c.tables[i].order);
	return code;
}
