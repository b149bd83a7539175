/* SPDX-License-Identifier: MIT */
#include "runtime/base/ranges.h"

void fz_ranges_add(struct fz_ranges *ranges, struct fz_range range)
{
	struct fz_range *r = ranges->range;
	unsigned i = ranges->count++;

	for (; i && r[i - 1].begin > range.begin; i--)
		r[i] = r[i - 1];
	r[i] = range;
	ranges->all = (struct fz_range){ r[0].begin, r[ranges->count - 1].end };
}

bool fz_ranges_find(const struct fz_ranges *ranges, uintptr_t address)
{
	unsigned low = 0, high = ranges->count;

	/* Find the first range that begins behind the address. */
	while (low < high) {
		unsigned middle = (low + high) / 2;

		if (ranges->range[middle].begin <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low && address < ranges->range[low - 1].end;
}
