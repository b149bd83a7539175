/* SPDX-License-Identifier: MIT */
/*
 * scripts/inspect/ps.c - fiberize ps: lists the threads of a process, and the deadlocks among them.
 */
#include "ps.h"

#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "scripts/process/say.h"
#include "scripts/trace/cycles.h"
#include "stop.h"

/* The conditions that a thread must meet to be listed. */
struct filter {
	const char *states, *wait, *name;	/* NULL: any */
	int fd;				/* -1: any */
	double longer;			/* seconds; below 0: any */
};

static const char *const sort_keys[] = {
	"tid", "name", "state", "wait", "since", "cpu", "switches", "processor",
};

/* ---- filters and order ---------------------------------------------------------------- */

/* Is the word in a list of words separated by commas? */
static bool has_word(const char *list, const char *word)
{
	const size_t length = strlen(word);

	for (; list; list = strchr(list, ',') ? strchr(list, ',') + 1 : NULL)
		if (strcspn(list, ",") == length && strncmp(list, word, length) == 0)
			return true;
	return false;
}

static bool is_wanted(const struct filter *want, const struct fiber *f, const struct wait_facts *w)
{
	if (want->states && !has_word(want->states, ps_states[f->state]))
		return false;
	if (want->name && fnmatch(want->name, f->name, 0) != 0)
		return false;
	if (want->wait && (!w || fnmatch(want->wait, w->kind, 0) != 0))
		return false;
	if (want->longer >= 0 && fiber_waits_certainly(f) < want->longer)
		return false;
	if (want->fd < 0)
		return true;
	for (unsigned i = 0; w && i < w->fd_count && i < sizeof(w->fds) / sizeof(*w->fds); i++)
		if (w->fds[i] == want->fd)
			return true;
	return w && w->fd == want->fd;
}

static int order(double a, double b)
{
	return a < b ? -1 : a > b;
}

struct sorting {
	const struct ps *ps;
	const char *key;
};

static const char *kind_of(const struct ps *ps, const struct fiber *f)
{
	return f->state == STATE_LIBRARY ? "" : ps->facts[f - ps->all.list].kind;
}

/* Compare two threads by the sort key. The largest times and counts come first. */
static int by_key(const void *a, const void *b, void *arg)
{
	const struct fiber *x = *(const struct fiber *const *)a, *y = *(const struct fiber *const *)b;
	const struct sorting *s = arg;
	int result = 0;

	if (strcmp(s->key, "name") == 0)
		result = strcmp(x->name, y->name);
	else if (strcmp(s->key, "state") == 0)
		result = order(x->state, y->state);
	else if (strcmp(s->key, "wait") == 0)
		result = strcmp(kind_of(s->ps, x), kind_of(s->ps, y));
	else if (strcmp(s->key, "since") == 0)
		result = order(fiber_waits_certainly(y), fiber_waits_certainly(x));
	else if (strcmp(s->key, "cpu") == 0)
		result = order((double)y->cpu_ns, (double)x->cpu_ns);
	else if (strcmp(s->key, "switches") == 0)
		result = order((double)y->switches, (double)x->switches);
	else if (strcmp(s->key, "processor") == 0)
		result = order(x->processor, y->processor);
	return result ? result : order(x->tid, y->tid);
}

static void choose(struct ps *ps, const struct filter *want, const char *key)
{
	struct sorting sorting = { ps, key };

	ps->shown = calloc(ps->all.count + ps->all.library_count + 1, sizeof(*ps->shown));
	if (!ps->shown)
		die(EXIT_OTHER, "no memory for %zu threads", ps->all.count);
	if (ps->count_only)
		return;
	for (size_t i = 0; i < ps->all.count; i++)
		if (is_wanted(want, &ps->all.list[i], &ps->facts[i]))
			ps->shown[ps->shown_count++] = &ps->all.list[i];
	if (key)
		qsort_r(ps->shown, ps->shown_count, sizeof(*ps->shown), by_key, &sorting);
	for (size_t i = 0; i < ps->all.library_count; i++)
		if (is_wanted(want, &ps->all.library[i], NULL))
			ps->shown[ps->shown_count++] = &ps->all.library[i];
}

/* ---- the command line ----------------------------------------------------------------- */

static double number_of(const char *option, const char *word, bool whole)
{
	char *end;
	const double value = strtod(word, &end);

	if (*end || end == word || !isfinite(value) || value < 0 || value > INT32_MAX ||
	    (whole && value != floor(value)))
		die(EXIT_USAGE, "ps: %s %s: must be a %s from 0 to %d", option, word,
		    whole ? "whole number" : "number of seconds", INT32_MAX);
	return value;
}

