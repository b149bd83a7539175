/* SPDX-License-Identifier: MIT */
/* scripts/bench/programs/compute/openmp/loops.c - parallel loops with a barrier after each. */
#include <stdio.h>
#include <stdlib.h>

enum { SIZE = 100000, LOOPS = 4000 };

static double values[SIZE];

int main(void)
{
	double sum = 0;

	for (int k = 0; k < LOOPS; k++) {
#pragma omp parallel for reduction(+ : sum)
		for (int i = 0; i < SIZE; i++) {
			values[i] = values[i] * 0.5 + i;
			sum += values[i];
		}
	}
	printf("operations %d\nsum_is_positive %d\n", LOOPS, sum > 0);
	return EXIT_SUCCESS;
}
