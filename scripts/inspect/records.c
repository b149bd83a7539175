/* SPDX-License-Identifier: MIT */
#include "records.h"

#include <stdlib.h>

#include "scripts/process/say.h"

enum { ALIKE = 8 };

void records_open(struct records *r, const struct target *t, size_t most, bool once)
{
	const uint64_t wait = target_value(t, ENTRY_fiber_wait), sp = target_value(t, ENTRY_fiber_sp);

	*r = (struct records){
		.target = t,
		.size = target_value(t, ENTRY_fiber_size),
		.head_size = (wait > sp ? wait : sp) + sizeof(uint64_t),
		.most = most,
		.guess = 1,
		.once = once,
	};
	r->records = malloc(most * r->size);
	r->heads = malloc(most * r->head_size);
	if (!r->records || !r->heads)
		die(EXIT_OTHER, "no memory");
}

void records_close(struct records *r)
{
	free(r->records);
	free(r->heads);
}

static bool is_settled(const struct target *t, const void *record, const void *head)
{
	return target_field(t, ENTRY_fiber_wait, record) == target_field(t, ENTRY_fiber_wait, head) &&
	       target_field(t, ENTRY_fiber_sp, record) == target_field(t, ENTRY_fiber_sp, head);
}

/* Read a record until two readings agree, at most TRIES times.  False if it cannot be read. */
static bool read_record(const struct records *r, uint64_t address, char *record, char *head)
{
	enum { TRIES = 64 };
	const struct piece pieces[] = {
		{ address, record, r->size }, { address, head, r->head_size },
	};

	for (int i = 0; i < TRIES; i++) {
		if (target_read_pieces(r->target, pieces, 2) != 2)
			return false;
		if (is_settled(r->target, record, head))
			break;
	}
	return true;
}

static int64_t distance(const struct records *r, size_t ago)
{
	return r->seen[(r->seen_count - ago) % SEEN];
}

/*
 * The period of the distances between records: the P for which most of the last distances are equal to the distance
 * P records before. The smallest P that fits for a while is not enough: stacks are at regular distances, but
 * in groups of 64, so their period is broken at the end of each group. 0 if not even the last ALIKE fit.
 */
static size_t period(const struct records *r)
{
	const size_t most = r->seen_count < SEEN ? r->seen_count : SEEN;
	size_t best = 0, best_alike = ALIKE - 1;

	/* Only a period before most - best_alike can have more than best_alike. */
	for (size_t ago = 1; ago + best_alike < most; ago++) {
		size_t alike = 0;

		while (ago + alike < most && distance(r, alike + 1) == distance(r, ago + alike + 1))
			alike++;
		if (alike > best_alike) {
			best_alike = alike;
			best = ago;
		}
	}
	return best;
}

size_t records_read(struct records *r, uint64_t address)
{
	const size_t back = r->guess > 1 ? period(r) : 0, n = back ? r->guess : 1;
	const size_t each = r->once ? 1 : 2;
	struct piece pieces[PIECES_MOST];

	for (size_t i = 0; i < n; i++) {
		r->at[i] = i ? r->at[i - 1] + (uint64_t)distance(r, back - (i - 1) % back) : address;
		pieces[each * i] = (struct piece){ r->at[i], r->records + i * r->size, r->size };
		if (!r->once)
			pieces[each * i + 1] = (struct piece){
				r->at[i], r->heads + i * r->head_size, r->head_size,
			};
	}
	return target_read_pieces(r->target, pieces, each * n) / each;
}

const char *records_settled(const struct records *r, size_t i)
{
	char *record = r->records + i * r->size, *head = r->heads + i * r->head_size;

	if (r->once || is_settled(r->target, record, head) || read_record(r, r->at[i], record, head))
		return record;
	return NULL;
}

void records_leads(struct records *r, size_t i, uint64_t next)
{
	r->seen[r->seen_count++ % SEEN] = (int64_t)(next - r->at[i]);
}

void records_taken(struct records *r, size_t count)
{
	r->guess = count >= r->guess ? 2 * r->guess : count + 2;
	if (r->guess > r->most)
		r->guess = r->most;
}
