/* SPDX-License-Identifier: MIT */
#ifndef TOP_TABLES_INTERNAL_H
#define TOP_TABLES_INTERNAL_H

/* scripts/top/tables_internal.h - shared by tables.c and calls.c, which make the tables. */

#include <string.h>

#include "tables.h"

extern const struct table_kind calls_table, late_table;

static inline bool is(const char *a, const char *b)
{
	return strcmp(a, b) == 0;
}

#endif
