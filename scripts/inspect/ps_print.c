/* SPDX-License-Identifier: MIT */
/*
 * scripts/inspect/ps_print.c - prints what fiberize ps has found, for people and as JSON.
 */
#include "ps.h"

#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/die.h"
#include "scripts/process/text.h"

const char *const ps_states[STATE_COUNT] = {
	[STATE_RUNS] = "runs", [STATE_CALLS] = "in a call", [STATE_QUEUED] = "queued",
	[STATE_WAITS] = "waits", [STATE_WIRED] = "wired", [STATE_NATIVE] = "native",
	[STATE_LIBRARY] = "library",
};

void ps_detail(const struct target *t, const struct fibers *all, const struct fiber *f,
	       const struct wait_facts *facts, char *text, size_t size)
{
	size_t used;

	*text = '\0';
	if (facts)
		wait_tell(t, all, f, facts, text, size);
	used = strlen(text);
	if (*f->in_kernel && f->state != STATE_LIBRARY)
		used += (size_t)snprintf(text + used, size - used, "%sin the kernel: %s", used ? ", " : "", f->in_kernel);
	if (used >= size)
		used = size - 1;
	if (f->why && *f->why)
		snprintf(text + used, size - used, "%s%s%s", used ? "; " : "",
			 f->state == STATE_LIBRARY ? "" : "a kernel thread: ", f->why);
	/* If the text was cut, it may end in the middle of a UTF-8 character. */
	text_clean(text);
}

/* What the thread waits for; NULL: a thread of the library. */
static const struct wait_facts *facts_of(const struct ps *ps, const struct fiber *f)
{
	return f->state == STATE_LIBRARY ? NULL : &ps->facts[f - ps->all.list];
}

static void detail_of(const struct ps *ps, const struct fiber *f, char *text, size_t size)
{
	ps_detail(ps->target, &ps->all, f, facts_of(ps, f), text, size);
}

static void put_tid(const struct ps *ps, const struct fiber *f)
{
	printf(ps->hex ? "%#10x" : "%10d", (unsigned)f->tid);
}

static void put_name(const struct fiber *f)
{
	const char *name = f->is_main && !*f->name ? "(main)" : f->name;

	printf("%-*s", text_field(name, 15), name);
}

static void print_one(const struct ps *ps, const struct fiber *f)
{
	char since[24] = "-", kernel[16] = "-", processor[16] = "-", detail[512];

	if (f->waits_since >= 0)
		snprintf(since, sizeof(since), "%.3f", f->waits_since);
	else if (f->waits_at_least >= 0)
		snprintf(since, sizeof(since), ">%.3f", f->waits_at_least);
	if (f->kernel_tid)
		snprintf(kernel, sizeof(kernel), "%d", f->kernel_tid);
	if (f->processor >= 0)
		snprintf(processor, sizeof(processor), "%d", f->processor);
	put_tid(ps, f);
	printf(" %-9s %7s %4s %12s %10.3f %9lu  ", ps_states[f->state], kernel, processor, since,
	       (double)f->cpu_ns / 1e9, (unsigned long)f->switches);
	put_name(f);
	detail_of(ps, f, detail, sizeof(detail));
	printf("  %s\n", detail);
}

void ps_summary(const struct fibers *all, const size_t *states, char *line, size_t size)
{
	size_t used = (size_t)snprintf(line, size, "%zu thread%s on %lu processor%s", all->count,
				       fz_plural(all->count), (unsigned long)all->open, fz_plural(all->open));

	if (all->open < all->processors)
		used += (size_t)snprintf(line + used, size - used, " (%lu closed: a CPU limit, or too little load)",
					 (unsigned long)(all->processors - all->open));
	line[used++] = ':';
	line[used] = '\0';
	for (size_t i = 0; i < STATE_COUNT; i++)
		if (states[i])
			used += (size_t)snprintf(line + used, size - used, " %zu %s", states[i], ps_states[i]);
}

