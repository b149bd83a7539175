/* SPDX-License-Identifier: MIT */
#include "running.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "wait_cost.h"

static const char WILL_NOT[] = "will not gain", MAY[] = "may gain";

/* Verdicts by program, because several processes may run one program. */
static struct known {
	struct known *next;
	char *program;
	const char *verdict;
	char *reason;
	bool is_certain;
} *known;

__attribute__((format(printf, 1, 2)))
static char *print(const char *format, ...)
{
	va_list args;
	char *text;

	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		abort();
	va_end(args);
	return text;
}

/*
 * Returns the verdict on a program; makes a report if there is none yet.  Only the verdict is kept, because a
 * report holds all libraries open.
 */
static const struct known *report_on(const char *program, const struct object *library)
{
	struct known *k = known;
	struct report r;

	while (k && strcmp(k->program, program) != 0)
		k = k->next;
	if (k)
		return k;
	k = calloc(1, sizeof(*k));
	if (!k)
		abort();
	report_make(program, library, &r);
	*k = (struct known){ known, strdup(program), r.verdict, strdup(r.reason), r.is_certain };
	report_free(&r);
	known = k;
	return k;
}

static char *what_to_type(const struct candidate *c)
{
	if (!process_root_is_ours(c->pid))
		return strdup("it is in a container: see fiberize(1), CONTAINERS");
	if (c->service)
		return print("fiberize enable %s", c->service);
	return c->command ? print("fiberize %s", c->command) : NULL;
}

/* Judge by what the process did. r is the verdict on its program, or NULL if it can gain too little. */
static void judge_activity(struct candidate *c, const struct known *r)
{
	const struct activity *a = &c->activity;
	const double most = 100 * c->gain.at_most;

	c->verdict = WILL_NOT;
	if (c->gain.cpu < GAIN_IDLE)
		c->reason = print("idle: it used %.1f %% of a processor", 100 * c->gain.cpu);
	else if (r) {
		c->verdict = strcmp(r->verdict, WILL_NOT) == 0 ? MAY : r->verdict;
		c->reason = print("%s", c->gain.short_threads ? "its threads come and go" :
				  c->gain.by_system ? "the kernel's part of its CPU time" :
				  "its threads wait often");
		c->advice = what_to_type(c);
	} else if (a->cpu_bound)
		c->reason = print("%zu of its threads are CPU-bound", a->cpu_bound);
	else if (a->loops)
		c->reason = print("event loop: %zu of its threads wait in one", a->loops);
	else if (c->gain.by_system)
		c->reason = print("the kernel takes at most %.1f %% of its CPU time", most);
	else
		c->reason = print("its waits take at most %.1f %% of its CPU time", most);
}

static void judge(struct candidate *c, const struct object *library)
{
	const struct known *r;
	struct program p;

	if (process_maps(c->pid, "libfiberize.so")) {
		c->verdict = "runs under fiberize";
		c->reason = print("see fiberize stat %d", c->pid);
		return;
	}
	if (c->gain.cpu < GAIN_IDLE || c->gain.at_most < GAIN_LEAST) {
		/* A report on a big program takes about 1 s, so for little gain only the file is judged. */
		program_find(c->program, library, &p);
		if (p.code == CODE_OK) {
			judge_activity(c, NULL);
		} else {
			c->verdict = "cannot";
			c->reason = strdup(p.message ?: p.kind);
		}
		program_free(&p);
		return;
	}
	r = report_on(c->program, library);
	if (r->is_certain) {
		c->verdict = r->verdict;
		c->reason = strdup(r->reason);
	} else {
		judge_activity(c, r);
	}
}

static double saved(const struct candidate *c)
{
	return c->advice ? c->gain.at_most * c->gain.cpu : 0;
}

static int by_saved(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;
	const double difference = saved(y) - saved(x);

	return difference < 0 ? -1 : difference > 0 ? 1 : x->pid < y->pid ? -1 : x->pid > y->pid;
}

static void add(struct running *r, const struct look *first, const struct look *second,
		const struct object *library)
{
	struct candidate *c = &r->list[r->count];

	*c = (struct candidate){ .pid = second->pid };
	memcpy(c->name, second->state.name, sizeof(c->name));
	activity_between(first, second, &c->activity);
	c->gain = gain_estimate(&c->activity, r->wait_ns);
	if (first->count <= 1 && second->count <= 1 && !c->gain.short_threads) {
		r->single++;
		return;
	}
	c->program = process_program(c->pid);
	if (!c->program) {
		r->forbidden += errno == EACCES || errno == EPERM;
		return;
	}
	c->service = process_service(c->pid);
	c->command = process_command(c->pid);
	judge(c, library);
	r->count++;
}

static void wait_for(double seconds)
{
	struct timespec pause = { (time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9) };

	while (nanosleep(&pause, &pause) != 0 && errno == EINTR)
		;
}

void running_look(double seconds, const struct object *library, struct running *r)
{
	enum { SAMPLES = 8 };
	size_t first_count, second_count;
	struct look *first, *second;

	*r = (struct running){ .seconds = seconds, .wait_ns = wait_cost_ns() };
	backend_find(&r->backend);
	r->wait_assumed = r->wait_ns <= 0;
	if (r->wait_assumed)
		r->wait_ns = WAIT_ASSUMED_NS;
	first = looks_take(&first_count);
	for (int i = 0; i < SAMPLES; i++) {
		wait_for(seconds / (SAMPLES + 1));
		looks_sample(first, first_count);
	}
	wait_for(seconds / (SAMPLES + 1));
	second = looks_take(&second_count);
	r->list = calloc(second_count + 1, sizeof(*r->list));
	if (!r->list)
		abort();
	for (size_t i = 0; i < second_count; i++) {
		const struct look *before = looks_find(first, first_count, &second[i]);

		/* A process that has started since the first look is left out. */
		if (before)
			add(r, before, &second[i], library);
	}
	looks_free(first, first_count);
	looks_free(second, second_count);
	qsort(r->list, r->count, sizeof(*r->list), by_saved);
}
