/* SPDX-License-Identifier: MIT */
/*
 * scripts/inspect/ps_json.c - what fiberize ps prints with --json.
 */
#include "ps.h"

#include <json-c/json.h>
#include <stdio.h>

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
	const struct wait_facts *w;
	char detail[512];

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
	if (f->state == STATE_LIBRARY)
		return o;
	w = &ps->facts[f - ps->all.list];
	if (!*w->kind)
		return o;
	wait_tell(ps->target, &ps->all, f, w, detail, sizeof(detail));
	json_object_object_add(o, "waits_for", json_object_new_string(w->kind));
	json_object_object_add(o, "detail", json_object_new_string(detail));
	json_object_object_add(o, "fd", number(w->fd, -1));
	json_object_object_add(o, "owner", number(w->owner, 0));
	json_object_object_add(o, "waits_s", seconds(f->waits_since));
	json_object_object_add(o, "deadline_s", seconds(f->deadline));
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

void ps_print_json(const struct ps *ps)
{
	struct json_object *o = json_object_new_object(), *list = json_object_new_array();
	struct json_object *own = json_object_new_array(), *deadlocks = json_object_new_array();

	json_object_object_add(o, "pid", json_object_new_int(ps->target->source.pid));
	json_object_object_add(o, "processors", json_object_new_int64((int64_t)ps->all.processors));
	json_object_object_add(o, "alive", json_object_new_int64((int64_t)ps->all.alive));
	json_object_object_add(o, "states", json_states(ps));
	json_object_object_add(o, "stopped_ms", seconds(ps->stop ? ps->stopped_ms : -1));
	json_object_object_add(o, "consistent",
			       ps->stop ? json_object_new_boolean(ps->consistent) : NULL);
	for (size_t i = 0; i < ps->shown_count; i++)
		json_object_array_add(ps->shown[i]->state == STATE_LIBRARY ? own : list,
				      json_of(ps, ps->shown[i]));
	json_object_object_add(o, "threads", list);
	json_object_object_add(o, "library_threads", own);
	if (ps->facts) {
		graph_deadlocks(&ps->graph, ps->target, add_deadlock, deadlocks);
		json_object_object_add(o, "all_asleep",
				       json_object_new_boolean(graph_all_asleep(&ps->graph)));
	}
	json_object_object_add(o, "deadlocks", deadlocks);
	puts(json_object_to_json_string_ext(o, JSON_C_TO_STRING_PRETTY));
	json_object_put(o);
}