static void print_summary(const struct ps *ps)
{
	size_t states[STATE_COUNT] = { 0 };
	char line[400];

	for (size_t i = 0; i < ps->all.count; i++)
		states[ps->all.list[i].state]++;
	ps_summary(&ps->all, states, line, sizeof(line));
	fputs(line, stdout);
	if (ps->stop)
		printf("; stopped for %.1f ms%s", ps->stopped_ms,
		       ps->consistent ? "" : ", and a thread has run meanwhile");
	putchar('\n');
}

static void print_waiter(const struct graph *g, size_t thread, void *arg)
{
	const struct ps *ps = arg;
	char detail[512];

	wait_tell(ps->target, g->all, &g->all->list[thread], &g->facts[thread], detail,
		  sizeof(detail));
	printf(ps->hex ? "  %#x waits for %s\n" : "  %d waits for %s\n",
	       (unsigned)g->all->list[thread].tid, detail);
}

static void print_deadlock(const struct graph *g, size_t thread, void *arg)
{
	printf("\ndeadlock:\n");
	graph_circle(g, thread, print_waiter, arg);
}

static void print_branch(const struct graph *g, size_t thread, unsigned depth, void *arg)
{
	enum { DEEPEST = 20 };
	const struct fiber *f = &g->all->list[thread];
	const struct ps *ps = arg;
	char detail[512];

	put_tid(ps, f);
	printf(" %-9s ", ps_states[f->state]);
	put_name(f);
	detail_of(ps, f, detail, sizeof(detail));
	printf(" %*s%s\n", (int)(2 * (depth < DEEPEST ? depth : DEEPEST)), "", *detail ? detail : "-");
}

static void print_list(const struct ps *ps)
{
	printf("%10s %-9s %7s %4s %12s %10s %9s  %-15s  %s\n", "TID", "STATE", "KERNEL", "PROC",
	       "WAITS FOR s", "CPU s", "SWITCHES", "NAME", "WAITS FOR");
	for (size_t i = 0; i < ps->shown_count; i++)
		print_one(ps, ps->shown[i]);
}

void ps_print_text(const struct ps *ps)
{
	print_summary(ps);
	if (ps->count_only)
		return;
	if (ps->tree) {
		printf("%10s %-9s %-15s %s\n", "TID", "STATE", "NAME",
		       "WAITS FOR (below each thread: those that wait for it)");
		graph_tree(&ps->graph, print_branch, (void *)ps);
	} else {
		print_list(ps);
	}
	graph_deadlocks(&ps->graph, ps->target, print_deadlock, (void *)ps);
	if (graph_all_asleep(&ps->graph, ps->target))
		printf("\nall asleep: each thread waits for another one, and nothing is in flight; "
		       "only a signal or another process can end that\n");
}

/* ---- JSON --------------------------------------------------------------------------- */

static struct json_object *seconds(double value)
{
	return value < 0 ? NULL : json_object_new_double(value);
}

static struct json_object *number(int value, int none)
{
	return value == none ? NULL : json_object_new_int(value);
}

static struct json_object *text(const char *value)
{
	return value && *value ? json_object_new_string(value) : NULL;
}

static struct json_object *json_of(const struct ps *ps, const struct fiber *f)
{
	struct json_object *o = json_object_new_object();
	const struct wait_facts *w = facts_of(ps, f);
	char detail[512] = "";

