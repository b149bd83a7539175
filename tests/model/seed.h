/* SPDX-License-Identifier: MIT */
#ifndef FZ_MODEL_SEED_H
#define FZ_MODEL_SEED_H

/*
 * tests/model/seed.h - the name of a run, by which it can be run again:
 *
 *	SCENARIO[+tso][+plain]/pct/NUMBER@SOURCES, SCENARIO[...]/random/NUMBER@SOURCES,
 *	SCENARIO[...]/listedBOUND/STEP.PICK-STEP.PICK@SOURCES
 *
 * A list has up to BOUND picks that are not the default, in the order of their steps.  STEP: when the run makes that
 * choice, counted as in a trace.  PICK: which of the choices there it makes, from 1 on; 0 would be the default.
 */

#include "tests/model/model.h"
#include "tests/model/scenario.h"

enum { BOUND_MOST = 99 };

struct named_run {
	enum how how;
	uint64_t number;		/* the seed, unless it is a list, */
	const char *list;		/* STEP.PICK-STEP.PICK@SOURCES */
};

/* That of the run that has just failed, as a line. */
void seed_print(enum how how);

/* Sets the scenario and how memory is explored, as `text` has it; returns 2 after a message if it is no seed. */
int seed_read(const char *text, struct named_run *ret);

/* Makes the run that seed_read() has read from `text` the next one; after warm_up(), whose runs have other seeds. */
void seed_take(const char *text, const struct named_run *run);

/* Says why the seed `text` is none.  Returns 2. */
int seed_refuse(const char *text, const char *why);

/* Digits, and nothing else, of a number up to `most`; *at is behind them then. */
bool number_at(const char **at, uint64_t most, uint64_t *ret);

extern const struct scenario __start_model_scenarios[], __stop_model_scenarios[];

/* NULL: no scenario has this name. */
const struct scenario *scenario_find(const char *name, size_t length);

#endif
