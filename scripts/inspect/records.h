/* SPDX-License-Identifier: MIT */
#ifndef INSPECT_RECORDS_H
#define INSPECT_RECORDS_H

/*
 * scripts/inspect/records.h - reads the records of many threads by one system call.
 *
 * Each record leads to the next one, but the address of the next one can be guessed: a record lies on
 * its fiber's stack, and the distances between stacks made one after the other form a pattern.
 */

#include "scripts/process/target.h"

enum { RUN_MOST = PIECES_MOST / 2, SEEN = 256 };

struct records {
	const struct target *target;
	size_t size;			/* of a record */
	size_t head_size;		/* bytes from its beginning to the end of the wait and the context */
	size_t most;			/* records at once */
	char *records, *heads;		/* most records, and the second reading of their heads */
	uint64_t at[RUN_MOST];		/* addresses of the records; all but the first are guessed */
	int64_t seen[SEEN];		/* the last distances from a record to the next; a ring */
	size_t seen_count;
	size_t guess;			/* how many records to read at once next time */
	bool once;			/* read each record once, even if it changes meanwhile */
};

/* At most "most" records are read at once, up to RUN_MOST.  Ends the tool with a message if there is no memory. */
void records_open(struct records *r, const struct target *t, size_t most, bool once);
void records_close(struct records *r);

/* Read the record at address, and the next ones at guessed addresses.  Returns how many were read. */
size_t records_read(struct records *r, uint64_t address);

/* Record i of those that were read. If its two readings differ, it is read again; NULL if that fails. */
const char *records_settled(const struct records *r, size_t i);

/* Note that the record after record i is at address next. */
void records_leads(struct records *r, size_t i, uint64_t next);

/* Note how many of the guessed addresses were right, so that the next guess is longer or shorter. */
void records_taken(struct records *r, size_t count);

#endif
