/* SPDX-License-Identifier: MIT */
/*
 * scripts/inspect/status.c - fiberize status: lists the processes of this machine that run under fiberize.
 */
#include <inttypes.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "commands.h"
#include "scripts/machine/measured.h"
#include "scripts/machine/processes.h"
#include "scripts/process/say.h"
#include "scripts/process/target.h"
#include "scripts/process/text.h"

enum { MEASURED_MOST = 16 };

struct row {
	int pid;
	struct process_state state;
	char version[32];
	const char *backend;		/* NULL: none yet, or unknown */
	uint64_t processors, threads;
	enum library { IS_SAME, IS_REPLACED, IS_REMOVED } library;	/* its file, since the process has mapped it */
	const char *note;		/* or NULL */
	size_t measured;		/* cases that "fiberize bench" has measured; at most MEASURED_MOST of them are here */
	struct measured_case cases[MEASURED_MOST];
};

struct status {
	struct row *rows;
	size_t count;
	size_t forbidden;
	char *record;			/* what "fiberize bench" has measured, or NULL */
};

/* What a line of maps has at its end, behind the name of a file that is deleted. */
static const char DELETED[] = " (deleted)\n";

static bool ends_in_deleted(const char *line)
{
	const size_t length = strlen(line), end = strlen(DELETED);

	return length >= end && strcmp(line + length - end, DELETED) == 0;
}

/* Is there a file with the name that the deleted library had in the process's root? name has DELETED at its end. */
static bool is_there_again(const struct target *t, const char *name)
{
	char path[4096];
	int size = snprintf(path, sizeof(path), "/proc/%d/root%.*s", target_reader(t),
			    (int)(strlen(name) - strlen(DELETED)), name);

	return size < (int)sizeof(path) && access(path, F_OK) == 0;
}

/* Replacing a library deletes the file from which the process has mapped it. */
static enum library look_for_library(const struct target *t)
{
	enum library library = IS_SAME;
	char path[32], *line = NULL;
	size_t room = 0;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", target_reader(t));
	maps = fopen(path, "re");
	while (maps && getline(&line, &room, maps) > 0) {
		uint64_t begin, end;

		if (sscanf(line, "%" SCNx64 "-%" SCNx64, &begin, &end) == 2 && t->description >= begin &&
		    t->description < end && ends_in_deleted(line))
			library = is_there_again(t, line + strcspn(line, "/")) ? IS_REPLACED : IS_REMOVED;
	}
	free(line);
	if (maps)
		fclose(maps);
	return library;
}

/* Are the entries described that a row needs? Their meaning is the same in each version of the library. */
static bool describes_enough(const struct target *t)
{
	static const enum entry needed[] = {
		ENTRY_started, ENTRY_backend_kind, ENTRY_processor_count, ENTRY_alive,
	};

	for (size_t i = 0; i < sizeof(needed) / sizeof(*needed); i++)
		if (!t->entries[needed[i]].size)
			return false;
	return true;
}

static void read_row(const struct target *t, enum target_found found, struct row *r)
{
	char why[DORMANT_MOST];

	const size_t size = t->entries[ENTRY_version].size;

	if (!size || !target_read(t, target_value(t, ENTRY_version), r->version,
				  size < sizeof(r->version) ? size : sizeof(r->version) - 1))
		strcpy(r->version, "?");
	text_clean(r->version);
	text_clean(r->state.name);
	r->library = look_for_library(t);
	if (found == TARGET_LOADING)
		r->note = "it is starting";
	else if (found == TARGET_DAMAGED)
		r->note = "the description in its library is damaged";
	else if (!describes_enough(t))
		r->note = "its library is of another version: use the fiberize that came with it";
	else if (target_dormant(t, why))
		r->note = strdup(why);
	else {
		r->backend = target_root(t, ENTRY_backend_kind) == target_value(t, ENTRY_backend_epoll) ?
				     "epoll" : "io_uring";
		r->processors = target_root(t, ENTRY_processor_count);
		r->threads = target_root(t, ENTRY_alive);
	}
}

static void read_measured(int pid, const char *record, struct row *r)
{
	char *key = record ? measured_key(pid, 0) : NULL;

	if (key)
		r->measured = measured_find(record, key, r->cases, MEASURED_MOST);
	if (r->measured > MEASURED_MOST)
		r->measured = MEASURED_MOST;
	free(key);
}

static void look(int pid, struct status *s)
{
	struct row *r = &s->rows[s->count];
	enum target_found found;
	struct target t;

	*r = (struct row){ .pid = pid };
	if (!process_read(pid, &r->state) || r->state.is_kernel)
		return;
	found = target_look(&t, pid);
	s->forbidden += found == TARGET_FORBIDDEN;
	if (found != TARGET_ABSENT && found != TARGET_FORBIDDEN) {
		read_row(&t, found, r);
		read_measured(pid, s->record, r);
		/* Drop the row if the process has executed another program meanwhile. */
		s->count += target_runs(&t);
	}
	target_release(&t);
}

/* The medians of all cases, with a "?" if one is undecided. */
static void measured_text(const struct row *r, char *ret_text, size_t size)
{
	double low = 1e9, high = 0;
	bool undecided = false;

	for (size_t i = 0; i < r->measured; i++) {
		low = r->cases[i].median < low ? r->cases[i].median : low;
		high = r->cases[i].median > high ? r->cases[i].median : high;
		undecided |= strcmp(r->cases[i].verdict, "undecided") == 0;
	}
	if (!r->measured)
		snprintf(ret_text, size, "-");
	else if (r->measured == 1)
		snprintf(ret_text, size, "%.2f%s", low, undecided ? "?" : "");
	else
		snprintf(ret_text, size, "%.2f..%.2f%s", low, high, undecided ? "?" : "");
}

