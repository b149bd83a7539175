/* SPDX-License-Identifier: MIT */
#include "sums.h"

#include <stdlib.h>
#include <string.h>

#include "scripts/process/say.h"
#include "tree.h"

struct sum {
	struct call call;		/* the first call of this sum */
	struct symbol caller;		/* a copy of call.caller */
	char name[sizeof(((struct symbol *)0)->function)];
	unsigned long count;
	double waited, queued, most;
};

const char *call_name(const struct call *call)
{
	return call->rung == RUNG_LATE ? "-" : call->name;
}

const char *call_before(const struct call *call)
{
	return call->rung == RUNG_LATE && call->caller->address ? "before " : "";
}

static int compare(const void *a, const void *b)
{
	const struct call *x = &((const struct sum *)a)->call, *y = &((const struct sum *)b)->call;
	int order = strcmp(x->name, y->name);

	if (!order)
		order = strcmp(x->caller->place, y->caller->place);
	return order ? order : (int)x->rung - (int)y->rung;
}

static struct sum *add(struct sums *sums, const struct sum *key)
{
	struct sum *sum = malloc(sizeof(*sum));

	if (!sum)
		die(EXIT_OTHER, "no memory");
	*sum = *key;
	sum->caller = *key->call.caller;
	snprintf(sum->name, sizeof(sum->name), "%s", key->call.name);
	sum->call.caller = &sum->caller;
	sum->call.name = sum->name;
	if (!tsearch(sum, &sums->tree, compare))
		die(EXIT_OTHER, "no memory");
	sums->count++;
	return sum;
}

void sums_add(struct sums *sums, const struct call *call)
{
	struct sum key = { .call = *call }, **found = tfind(&key, &sums->tree, compare);
	struct sum *sum = found ? *found : add(sums, &key);

	sum->count++;
	sum->waited += call->waited;
	sum->queued += call->queued;
	if (call->waited > sum->most)
		sum->most = call->waited;
}

static void collect(const void *node, VISIT visit, void *next)
{
	if (visit == postorder || visit == leaf)
		*(*(struct sum ***)next)++ = *(struct sum *const *)node;
}

static int by_wait(const void *a, const void *b)
{
	const struct sum *x = *(struct sum *const *)a, *y = *(struct sum *const *)b;

	return x->waited > y->waited ? -1 : x->waited < y->waited;
}

void sums_print(const struct sums *sums, FILE *out)
{
	struct sum **sorted = calloc(sums->count + 1, sizeof(struct sum *)), **next = sorted;

	if (!sorted)
		die(EXIT_OTHER, "no memory");
	twalk_r(sums->tree, collect, &next);
	qsort(sorted, sums->count, sizeof(*sorted), by_wait);
	fprintf(out, "%10s %-26s %-10s %12s %10s %10s %10s  %s\n", "CALLS", "CALL", "RUNG",
		"WAITED-MS", "MEAN-MS", "MOST-MS", "QUEUED-MS", "FROM");
	for (size_t i = 0; i < sums->count; i++) {
		const struct sum *s = sorted[i];

		fprintf(out, "%10lu %-26s %-10s %12.3f %10.3f %10.3f %10.3f  %s%s\n", s->count,
			call_name(&s->call), rung_names[s->call.rung], s->waited * 1e3,
			s->waited * 1e3 / (double)s->count, s->most * 1e3, s->queued * 1e3,
			call_before(&s->call), s->caller.place);
	}
	free(sorted);
}
