/* SPDX-License-Identifier: MIT */
#ifndef CHECK_REPORT_H
#define CHECK_REPORT_H

/* scripts/check/report.h - what a program and its libraries call, and the verdict that follows. */

#include <stdio.h>

#include "host.h"
#include "libraries.h"
#include "profiles.h"
#include "program.h"
#include "scripts/elf/raw_calls.h"

/* What becomes of a function of libc. */
enum rung {
#define FZ_RUNG(rung, word, text) RUNG_##rung,
#include "preload/rungs.def"
	RUNG_COUNT
};

/* Can calls of this rung wait? A report names only functions that can. */
static inline bool rung_waits(enum rung rung)
{
	return rung != RUNG_NEVER && rung != RUNG_TRACKED && rung != RUNG_SELF;
}

/* What a function shows about the kind of program that imports it (calls.def). */
enum trait {
	TRAIT_THREADS,
	TRAIT_CPU_BOUND,
	TRAIT_LOOP,
	TRAIT_PROCESSES,
	TRAIT_SERVES,
	TRAIT_PLUGINS,
	TRAIT_EXECS,
	TRAIT_COUNT
};

struct names {
	const char **name;
	size_t count;
};

/* The findings in one object; the names belong to the object. */
struct findings {
	const struct object *object;
	struct names calls[RUNG_COUNT];
	struct names traits[TRAIT_COUNT];
	struct names own;		/* interposed names that the object defines */
	struct raw_calls raw;
};

/* A program that a wrapper starts, and the verdict on it. */
struct start {
	char *path;
	const char *verdict;
	char *reason;
	const char *advice;
};

struct report {
	struct program program;
	struct libraries libraries;	/* empty if the program is refused */
	struct findings *findings;	/* one for each object */
	const char *verdict;		/* "will gain", "may gain", "will not gain", "cannot" */
	char *reason;
	const char *advice;
	bool is_certain;		/* watching the program's threads would not change the verdict */
	struct start *starts;
	size_t start_count;
	bool starts_unknown;		/* it also becomes a program whose name only the run shows */
	struct backend backend;
	unsigned switch_ns;		/* switch_call_ns() */
	const struct profiles *profiles;	/* for printing only; not owned; may be NULL */
};

/* Has the program itself a function of this kind? Libraries do not count. */
static inline bool report_has(const struct report *r, enum trait trait)
{
	return r->libraries.count && r->findings[0].traits[trait].count;
}

/* Fill in the verdict from the other members of the report. */
void report_judge(struct report *r);

/* Make a report. Never fails: errors are part of the report. */
void report_make(const char *name, const struct object *library, struct report *ret);
void report_text(const struct report *r, FILE *out);
void report_json(const struct report *r, FILE *out);
void report_free(struct report *r);

/* Print text as one line of printable characters. */
void put_line(const char *text, FILE *out);

/* Print text as a string of JSON, NULL as null. */
void put_string(const char *text, FILE *out);

/* Print what fibers would wait with here: a line, or two members of an object. */
void put_backend(const struct backend *b, FILE *out);
void put_backend_json(const struct backend *b, FILE *out);

#endif
