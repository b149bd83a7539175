/* SPDX-License-Identifier: MIT */
/*
 * scripts/inspect/ps.c - fiberize ps: a line for each thread, and the deadlocks among them.
 */
#include "commands.h"

#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fibers.h"
#include "say.h"
#include "waits.h"

static const char *const state_names[STATE_COUNT] = {
	[STATE_RUNS] = "runs", [STATE_CALLS] = "in a call", [STATE_QUEUED] = "queued",
	[STATE_WAITS] = "waits", [STATE_WIRED] = "wired",
};

struct ps {
	bool json, hex, count_only;
	const struct target *target;
	struct fibers all;
	struct wait *waits;		/* of all.list, one each */
};

/* ---- deadlocks ---------------------------------------------------------------------- */

static size_t owner_of(const struct ps *ps, size_t i)
{
	const struct fiber *owner = ps->waits[i].owner ?
					    fibers_by_tid(&ps->all, ps->waits[i].owner) : NULL;

	return owner ? (size_t)(owner - ps->all.list) : SIZE_MAX;
}

/*
 * Call found for a thread of each circle of threads that wait for each other.  A deadline ends a
 * wait, and with it the circle.
 */
static size_t each_deadlock(const struct ps *ps, void (*found)(const struct ps *, size_t, void *),
			    void *arg)
{
	uint32_t *visit = calloc(ps->all.count + 1, sizeof(*visit));
	size_t circles = 0;

	if (!visit)
		die(EXIT_OTHER, "no memory");
	for (size_t i = 0; i < ps->all.count; i++) {
		size_t at = i;

		while (at != SIZE_MAX && !visit[at] && ps->all.list[at].deadline < 0) {
			visit[at] = (uint32_t)i + 1;
			at = owner_of(ps, at);
		}
		if (at == SIZE_MAX || visit[at] != (uint32_t)i + 1 ||
		    ps->all.list[at].deadline >= 0)
			continue;
		circles++;
		found(ps, at, arg);
	}
	free(visit);
	return circles;
}

static void print_deadlock(const struct ps *ps, size_t first, void *arg)
{
	size_t at = first;

	(void)arg;
	printf("\ndeadlock:\n");
	do {
		printf("  %d waits for %s\n", ps->all.list[at].tid, ps->waits[at].text);
		at = owner_of(ps, at);
	} while (at != first && at != SIZE_MAX);
}

static void json_deadlock(const struct ps *ps, size_t first, void *list)
{
	struct json_object *tids = json_object_new_array();
	size_t at = first;

	do {
		json_object_array_add(tids, json_object_new_int(ps->all.list[at].tid));
		at = owner_of(ps, at);
	} while (at != first && at != SIZE_MAX);
	json_object_array_add(list, tids);
}

/* ---- text --------------------------------------------------------------------------- */

/* A name or a path that the program chose must not move the cursor. */
static void put_safely(const char *text)
{
	for (; *text; text++)
		putchar((unsigned char)*text < ' ' || *text == 0x7f ? '?' : *text);
}

static void print_one(const struct ps *ps, size_t i)
{
	const struct fiber *f = &ps->all.list[i];
	char since[24] = "-", kernel[16] = "-";

	if (f->waits_since >= 0)
		snprintf(since, sizeof(since), "%.3f", f->waits_since);
	if (f->kernel_tid)
		snprintf(kernel, sizeof(kernel), "%d", f->kernel_tid);
	printf(ps->hex ? "%#10x" : "%10d", (unsigned)f->tid);
	printf(" %-9s %7s %12s %10.3f  ", state_names[f->state], kernel, since,
	       (double)f->cpu_ns / 1e9);
	printf("%-15s  ", f->is_main && !*f->name ? "(main)" : f->name);
	put_safely(ps->waits[i].text);
	putchar('\n');
}

static void print_summary(const struct ps *ps)
{
	size_t states[STATE_COUNT] = { 0 };

	for (size_t i = 0; i < ps->all.count; i++)
		states[ps->all.list[i].state]++;
	printf("%zu threads on %lu processors:", ps->all.count, (unsigned long)ps->all.processors);
	for (size_t i = 0; i < STATE_COUNT; i++)
		if (states[i])
			printf(" %zu %s", states[i], state_names[i]);
	if (ps->all.alive > ps->all.count)
		printf(", and %lu native", (unsigned long)(ps->all.alive - ps->all.count));
	putchar('\n');
}

