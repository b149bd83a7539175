/* SPDX-License-Identifier: MIT */
#ifndef TOP_TABLES_H
#define TOP_TABLES_H

/*
 * scripts/top/tables.h - what is shown of a process: some lines on the whole, and tables.
 */

#include "watch.h"

enum { LINE_MOST = 1024, KEYS_MOST = 8 };

struct table_kind {
	const char *name, *heading;
	const char *keys[KEYS_MOST];	/* to sort by; the first is the usual one */
	/* How many rows there may be; each is shown if value() says so. */
	size_t (*count)(const struct watch *w);
	/* The largest comes first.  False: the row is not shown. */
	bool (*value)(const struct watch *w, size_t row, const char *key, double *ret_value);
	/* What to sort by if the key is no number; or NULL. */
	const char *(*text)(const struct watch *w, size_t row, const char *key);
	void (*print)(const struct watch *w, size_t row, char *line, size_t size);
	/* Why there are no rows, or NULL. */
	const char *(*missing)(const struct watch *w);
};

struct place {
	double value;
	const char *text;
	size_t row;
};

/* The rows of a table in the order of a key, for one picture. */
struct table {
	const struct table_kind *kind;
	unsigned key;			/* a place in kind->keys */
	struct place *order;
	size_t count, room;
};

enum table_number { TABLE_FIBERS, TABLE_CALLS, TABLE_WAITS, TABLE_LATE, TABLE_PROCESSORS, TABLE_COUNT };
extern const struct table_kind *const table_kinds[TABLE_COUNT];

enum { HEAD_LINES = 3 };

/* Write the lines on the whole process. */
void table_head(const struct watch *w, char lines[HEAD_LINES][LINE_MOST]);

/* Put the rows in order. */
void table_sort(struct table *table, const struct watch *w);

/* Write the line in this place of the order. */
void table_line(const struct table *table, const struct watch *w, size_t place, char *line);

/* Sort by this key; false: the table has no such key. */
bool table_set_key(struct table *table, const char *key);

#endif
