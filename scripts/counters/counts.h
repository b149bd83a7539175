/* SPDX-License-Identifier: MIT */
#ifndef COUNTERS_COUNTS_H
#define COUNTERS_COUNTS_H

/*
 * scripts/counters/counts.h - reads the counters of a process (runtime/base/counters.h) from its memory,
 * or from the file that --stats writes.
 */

#include "runtime/base/counters.h"
#include "scripts/process/target.h"

struct call_counts {
	char name[33], rung[17];
	struct fz_call_counts counts;	/* of all threads */
	uint64_t at_once;		/* calls by fibers with none of the outcomes: they did not wait */
};

struct counts {
	struct fz_counters head;
	uint64_t sums[FZ_PROCESSOR_COUNTERS];	/* the sums over all processors */
	char version[32];		/* of the library; "": unknown, as in a file */
	uint64_t fibers;		/* how many fibers are alive */
	uint64_t resident;		/* memory of the process, bytes; 0: unknown, as in a file */
	bool has_calls;			/* false without FIBERIZE_STATS: then all members below are 0 */
	size_t call_count;
	struct call_counts calls[FZ_COUNTED_CALLS];	/* only calls that were made at least once */
	struct {
		char name[25];
		uint64_t count;
	} waits[FZ_COUNTED_WAITS];
	struct fz_times to_run, to_complete;
};

/* Where counters are read from: a process or a file. */
struct counts_source {
	struct target target;
	const char *file;		/* NULL: the process */
};

/* Open the process or file that word names. Ends the tool with a message if that is impossible. */
void counts_open(struct counts_source *s, const char *word);

/*
 * Read all counters.  Returns false if the process has ended or executed another program.  Ends the tool
 * with a message if the counters have an unknown format or the library is dormant.
 */
bool counts_read(const struct counts_source *s, struct counts *c);

extern const char *const outcome_names[FZ_OUTCOMES];

/* Print on standard output, for other programs to read. */
void counts_print_json(const struct counts *c);
void counts_print_prometheus(const struct counts *c);

#endif
