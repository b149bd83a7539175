/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>

#include "runtime/base/count.h"

TestSuite(counters, .timeout = 120);

Test(counters, a_sum_has_what_all_blocks_have_counted)
{
	struct fz_call_counts sum;
	struct fz_block *block;

	cr_assert(fz_counters_start_calls());
	/* More than there are: the last ones share. */
	for (unsigned i = 0; i < FZ_BLOCKS_MOST + 10; i++) {
		block = fz_counters_block();
		cr_assert(block);
		fz_count_in(block, &block->calls[3].by_fibers);
		fz_count_in(block, &block->calls[3].outcome[FZ_OUTCOME_LATE]);
		fz_count_in(block, &block->calls[4].by_fibers);
	}
	block = fz_counters_shared_block();
	fz_count_in(block, &block->calls[3].passed);
	sum = fz_counters_sum(3);
	cr_assert_eq(sum.by_fibers, FZ_BLOCKS_MOST + 10);
	cr_assert_eq(sum.passed, 1);
	cr_assert_eq(sum.outcome[FZ_OUTCOME_LATE], FZ_BLOCKS_MOST + 10);
	cr_assert_eq(sum.outcome[FZ_OUTCOME_PARKED], 0);
	sum = fz_counters_sum(5);
	cr_assert_eq(sum.by_fibers + sum.passed, 0);
}
