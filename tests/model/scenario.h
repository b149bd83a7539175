/* SPDX-License-Identifier: MIT */
#ifndef FZ_MODEL_SCENARIO_H
#define FZ_MODEL_SCENARIO_H

/*
 * tests/model/scenario.h - what is explored: a few threads that make a few calls of the runtime.
 *
 * To add a scenario: write thread() and finish() into a file of scenarios/, with SCENARIO() below; a small example is
 * scenarios/sync/sem.c.  The calls are those of runtime/, as fz_sem_wait(): preload/ is not explored, so a scenario
 * repeats what libc's name does there before such a call, as sem_wait() in preload/sync/sem.c.
 * Variables of the scenario are statics, atomic unless the explored locks guard them; they have the
 * values of prepare() at the start of each run.
 * A deadline is model_now() + FZ_MSEC, for example.  The clock stands still until the scheduler picks that a
 * deadline has come, or nobody can run.
 * To hold something until others have tried to get it, a thread await()s what they announce(): a nap may end at
 * any moment.
 * A call whose effect is to be compared with a sequential model goes between op_begin() and op_end();
 * apply() is that model: would the call, made now, have ended with that result?  A failure prints the history, each
 * operation as KIND(OBJECT,ARG) = RESULT, with the steps at which it began and ended.
 *
 * A check is MODEL_CHECK() in thread() or finish(), or, for all scenarios, a line in one of the functions of
 * invariants.c, which look at each switch, whenever nobody can run, and at the end.  The history is judged after
 * finish().  To see that a check finds what it is for, plant a fault (README.md).
 */

#include <stdbool.h>
#include <stdint.h>

struct operation {
	int kind, object, arg;		/* the scenario's own numbers */
	int thread;
	long result;
	uint64_t began, ended;		/* steps; ended 0: not ended */
};

struct scenario {
	const char *name;
	const char *what;		/* one line */
	unsigned processors, fibers, natives;	/* at most 8 fibers */
	void (*prepare)(void);		/* on the main thread, before the first choice; may be NULL */
	void (*thread)(int i);		/* fibers first, then native threads */
	/*
	 * On the main thread, when all have been joined; may be NULL.  No deadline may be left then: a thread that
	 * the scenario makes is joined, or announces its end.
	 */
	void (*finish)(void);
	/* Sequential model; *state is 0 at first.  NULL: no history is kept. */
	bool (*apply)(uint64_t *state, const struct operation *op);
	bool rings;			/* on io_uring; else on epoll */
	bool clock;			/* for its own thread(), if scenarios share that: waits have deadlines */
	bool counts_wakes;		/* its native threads count what ends a futex wait: none ends by itself */
	int budget;			/* deviations of the exhaustive run without --bound; 0: 2 */
};

#define SCENARIO(id)							\
	extern const struct scenario model_scenario_##id;		\
	const struct scenario model_scenario_##id			\
		__attribute__((section("model_scenarios"), used, aligned(8)))

_Noreturn void model_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

#define MODEL_CHECK(cond, ...) ((cond) ? (void)0 : model_fail(__VA_ARGS__))

/* Around a call of the thread i; at most 24 in a run, all threads together.  op_end() returns result. */
int op_begin(int thread, int kind, int object, int arg);
long op_end(int op, long result);

/* linear.c: is there an order of the operations that the sequential model allows? */
void check_linear(const struct scenario *s);

/* scenarios/boot.c: by the first kthread of the model; does not return. */
void scenario_boot(void *scenario);
extern const struct scenario *scenario_now;

/* A fiber sleeps as the program does: it parks for that long. */
void model_nap(uint64_t ns);
uint64_t model_now(void);

/* An event of a scenario, which threads count in *word: one more; wait until there have been `count`. */
void announce(_Atomic uint32_t *word);
void await(_Atomic uint32_t *word, uint32_t count);

#endif
