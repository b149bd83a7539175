/* SPDX-License-Identifier: MIT */
/*
 * tests/model/main.c - the explorer's command line, and what it reports.
 *
 *	explore --list
 *	explore [--exhaustive] [--pct N] [--random N] [--bound N] [--tso] [--plain] [--first N] [--seconds N]
 *		[--no-reduction] [--outcomes] [SCENARIO...]
 *	explore --replay SEED
 *
 * --exhaustive: every run with at most --bound deviations, picks that are not the default (a preemption, a tick of
 * the clock, another order, a kernel that is early or late); without --bound the scenario's own number.  --pct, --random:
 * N runs each, with the numbers from --first on.
 * --no-reduction: of runs that differ only in the order of what does not depend on each other (reduce.c), all are made and
 * not one.  --outcomes: says how many different ones the exhaustive runs have (outcomes.h).
 * --tso: with store buffers, and no reduction; in exhaustive runs these drain as late as they may, which is no choice.
 * --plain: accesses that are not atomic are points, too.  --seconds: of CPU time.
 *
 * Scenarios are explored in the order of --list, whatever the order of the arguments; unknown ones are refused first.
 * For each: warm up (which memory do two kthreads share?), up to 300 runs, of which a failed one is reported as
 * any other; then all runs that are asked for, those with numbers first.  Exhaustive runs begin anew if they find
 * memory to be shared that was not known to be; of a scenario's exhaustive lines the last one counts.
 * --replay: warms up, too, and prints each switch of SEED's run as it comes.  The last line is "passed: SEED, N points"
 * with status 0, "FAILED SCENARIO: WHY" with 1, or "not run: SEED: ..." with 1 after a failure of the warm-up.
 * Exit status: 0 nothing found, 1 a run has failed, 2 usage, 3 outside of what is modelled, or no process,
 * 4 its output cannot be written.
 * SEED: a run's name (seed.h).
 */
#include "tests/model/model.h"
#include "tests/model/reduce/outcomes.h"
#include "tests/model/reduce/reduce.h"
#include "tests/model/scenario.h"
#include "tests/model/seed.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WARM_UP = 300, FURTHER = 4000, MEASURED = 40, PASSES = 5, UNWRITTEN = 4 };

static struct {
	bool list, exhaustive;
	const char *replay;
	uint64_t pct, random, first;
	int bound;
	double seconds;
} asked = { .first = 1, .bound = -1 };

/* This process's CPU time: what else the machine does is no part of the figures. */
static double clock_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Ends if what it has said so far cannot be written: its status would stand for what nobody reads. */
static void write_out(void)
{
	if (!fflush(stdout) && !ferror(stdout))
		return;
	fprintf(stderr, "explore: its output cannot be written: %s\n", strerror(errno));
	exit(UNWRITTEN);
}

static void keep_listed(void)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < decisions; i++)
		if (decided[i].pick)
			decided[n++] = decided[i];
	decisions = n;
}

static void explain(enum how how)
{
	printf("FAILED %s: %s\n", scenario_now->name, failure);
	seed_print(how);
	write_out();
	if (how == HOW_EXHAUSTIVE) {
		keep_listed();
		how = HOW_LISTED;
	}
	tracing = true;
	printf("   the same run again:\n");
	if (run_once(how) == RUN_PASSED)
		printf("   it passes now: the explorer is not deterministic\n");
	else
		printf("   %s\n", failure);
	tracing = false;
	write_out();
}

/* Not counted: these only find out which memory is shared, and how long a run is. */
static void try_runs(uint64_t count)
{
	for (seed = 1; seed <= count; seed++) {
		const enum how how = seed % 2 ? HOW_RANDOM : HOW_PCT;

		if (run_once(how) == RUN_FAILED) {
			explain(how);
			if (asked.replay)
				printf("not run: %s: the warm-up before it has failed, as above\n", asked.replay);
			write_out();
			exit(1);
		}
	}
}

static uint32_t warm_up(void)
{
	uint32_t shared = 0, now;
	const bool buffers = tso, plain = plain_points;

	tso = plain_points = false;
	run_length = 500;
	for (int round = 0; round < 3; round++) {
		try_runs(WARM_UP / 3);
		now = memory_freeze_shared();
		run_length = most_points;
		if (now == shared)
			break;
		shared = now;
	}
	tso = buffers;
	plain_points = plain;
	/* PCT's change points are to lie anywhere in a run of the kind that is asked for, which may be far longer. */
	if (tso || plain_points) {
		most_points = 0;
		try_runs(MEASURED);
		run_length = most_points;
	}
	return shared;
}