static void print_text(const struct status *s)
{
	static const char *const notes[] = {
		[IS_REPLACED] = "its library was replaced: a restart takes the new one",
		[IS_REMOVED] = "its library was removed: after a restart it runs natively",
	};

	if (s->count)
		puts("     PID NAME             VERSION  BACKEND  PROCESSORS  THREADS   CPU/NATIVE  SINCE                NOTES");
	else
		puts("no process runs under fiberize");
	for (size_t i = 0; i < s->count; i++) {
		const struct row *r = &s->rows[i];
		const time_t start = (time_t)process_start_time(&r->state);
		char since[32], processors[24] = "-", threads[24] = "-", measured[64];
		struct tm when;

		strftime(since, sizeof(since), "%F %T", localtime_r(&start, &when));
		if (r->backend) {
			snprintf(processors, sizeof(processors), "%" PRIu64, r->processors);
			snprintf(threads, sizeof(threads), "%" PRIu64, r->threads);
		}
		measured_text(r, measured, sizeof(measured));
		printf("%8d %-*s %-8s %-8s %10s %8s %12s  %s%s%s%s%s\n", r->pid, text_field(r->state.name, 16), r->state.name,
		       r->version, r->backend ?: "-", processors, threads, measured, since, r->note || r->library ? "  " : "",
		       r->note ?: "", r->note && r->library ? "; " : "", notes[r->library] ?: "");
	}
	if (s->forbidden)
		printf(geteuid() == 0 ? "%zu process%s that not even root may look at here: they have capabilities "
					"that this root lacks, or kernel.yama.ptrace_scope is 3\n" :
					"%zu process%s that only root may look at: run \"fiberize status\" as root\n",
		       s->forbidden, s->forbidden == 1 ? "" : "es");
}

static struct json_object *json_ratio(double ratio)
{
	char text[32];

	snprintf(text, sizeof(text), "%.3f", ratio);
	return json_object_new_double_s(ratio, text);
}

static struct json_object *json_measured(const struct row *r)
{
	struct json_object *list = json_object_new_array();

	for (size_t i = 0; i < r->measured; i++) {
		const struct measured_case *c = &r->cases[i];
		struct json_object *o = json_object_new_object();

		json_object_object_add(o, "when", json_object_new_int64(c->when));
		json_object_object_add(o, "version", json_object_new_string(c->version));
		json_object_object_add(o, "connections", c->connections ? json_object_new_int64(c->connections) : NULL);
		json_object_object_add(o, "rate", c->rate ? json_object_new_int64(c->rate) : NULL);
		json_object_object_add(o, "cpu_ratio", json_ratio(c->median));
		json_object_object_add(o, "low", json_ratio(c->low));
		json_object_object_add(o, "high", json_ratio(c->high));
		json_object_object_add(o, "verdict", json_object_new_string(c->verdict));
		json_object_array_add(list, o);
	}
	return list;
}

static void print_json(const struct status *s)
{
	struct json_object *all = json_object_new_object(), *list = json_object_new_array();

	for (size_t i = 0; i < s->count; i++) {
		struct json_object *o = json_object_new_object();
		const struct row *r = &s->rows[i];

		json_object_object_add(o, "pid", json_object_new_int(r->pid));
		json_object_object_add(o, "name", json_object_new_string(r->state.name));
		json_object_object_add(o, "version", json_object_new_string(r->version));
		json_object_object_add(o, "backend", r->backend ? json_object_new_string(r->backend) : NULL);
		json_object_object_add(o, "processors", json_object_new_int64((int64_t)r->processors));
		json_object_object_add(o, "threads", json_object_new_int64((int64_t)r->threads));
		json_object_object_add(o, "measured", json_measured(r));
		json_object_object_add(o, "since", json_object_new_int64((int64_t)process_start_time(&r->state)));
		json_object_object_add(o, "replaced", json_object_new_boolean(r->library == IS_REPLACED));
		json_object_object_add(o, "removed", json_object_new_boolean(r->library == IS_REMOVED));
		json_object_object_add(o, "note", r->note ? json_object_new_string(r->note) : NULL);
		json_object_array_add(list, o);
	}
	json_object_object_add(all, "forbidden", json_object_new_int64((int64_t)s->forbidden));
	json_object_object_add(all, "processes", list);
	puts(json_object_to_json_string_ext(all, JSON_C_TO_STRING_PLAIN));
	json_object_put(all);
}

int command_status(char **words)
{
	struct status s = { .count = 0 };
	bool json = false;
	size_t count;
	char *value;
	int *pids;
	enum command_option option;

	/* "fiberize status SERVICE" and --root do not come here: the launcher starts scripts/service. */
	while ((option = option_next("status", &words, &value)) != OPTION_NONE)
		json |= option == OPTION_status_json;
	if (*words)
		wrong_usage("status", "%s: --json goes without a service", *words);
	pids = processes_list(&count);
	s.rows = calloc(count + 1, sizeof(*s.rows));
	if (!s.rows)
		die(EXIT_OTHER, "no memory for %zu processes", count);
	s.record = measured_read();
	for (size_t i = 0; i < count; i++)
		look(pids[i], &s);
	(json ? print_json : print_text)(&s);
	free(s.rows);
	free(s.record);
	free(pids);
	return 0;
}
