/* SPDX-License-Identifier: MIT */
/*
 * tests/model/reduce/outcomes.c - sets of hashes: of what a run leaves behind, and of who used each place after whom.
 */
#include "tests/model/reduce/outcomes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of a place in this run: its last write, which has all before it in it, and the reads since, in any order. */
static struct { uint64_t wrote, reads; uint32_t in; } story[PLACES];
static uintptr_t key_of[PLACES];
static uint32_t touched[PLACES], touches, uses[KTHREADS];

static struct numbers {
	uint64_t *table, sum;
	size_t size, count;
} ends, orders;

bool outcomes;

static uint64_t mix(uint64_t a, uint64_t b)
{
	uint64_t h = (a ^ 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u + b;

	h = (h ^ h >> 31) * 0x94d049bb133111ebu;
	return h ^ h >> 29;
}

static void put(struct numbers *n, uint64_t number)
{
	size_t i;

	if (n->count * 2 >= n->size) {
		struct numbers larger = { .size = n->size ? n->size * 2 : 1024 };

		larger.table = calloc(larger.size, sizeof(*larger.table));
		if (!larger.table)
			model_outside("no memory for the outcomes");
		for (i = 0; i < n->size; i++)
			if (n->table[i])
				put(&larger, n->table[i]);
		free(n->table);
		*n = larger;
	}
	number += !number;
	for (i = number % n->size; n->table[i]; i = (i + 1) % n->size)
		if (n->table[i] == number)
			return;
	n->table[i] = number;
	n->sum += mix(number, 1);
	n->count++;
}

void outcomes_begin_run(void)
{
	touches = 0;
	memset(uses, 0, sizeof(uses));
}

void outcomes_use(const struct place *p, bool writes)
{
	const uint32_t i = (uint32_t)(p - places);
	const uint64_t event = mix((uint64_t)M.current, ++uses[M.current]);

	if (story[i].in != run_number) {
		story[i].in = run_number;
		story[i].wrote = story[i].reads = 0;
		key_of[i] = p->key;
		touched[touches++] = i;
	}
	if (!writes) {
		story[i].reads += event;
		return;
	}
	story[i].wrote = mix(story[i].wrote + story[i].reads, event);
	story[i].reads = 0;
}

void outcomes_end_run(void)
{
	uint64_t order = 0;

	for (uint32_t n = 0; n < touches; n++) {
		const uint32_t i = touched[n];

		order += mix(mix(key_of[i], story[i].wrote), story[i].reads);
	}
	put(&orders, order);
	put(&ends, memory_end());
}

void outcomes_forget(void)
{
	ends.count = orders.count = 0;
	ends.sum = orders.sum = 0;
	if (ends.table)
		memset(ends.table, 0, ends.size * sizeof(*ends.table));
	if (orders.table)
		memset(orders.table, 0, orders.size * sizeof(*orders.table));
}

const char *outcomes_say(void)
{
	static char text[120];

	snprintf(text, sizeof(text), "%zu ends %lx, %zu orders %lx", ends.count, (unsigned long)ends.sum, orders.count,
		 (unsigned long)orders.sum);
	return text;
}
