/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_BASE_RANGES_H
#define FZ_RUNTIME_BASE_RANGES_H

/*
 * runtime/base/ranges.h - is an address in one of many ranges? The ranges do not overlap. They are
 * added before there is a second thread, in memory of the owner's.
 */

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/base.h"

/* Addresses from begin to before end. */
struct fz_range {
	uintptr_t begin, end;
};

struct fz_ranges {
	struct fz_range *range;		/* in the order of addresses */
	unsigned count;
	struct fz_range all;		/* from the first to the last */
};

/* Add a range.  ranges->range must have room for it. */
void fz_ranges_add(struct fz_ranges *ranges, struct fz_range range);

bool fz_ranges_find(const struct fz_ranges *ranges, uintptr_t address);

static inline bool fz_range_has(struct fz_range range, uintptr_t address)
{
	return address - range.begin < range.end - range.begin;
}

/* Any thread, any context. */
static inline bool fz_ranges_have(const struct fz_ranges *ranges, uintptr_t address)
{
	return fz_range_has(ranges->all, address) && fz_ranges_find(ranges, address);
}

#endif