static void say_runs(const char *what, uint64_t runs, double since, const char *rest)
{
	double took = clock_now() - since;

	printf("%-16s %-10s %9lu runs %6.2f s %7.0f/s, %lu steps, %lu points at most%s\n",
	       scenario_now->name, what, (unsigned long)runs, took, (double)runs / took,
	       (unsigned long)longest, (unsigned long)most_points, rest);
	write_out();
}

static int run_seeds(enum how how, uint64_t count, double until)
{
	double since = clock_now();
	uint64_t runs = 0;

	sharing_is_known = true;
	for (seed = asked.first; runs < count; seed++) {
		if (run_once(how) == RUN_FAILED) {
			say_runs(how == HOW_PCT ? "pct" : "random", runs + 1, since, "");
			explain(how);
			return 1;
		}
		runs++;
		if (until > 0 && runs % 256 == 0 && clock_now() > until)
			break;
	}
	sharing_is_known = false;
	say_runs(how == HOW_PCT ? "pct" : "random", runs, since, tso ? ", store buffers" : "");
	return 0;
}

/* ended: was that all? */
static void say_exhaustive(uint64_t runs, uint64_t cut, double since, const char *ended)
{
	char rest[300];

	snprintf(rest, sizeof(rest), ", %d deviations, %lu cut short, %s%s%s%s", budget, (unsigned long)cut, ended,
		 tso ? ", store buffers drained late" : "", outcomes ? ", " : "", outcomes ? outcomes_say() : "");
	say_runs("exhaustive", runs, since, rest);
}

/* *shared: the places that are known to be shared.  Returns -1 if there are more now, and so more points. */
static int run_all(double until, uint32_t *shared)
{
	double since = clock_now();
	uint64_t runs = 0, cut = 0;
	enum how how = HOW_FIRST;
	enum outcome result;
	const uint32_t known = *shared;

	outcomes_forget();
	do {
		result = run_once(how);
		runs++;
		cut += result == RUN_CUT;
		if (result == RUN_FAILED) {
			say_runs("exhaustive", runs, since, "");
			explain(HOW_EXHAUSTIVE);
			return 1;
		}
		how = HOW_EXHAUSTIVE;
		if (until > 0 && runs % 256 == 0 && clock_now() > until) {
			say_exhaustive(runs, cut, since, "cut off by the time");
			return 0;
		}
	} while (schedule_backtrack());
	*shared = memory_freeze_shared();
	say_exhaustive(runs, cut, since, *shared == known ? "all tried" :
		       "not all tried: they have found more memory that is shared");
	return *shared == known ? 0 : -1;
}

static int explore(const struct scenario *s)
{
	double until;
	uint32_t shared;
	int err = 0;

	scenario_now = s;
	budget = asked.bound >= 0 ? asked.bound : s->budget ? s->budget : 2;
	shared = warm_up();
	until = asked.seconds > 0 ? clock_now() + asked.seconds : 0;
	/* First: a seed's points are those that warm_up() has found, which replay() repeats, and nothing else. */
	if (asked.pct)
		err = run_seeds(HOW_PCT, asked.pct, until);
	if (!err && asked.random)
		err = run_seeds(HOW_RANDOM, asked.random, until);
	/* A pass with more deviations takes long: it had better not be for nothing. */
	if (asked.exhaustive && !err && budget > 1) {
		try_runs(FURTHER);
		shared = memory_freeze_shared();
	}
	/* Again, if this has found memory that is shared as well: then there are more points. */
	if (asked.exhaustive && !err)
		for (int pass = 0; pass < PASSES && (err = run_all(until, &shared)) < 0; pass++)
			;
	return err < 0 ? 0 : err;
}

static int replay(const char *text)
{
	struct named_run run;
	enum outcome result;

	if (seed_read(text, &run))
		return 2;
	warm_up();
	seed_take(text, &run);
	tracing = true;
	result = run_once(run.how);
	if (run.how == HOW_LISTED && !schedule_has_used_all())
		return seed_refuse(text, "no such run: the scenario has no such choices");
	if (result == RUN_PASSED)
		printf("passed: %s, %lu points\n", text, (unsigned long)points);
	else
		printf("FAILED %s: %s\n", scenario_now->name, failure);
	write_out();
	return result == RUN_PASSED ? 0 : 1;
}

