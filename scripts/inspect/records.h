/* SPDX-License-Identifier: MIT */
#ifndef INSPECT_RECORDS_H
#define INSPECT_RECORDS_H

/*
 * scripts/inspect/records.h - reading the records of many threads at a time.
 *
 * A record lies on its fiber's stack, and stacks that were made one after the other lie in a pattern:
 * the last distances tell where the next records may be.
 */

#include "scripts/process/target.h"

enum { RUN_MOST = PIECES_MOST / 2, SEEN = 256 };

struct records {
	const struct target *target;
	size_t size;			/* of a record */
	size_t head_size;		/* of its beginning, with the wait and the context */
	char *records, *heads;		/* of RUN_MOST records: what was read first, and again */
	uint64_t at[RUN_MOST];		/* where the records of a run are, if the guess is right */
	int64_t seen[SEEN];		/* the last distances, as a ring */
	size_t seen_count;
	size_t guess;			/* how many to read at once */
	bool once;			/* read each record once, even if it changes meanwhile */
};

void records_open(struct records *r, const struct target *t, bool once);
void records_close(struct records *r);

/* Read the record at address, and some where the next may be.  Returns how many were read. */
size_t records_read(struct records *r, uint64_t address);

/* Record i of those that were read, when two readings have agreed; NULL: it cannot be read any more. */
const char *records_settled(const struct records *r, size_t i);

/* The record after record i is at next. */
void records_leads(struct records *r, size_t i, uint64_t next);

/* How many of those that were read at once were right; for the next guess. */
void records_taken(struct records *r, size_t count);

#endif