static void check_words(const char *option, const char *words, const char *const *known, size_t count)
{
	char *copy = strdup(words), *rest = copy, *word;
	char all[160] = "";

	for (size_t i = 0; i < count; i++)
		snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s", i ? ", " : "", known[i]);
	while ((word = strsep(&rest, ","))) {
		bool found = false;

		for (size_t i = 0; i < count; i++)
			found |= strcmp(word, known[i]) == 0;
		if (!found)
			die(EXIT_USAGE, "ps: %s %s: not one of %s", option, word, all);
	}
	free(copy);
}

struct command {
	struct filter want;
	const char *sort;
	bool json, filters, is_core;
};

static void take(struct ps *ps, struct command *c, enum command_option option, char *value)
{
	switch (option) {
	case OPTION_ps_core: c->is_core = true; return;
	case OPTION_ps_count: ps->count_only = true; return;
	case OPTION_ps_hex: ps->hex = true; return;
	case OPTION_ps_json: c->json = true; return;
	case OPTION_ps_tree: ps->tree = true; return;
	case OPTION_ps_stop: ps->stop = true; return;
	case OPTION_ps_state:
		check_words("--state", value, ps_states, STATE_COUNT);
		c->want.states = value;
		break;
	case OPTION_ps_wait: c->want.wait = value; break;
	case OPTION_ps_name: c->want.name = value; break;
	case OPTION_ps_fd: c->want.fd = (int)number_of("--fd", value, true); break;
	case OPTION_ps_longer: c->want.longer = number_of("--longer", value, false); break;
	default:
		check_words("--sort", value, sort_keys, sizeof(sort_keys) / sizeof(*sort_keys));
		c->sort = value;
	}
	c->filters = true;
}

/* Parse the command line. Returns the process id or the name of the core file. */
static const char *parse(struct ps *ps, struct command *c, char **words)
{
	enum command_option option;
	char *value;

	while ((option = option_next("ps", &words, &value)) != OPTION_NONE)
		take(ps, c, option, value);
	if (!words[0] || words[1])
		wrong_usage("ps", "one process id is needed");
	if (ps->stop && c->is_core)
		die(EXIT_USAGE, "ps: --stop cannot be used with --core: a core file does not run");
	if (ps->tree && (c->filters || c->json || ps->count_only))
		die(EXIT_USAGE, "ps: --tree lists each thread that waits for another one: it goes with "
		    "--hex and --stop alone");
	return words[0];
}

static void read_process(struct ps *ps)
{
	fibers_read(ps->target, &ps->all, ps->count_only);
	natives_add(ps->target, &ps->all);
	ps->all.hex = ps->hex;
	if (ps->count_only)
		return;
	ps->facts = calloc(ps->all.count + 1, sizeof(*ps->facts));
	if (!ps->facts)
		die(EXIT_OTHER, "no memory for %zu threads", ps->all.count);
	for (size_t i = 0; i < ps->all.count; i++)
		wait_read(ps->target, &ps->all, &ps->all.list[i], &ps->facts[i]);
	sleepers_read(ps->target, &ps->all, &ps->sleepers);
}

static void forget_process(struct ps *ps)
{
	free(ps->facts);
	sleepers_free(&ps->sleepers);
	fibers_free(&ps->all);
}

/*
 * Read while the process is stopped, for at most 10 ms for each 1,000 threads in all, and for at least 10 ms.
 * The timer gets less: to let all kernel threads go takes a moment, too.  A sleeping thread is not stopped, so
 * it may wake up meanwhile; then the reading is not of one moment, and is tried again.
 */
static void read_stopped(struct ps *ps)
{
	const double most = 9.8 * fmax(1, (double)target_root(ps->target, ENTRY_alive) / 1000);
	enum { TRIES = 10 };
	double stopped;
	int tries = 0;

	/* The first call measures the clock, which takes longer than the process may be stopped. */
	cycles_per_second();
	for (;;) {
		stop_begin(ps->target, most - ps->stopped_ms);
		read_process(ps);
		ps->consistent = stop_end(&stopped);
		ps->stopped_ms += stopped;
		if (ps->consistent || ps->stopped_ms + stopped >= most || ++tries == TRIES)
			return;
		forget_process(ps);
	}
}

int command_ps(char **words)
{
	struct command c = { .want = { .fd = -1, .longer = -1 } };
	struct ps ps = { .hex = false };
	struct target t;
	const char *name = parse(&ps, &c, words);

	ps.target = &t;
	target_open(&t, name, c.is_core);
	if (fibers_dormant(&t))
		return 0;
	(ps.stop ? read_stopped : read_process)(&ps);
	sleepers_tell(&ps.sleepers);
	ps.graph = (struct graph){ &ps.all, ps.facts };
	choose(&ps, &c.want, c.sort);
	(c.json ? ps_print_json : ps_print_text)(&ps);
	free(ps.shown);
	forget_process(&ps);
	return 0;
}