/* Each scenario starts in a process of its own: the runtime starts once in a process. */
static int explore_in_child(const struct scenario *s)
{
	const pid_t parent = getpid();
	pid_t pid;
	int status;

	pid = fork();
	if (!pid) {
		/* Nobody would read on. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			exit(3);
		exit(explore(s));
	}
	if (pid < 0) {
		fprintf(stderr, "explore: fork: %s\n", strerror(errno));
		exit(3);
	}
	if (waitpid(pid, &status, 0) < 0)
		return 3;
	if (WIFSIGNALED(status)) {
		fprintf(stderr, "explore: %s: ended by signal %d\n", s->name, WTERMSIG(status));
		return 3;
	}
	return WEXITSTATUS(status);
}

static int usage(void)
{
	fprintf(stderr, "usage: explore [--list] [--exhaustive] [--pct N] [--random N] [--bound N] "
			"[--tso] [--plain] [--first SEED] [--seconds N] [--no-reduction] [--outcomes] [SCENARIO...] "
			"| --replay SEED\n");
	return 2;
}

/* An option's value; ends with a message if that is no number from `least` on, up to `most`. */
static uint64_t value_of(const char *option, const char *text, uint64_t least, uint64_t most)
{
	const char *at = text;
	uint64_t n;

	if (number_at(&at, most, &n) && !*at && n >= least)
		return n;
	fprintf(stderr, "explore: --%s %s: must be a number from %lu to %lu\n", option, text,
		(unsigned long)least, (unsigned long)most);
	exit(2);
}

static int parse(int argc, char **argv)
{
	static const struct option options[] = {
		{ "list", no_argument, NULL, 'l' }, { "exhaustive", no_argument, NULL, 'x' },
		{ "pct", required_argument, NULL, 'p' }, { "random", required_argument, NULL, 'r' },
		{ "bound", required_argument, NULL, 'b' }, { "tso", no_argument, NULL, 't' },
		{ "plain", no_argument, NULL, 'P' }, { "no-reduction", no_argument, NULL, 'N' },
		{ "outcomes", no_argument, NULL, 'O' },
		{ "first", required_argument, NULL, 'f' }, { "seconds", required_argument, NULL, 's' },
		{ "replay", required_argument, NULL, 'R' }, { NULL, 0, NULL, 0 },
	};
	enum { MANY = 1000000000, DAY = 86400 };
	int option, given = 0;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		given++;
		switch (option) {
		case 'l': asked.list = true; break;
		case 'x': asked.exhaustive = true; break;
		case 'p': asked.pct = value_of("pct", optarg, 1, MANY); break;
		case 'r': asked.random = value_of("random", optarg, 1, MANY); break;
		case 'b': asked.bound = (int)value_of("bound", optarg, 0, BOUND_MOST); break;
		case 't': tso = true; break;
		case 'P': plain_points = true; break;
		case 'N': reducing = false; break;
		case 'O': outcomes = true; break;
		case 'f': asked.first = value_of("first", optarg, 0, UINT64_MAX / 2); break;
		case 's': asked.seconds = (double)value_of("seconds", optarg, 1, DAY); break;
		case 'R': asked.replay = optarg; break;
		default: return usage();
		}
	}
	if (asked.replay && (given > 1 || optind < argc)) {
		fprintf(stderr, "explore: --replay SEED goes alone: the seed says all of the run\n");
		return 2;
	}
	return 0;
}

static bool name_unknown(int argc, char **argv)
{
	bool any = false;

	for (int i = optind; i < argc; i++)
		if (!scenario_find(argv[i], strlen(argv[i]))) {
			fprintf(stderr, "explore: no scenario %s (--list names them)\n", argv[i]);
			any = true;
		}
	return any;
}

static int list(void)
{
	for (const struct scenario *s = __start_model_scenarios; s < __stop_model_scenarios; s++)
		printf("%-16s %s\n", s->name, s->what);
	write_out();
	return 0;
}

int main(int argc, char **argv)
{
	int err, worst = 0;

	/* Addresses of libc are no part of a seed, but it does no harm if they are the same, too. */
	if (!(personality(0xffffffff) & ADDR_NO_RANDOMIZE)) {
		personality(ADDR_NO_RANDOMIZE);
		if (personality(0xffffffff) & ADDR_NO_RANDOMIZE)
			execv("/proc/self/exe", argv);
	}
	if (parse(argc, argv) || name_unknown(argc, argv))
		return 2;
	/* A pipe that nobody reads any more: write_out() says so, once. */
	signal(SIGPIPE, SIG_IGN);
	if (asked.list)
		return list();
	if (asked.replay)
		return replay(asked.replay);
	if (!asked.exhaustive && !asked.pct && !asked.random)
		return usage();
	for (const struct scenario *s = __start_model_scenarios; s < __stop_model_scenarios; s++) {
		bool wanted = optind == argc;

		for (int i = optind; i < argc; i++)
			wanted |= !strcmp(argv[i], s->name);
		if (!wanted)
			continue;
		err = explore_in_child(s);
		worst = err > worst ? err : worst;
		if (err == UNWRITTEN)
			break;
	}
	return worst;
}