static void print_text(const struct ps *ps)
{
	print_summary(ps);
	if (ps->count_only)
		return;
	printf("%10s %-9s %7s %12s %10s  %-15s  %s\n", "TID", "STATE", "KERNEL", "WAITS FOR s",
	       "CPU s", "NAME", "WAITS FOR");
	for (size_t i = 0; i < ps->all.count; i++)
		print_one(ps, i);
	each_deadlock(ps, print_deadlock, NULL);
}

/* ---- JSON --------------------------------------------------------------------------- */

static struct json_object *seconds(double value)
{
	return value < 0 ? NULL : json_object_new_double(value);
}

static struct json_object *json_of(const struct ps *ps, size_t i)
{
	const struct fiber *f = &ps->all.list[i];
	const struct wait *w = &ps->waits[i];
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "tid", json_object_new_int(f->tid));
	json_object_object_add(o, "name", json_object_new_string(f->name));
	json_object_object_add(o, "main", json_object_new_boolean(f->is_main));
	json_object_object_add(o, "state", json_object_new_string(state_names[f->state]));
	json_object_object_add(o, "kernel_tid",
			       f->kernel_tid ? json_object_new_int(f->kernel_tid) : NULL);
	json_object_object_add(o, "cpu_ns", json_object_new_int64((int64_t)f->cpu_ns));
	if (f->state != STATE_WAITS)
		return o;
	json_object_object_add(o, "waits_for", json_object_new_string(w->kind));
	json_object_object_add(o, "detail", json_object_new_string(w->text));
	json_object_object_add(o, "fd", w->fd < 0 ? NULL : json_object_new_int(w->fd));
	json_object_object_add(o, "owner", w->owner ? json_object_new_int(w->owner) : NULL);
	json_object_object_add(o, "waits_s", seconds(f->waits_since));
	json_object_object_add(o, "deadline_s", seconds(f->deadline));
	return o;
}

static void print_json(const struct ps *ps)
{
	struct json_object *o = json_object_new_object(), *list = json_object_new_array();
	struct json_object *deadlocks = json_object_new_array();

	json_object_object_add(o, "pid", json_object_new_int(ps->target->source.pid));
	json_object_object_add(o, "processors", json_object_new_int64((int64_t)ps->all.processors));
	json_object_object_add(o, "alive", json_object_new_int64((int64_t)ps->all.alive));
	for (size_t i = 0; i < ps->all.count; i++)
		json_object_array_add(list, json_of(ps, i));
	json_object_object_add(o, "threads", list);
	each_deadlock(ps, json_deadlock, deadlocks);
	json_object_object_add(o, "deadlocks", deadlocks);
	puts(json_object_to_json_string_ext(o, JSON_C_TO_STRING_PRETTY));
	json_object_put(o);
}

int command_ps(char **words)
{
	struct ps ps = { .json = false };
	bool is_core = false;
	struct target t;

	for (; *words && **words == '-'; words++) {
		if (strcmp(*words, "--core") == 0)
			is_core = true;
		else if (strcmp(*words, "--json") == 0)
			ps.json = true;
		else if (strcmp(*words, "--hex") == 0)
			ps.hex = true;
		else if (strcmp(*words, "--count") == 0)
			ps.count_only = true;
		else
			die(EXIT_USAGE, "ps: %s: no such option; fiberize ps [--count] [--hex] "
			    "[--json] {PID|--core FILE}", *words);
	}
	if (!words[0] || words[1])
		die(EXIT_USAGE, "ps: one process id is needed; fiberize ps [--count] [--hex] "
		    "[--json] {PID|--core FILE}");
	ps.target = &t;
	if (!fibers_open(&t, words[0], is_core, &ps.all))
		return 0;
	ps.waits = calloc(ps.all.count + 1, sizeof(*ps.waits));
	if (!ps.waits)
		die(EXIT_OTHER, "no memory for %zu threads", ps.all.count);
	for (size_t i = 0; i < ps.all.count && !ps.count_only; i++)
		wait_of(&t, &ps.all, &ps.all.list[i], &ps.waits[i]);
	(ps.json ? print_json : print_text)(&ps);
	free(ps.waits);
	fibers_free(&ps.all);
	return 0;
}
