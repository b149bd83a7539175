/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>

#include "runtime/base/ranges.h"

TestSuite(ranges, .timeout = 120);

Test(ranges, none_has_no_address)
{
	const struct fz_ranges none = { 0 };

	cr_assert_not(fz_ranges_have(&none, 0));
	cr_assert_not(fz_ranges_find(&none, 0));
	cr_assert_not(fz_ranges_have(&none, UINTPTR_MAX));
}

/* Begins at multiples of 16, lengths from 0 to 16, added in many orders. */
Test(ranges, an_address_is_found_in_its_range_whatever_the_order)
{
	enum { COUNT = 17 };

	for (unsigned step = 1; step < COUNT; step++) {
		struct fz_range room[COUNT];
		struct fz_ranges ranges = { .range = room };

		for (unsigned i = 0; i < COUNT; i++) {
			const uintptr_t n = i * step % COUNT + 1;

			fz_ranges_add(&ranges, (struct fz_range){ n * 16, n * 16 + n - 1 });
		}
		cr_assert_eq(ranges.count, COUNT);
		for (uintptr_t at = 0; at < (COUNT + 3) * 16; at++) {
			const uintptr_t n = at / 16;
			const bool inside = n >= 1 && n <= COUNT && at % 16 < n - 1;

			cr_assert_eq(fz_ranges_have(&ranges, at), inside, "step %u, %lu", step, at);
		}
	}
}
