/* SPDX-License-Identifier: MIT */
#ifndef CHECK_REPORT_H
#define CHECK_REPORT_H

/*
 * scripts/check/report.h - what a program and its libraries call, what follows
 * from that, and how it is told.
 */

#include <stdio.h>

#include "libraries.h"
#include "profiles.h"
#include "program.h"
#include "scripts/elf/raw_calls.h"

/* What becomes of a function of libc. */
enum rung {
#define FZ_RUNG(rung, word, text) RUNG_##rung,
#include "preload/symbols.def"
	RUNG_COUNT
};

/* A report names the functions of these rungs only. */
static inline bool rung_waits(enum rung rung)
{
	return rung != RUNG_NEVER && rung != RUNG_TRACKED && rung != RUNG_SELF;
}

/* What a program is made of. */
enum trait {
	TRAIT_THREADS,
	TRAIT_COMPUTES,
	TRAIT_LOOP,
	TRAIT_PROCESSES,
	TRAIT_SERVES,
	TRAIT_PLUGINS,
	TRAIT_COUNT
};

struct names {
	const char **name;
	size_t count;
};

/* One object's; the names are the object's own. */
struct findings {
	const struct object *object;
	struct names calls[RUNG_COUNT];
	struct names traits[TRAIT_COUNT];
	struct names own;		/* defines itself what we interpose */
	struct raw_calls raw;
};

struct report {
	struct program program;
	struct libraries libraries;	/* none if the program is refused */
	struct findings *findings;	/* as many as there are objects */
	const char *verdict;		/* "will gain", "may gain", "will not gain", "cannot" */
	const char *reason;
	const char *advice;
	unsigned switch_ns;		/* system call of each switch; 0: it makes none */
	const struct profiles *profiles;	/* the caller's, or NULL; only told */
};

/* Never fails: what goes wrong is in the report. */
void report_make(const char *name, const struct object *library, struct report *ret);
void report_text(const struct report *r, FILE *out);
void report_json(const struct report *r, FILE *out);
void report_free(struct report *r);

/* text as one line of printable characters. */
void put_line(const char *text, FILE *out);

#endif
