/* SPDX-License-Identifier: MIT */
#include "gain.h"

#include <math.h>

/* A wait in a program costs up to this many times what wait_cost_ns() measures (gain.h). */
static const double MARGIN = 2;

static double by_system(const struct activity *a)
{
	const double n = (double)a->ticks, share = n > 0 ? a->system / a->cpu : 1;

	/* 1 / n: even if no sample was in the kernel, one more could have been. */
	return n > 0 ? fmin(1, share + 2 * sqrt(share * (1 - share) / n) + 1 / n) : 1;
}

struct gain gain_estimate(const struct activity *a, double wait_ns)
{
	struct gain g = { .at_most = by_system(a), .by_system = true };
	double waits;

	g.cpu = a->seconds > 0 ? a->cpu / a->seconds : 0;
	/* The two clocks may differ by one tick at either end and by 5 %. More is CPU time of unseen threads. */
	g.short_threads = a->unseen_cpu > 0.05 * a->cpu + 2 * (a->ticks ? a->cpu / (double)a->ticks : 0);
	if (g.short_threads || a->cpu <= 0)
		return g;
	waits = MARGIN * (double)a->waits * wait_ns / 1e9 / a->cpu;
	if (waits < g.at_most) {
		g.at_most = waits;
		g.by_system = false;
	}
	return g;
}
