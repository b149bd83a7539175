/* SPDX-License-Identifier: MIT */
#ifndef FZ_BENCH_HISTOGRAM_H
#define FZ_BENCH_HISTOGRAM_H

/*
 * scripts/bench/histogram.h - a histogram of latencies in microseconds: exact up to 64, then 64
 * classes per power of two (1.6 %), up to 2^45. Zeroed storage is an empty histogram. One
 * thread.
 */

#include <stdint.h>

enum {
	HISTOGRAM_SUB = 64,
	HISTOGRAM_CLASSES = 40 * HISTOGRAM_SUB,
};

struct histogram {
	uint64_t count;
	uint64_t in_class[HISTOGRAM_CLASSES];
};

static inline unsigned histogram_class(uint64_t us)
{
	unsigned shift, class;

	if (us < HISTOGRAM_SUB)
		return (unsigned)us;
	shift = 63u - (unsigned)__builtin_clzll(us) - 6;
	class = (shift + 1) * HISTOGRAM_SUB + (unsigned)((us >> shift) - HISTOGRAM_SUB);
	return class < HISTOGRAM_CLASSES ? class : HISTOGRAM_CLASSES - 1;
}

static inline double histogram_middle(unsigned class)
{
	unsigned shift;

	if (class < HISTOGRAM_SUB)
		return class + 0.5;
	shift = class / HISTOGRAM_SUB - 1;
	return (double)((uint64_t)(HISTOGRAM_SUB + class % HISTOGRAM_SUB) << shift) +
	       (double)(1ull << shift) / 2;
}

static inline void histogram_add(struct histogram *h, uint64_t us)
{
	h->count++;
	h->in_class[histogram_class(us)]++;
}

/* The latency in microseconds below which share (0 to 1) of all values lie; 0 if there are none. */
static inline double histogram_percentile(const struct histogram *h, double share)
{
	uint64_t wanted = (uint64_t)(share * (double)h->count);
	uint64_t seen = 0;

	for (unsigned c = 0; c < HISTOGRAM_CLASSES; c++) {
		seen += h->in_class[c];
		if (seen > wanted)
			return histogram_middle(c);
	}
	return 0;
}

#endif