	json_object_object_add(o, "tid", json_object_new_int(f->tid));
	json_object_object_add(o, "name", json_object_new_string(f->name));
	json_object_object_add(o, "main", json_object_new_boolean(f->is_main));
	json_object_object_add(o, "state", json_object_new_string(ps_states[f->state]));
	json_object_object_add(o, "kernel_tid", number(f->kernel_tid, 0));
	json_object_object_add(o, "processor", number(f->processor, -1));
	json_object_object_add(o, "cpu_ns", json_object_new_int64((int64_t)f->cpu_ns));
	json_object_object_add(o, "switches", json_object_new_int64((int64_t)f->switches));
	json_object_object_add(o, "why", text(f->why));
	json_object_object_add(o, "in_kernel", text(f->in_kernel));
	if (w)
		wait_tell(ps->target, &ps->all, f, w, detail, sizeof(detail));
	json_object_object_add(o, "waits_for", text(w ? w->kind : NULL));
	json_object_object_add(o, "detail", text(detail));
	json_object_object_add(o, "fd", number(w ? w->fd : -1, -1));
	json_object_object_add(o, "owner", number(w ? w->owner : 0, 0));
	json_object_object_add(o, "waits_s", seconds(f->waits_since));
	json_object_object_add(o, "waits_at_least_s", seconds(f->waits_at_least));
	json_object_object_add(o, "deadline_s", f->has_deadline ? json_object_new_double(f->deadline) : NULL);
	return o;
}

static void add_tid(const struct graph *g, size_t thread, void *list)
{
	json_object_array_add(list, json_object_new_int(g->all->list[thread].tid));
}

static void add_deadlock(const struct graph *g, size_t thread, void *list)
{
	struct json_object *tids = json_object_new_array();

	graph_circle(g, thread, add_tid, tids);
	json_object_array_add(list, tids);
}

static struct json_object *json_states(const struct ps *ps)
{
	struct json_object *o = json_object_new_object();
	size_t states[STATE_COUNT] = { 0 };

	for (size_t i = 0; i < ps->all.count; i++)
		states[ps->all.list[i].state]++;
	for (size_t i = 0; i < STATE_LIBRARY; i++)
		json_object_object_add(o, ps_states[i], json_object_new_int64((int64_t)states[i]));
	return o;
}

/* Print a member of the whole object, and free its value; NULL is null. */
static void put_member(const char *name, struct json_object *value)
{
	printf(",\n  \"%s\": %s", name, json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN));
	json_object_put(value);
}

/* Print the threads, those of the library or the others: each is freed when it is printed. */
static void put_threads(const struct ps *ps, const char *name, bool of_library)
{
	bool is_first = true;

	printf(",\n  \"%s\": [", name);
	for (size_t i = 0; i < ps->shown_count; i++) {
		struct json_object *one;

		if ((ps->shown[i]->state == STATE_LIBRARY) != of_library)
			continue;
		one = json_of(ps, ps->shown[i]);
		printf("%s\n    %s", is_first ? "" : ",",
		       json_object_to_json_string_ext(one, JSON_C_TO_STRING_PLAIN));
		json_object_put(one);
		is_first = false;
	}
	printf(is_first ? "]" : "\n  ]");
}

/* The deadlocks among all threads, also those that are not listed. */
static void put_waits(const struct ps *ps)
{
	struct json_object *deadlocks = json_object_new_array();

	graph_deadlocks(&ps->graph, ps->target, add_deadlock, deadlocks);
	put_member("all_asleep", json_object_new_boolean(graph_all_asleep(&ps->graph, ps->target)));
	put_member("deadlocks", deadlocks);
}

void ps_print_json(const struct ps *ps)
{
	printf("{\n  \"pid\": %d", ps->target->source.pid);
	put_member("processors", json_object_new_int64((int64_t)ps->all.processors));
	put_member("open_processors", json_object_new_int64((int64_t)ps->all.open));
	put_member("alive", json_object_new_int64((int64_t)ps->all.alive));
	put_member("states", json_states(ps));
	put_member("stopped_ms", seconds(ps->stop ? ps->stopped_ms : -1));
	put_member("consistent", ps->stop ? json_object_new_boolean(ps->consistent) : NULL);
	if (!ps->count_only) {
		put_threads(ps, "threads", false);
		put_threads(ps, "library_threads", true);
		put_waits(ps);
	}
	puts("\n}");
}
