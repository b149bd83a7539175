/* SPDX-License-Identifier: MIT */
#ifndef TOP_TABLES_H
#define TOP_TABLES_H

/*
 * scripts/top/tables.h - what is shown of a process: some lines on the whole process, and tables.
 */

#include "watch.h"

enum { LINE_MOST = 1024, KEYS_MOST = 8 };

struct table_kind {
	const char *name, *heading;
	const char *keys[KEYS_MOST];	/* keys to sort by; the first is the default */
	/* The largest possible number of rows. A row is shown only if value() returns true. */
	size_t (*count)(const struct watch *w);
	/* The value of a row by which rows are sorted, the largest first.  False: do not show the row. */
	bool (*value)(const struct watch *w, size_t row, const char *key, double *ret_value);
	/* The text by which rows are sorted; NULL if this key has a value instead. */
	const char *(*text)(const struct watch *w, size_t row, const char *key);
	void (*print)(const struct watch *w, size_t row, char *line, size_t size);
	/* In words, why there cannot be any rows; or NULL. */
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
	unsigned key;			/* index in kind->keys */
	struct place *order;
	size_t count, room;
};

enum table_number { TABLE_FIBERS, TABLE_CALLS, TABLE_WAITS, TABLE_LATE, TABLE_PROCESSORS, TABLE_COUNT };
extern const struct table_kind *const table_kinds[TABLE_COUNT];

enum { HEAD_LINES = 3 };

/* Write the lines on the whole process. */
void table_head(const struct watch *w, char lines[HEAD_LINES][LINE_MOST]);

/* Choose the rows to show, and sort them by the table's key. */
void table_sort(struct table *table, const struct watch *w);

/* Write the row at this place of the order as a line. */
void table_line(const struct table *table, const struct watch *w, size_t place, char *line);

/* Set the key to sort by. Returns false if the table has no such key. */
bool table_set_key(struct table *table, const char *key);

#endif
