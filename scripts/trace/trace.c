/* SPDX-License-Identifier: MIT */
/*
 * scripts/trace/trace.c - fiberize trace: shows which calls of a process block, for how long, and where
 * they are called; and writes what its fibers do into a file for Perfetto.
 */
#include <errno.h>
#include <signal.h>
#include <time.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "child.h"
#include "cycles.h"
#include "scripts/inspect/commands.h"
#include "scripts/process/say.h"
#include "scripts/process/text.h"
#include "sums.h"
#include "timeline.h"

/* PROCESSORS_PID stands for the processors in the file for Perfetto; it is above all process ids. */
enum { PROCESSORS_PID = 1 << 30, PAUSE_NS = 2000000, START_NS = 200000 };

struct trace {
	struct target t;
	const char *json_name;
	FILE *json, *out;
	bool summary, first;		/* first: no event has been written to the file yet */
	double seconds;			/* how long to trace; 0: without end */
	char **program;			/* the program to start; NULL: trace a process that runs already */
	struct child child;		/* the process of program */
	struct sums sums;
	unsigned long calls, lost;
	uint64_t origin;		/* time 0 of events, in cycles(); 0: nothing was traced yet */
	double traced;			/* time in seconds at which tracing of the last program ended */
	double unread;			/* seconds whose events could not be read */
};

static volatile sig_atomic_t interrupted;

static void set_action(void (*action)(int))
{
	signal(SIGINT, action);
	signal(SIGTERM, action);
	signal(SIGHUP, action);
}

/*
 * A second signal ends this tool; a child goes on.  One that comes at once is no second one: timeout(1) sends its signal to
 * the process and to the group.
 */
static void interrupt(int sig)
{
	static struct timespec first;
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	if (!interrupted) {
		first = now;
		interrupted = 1;
	} else if ((double)(now.tv_sec - first.tv_sec) + (double)(now.tv_nsec - first.tv_nsec) / 1e9 > 0.5) {
		signal(sig, SIG_DFL);
		raise(sig);
	}
}

/* ---- text ------------------------------------------------------------------------------- */

static void on_call(const struct call *c, void *arg)
{
	struct trace *trace = arg;
	char what[96];

	trace->calls++;
	if (trace->summary) {
		sums_add(&trace->sums, c);
		return;
	}
	if (trace->json)
		return;
	if (c->fd >= 0)
		snprintf(what, sizeof(what), "%s(%d)", call_name(c), c->fd);
	else
		snprintf(what, sizeof(what), "%s", call_name(c));
	fprintf(trace->out, "%11.6f %8d %-*s %-26s %-10s %10.3f %9.3f  %s%s\n", c->begun, c->tid,
		text_field(c->thread, 15), *c->thread ? c->thread : "-", what, rung_names[c->rung], c->waited * 1e3,
		c->queued * 1e3, call_before(c), c->caller->place);
}

static void print_head(const struct trace *trace)
{
	if (!trace->summary && !trace->json)
		fprintf(trace->out, "%11s %8s %-15s %-26s %-10s %10s %9s  %s\n", "SECONDS", "TID", "NAME",
			"CALL", "RUNG", "WAITED-MS", "QUEUED-MS", "FROM");
}

/* ---- the file for Perfetto: Chrome's JSON format -------------------------------------------- */

static void put_text(FILE *out, const char *text)
{
	fputc('"', out);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fputc('\\', out);
		fputc(*text, out);
	}
	fputc('"', out);
}

static void begin_event(struct trace *trace, const char *phase, const char *name, long pid, long tid)
{
	fprintf(trace->json, "%s\n{\"ph\":\"%s\",\"pid\":%ld,\"tid\":%ld,\"name\":",
		trace->first ? "" : ",", phase, pid, tid);
	put_text(trace->json, name);
	trace->first = false;
}

/* Name a process or thread for Perfetto. kind is "process_name" or "thread_name". */
static void put_name(struct trace *trace, const char *kind, long pid, long tid, const char *name)
{
	begin_event(trace, "M", kind, pid, tid);
	fputs(",\"args\":{\"name\":", trace->json);
	put_text(trace->json, name);
	fputs("}}", trace->json);
}

/* Times in this format are in microseconds. */
static void put_time(FILE *out, const char *key, long long ns)
{
	fprintf(out, ",\"%s\":%lld.%03lld", key, ns / 1000, ns % 1000);
}

/* Write a slice. Its ends are rounded, not its duration: else slices overlap by 1 ns, and Perfetto drops them. */
static void put_slice(struct trace *trace, const struct slice *s, long pid, long tid,
		      const char *name)
{
	const long long begun = (long long)(s->begun * 1e9 + 0.5), ended = (long long)(s->ended * 1e9 + 0.5);

	begin_event(trace, "X", name, pid, tid);
	put_time(trace->json, "ts", begun);
	put_time(trace->json, "dur", ended - begun);
	fputs(",\"args\":{", trace->json);
	if (s->kind == SLICE_WAITS && s->call) {
		fprintf(trace->json, "\"rung\":\"%s\",\"from\":", rung_names[s->call->rung]);
		put_text(trace->json, s->call->caller->place);
		if (s->call->fd >= 0)
			fprintf(trace->json, ",\"fd\":%d", s->call->fd);
	} else if (s->kind == SLICE_RUNS && s->processor >= 0) {
		fprintf(trace->json, "\"processor\":%d", s->processor);
	}
	fputs("}}", trace->json);
}

static void on_slice(const struct slice *s, void *arg)
{
	static const char *const names[] = { "runs", "queued", "waits" };
	struct trace *trace = arg;
	char name[32];

	snprintf(name, sizeof(name), "%s %d", *s->thread ? s->thread : "thread", s->tid);
	if (s->has_new_name)
		put_name(trace, "thread_name", trace->t.source.pid, s->tid, name);
	put_slice(trace, s, trace->t.source.pid, s->tid,
		  s->call && s->kind == SLICE_WAITS ? call_name(s->call) : names[s->kind]);
	if (s->kind == SLICE_RUNS && s->processor >= 0)
		put_slice(trace, s, PROCESSORS_PID, s->processor, name);
}

static void begin_json(struct trace *trace)
{
	if (trace->json)
		fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[", trace->json);
	trace->first = true;
}

/* Write the names of the traced program and of its processors for Perfetto. */
static void name_processes(struct trace *trace)
{
	char name[64], comm[32] = "";
	FILE *file;

	if (!trace->json)
		return;
	snprintf(name, sizeof(name), "/proc/%d/comm", trace->t.source.pid);
	file = fopen(name, "re");
	if (file && fgets(comm, sizeof(comm), file))
		comm[strcspn(comm, "\n")] = '\0';
	if (file)
		fclose(file);
	text_clean(comm);
	put_name(trace, "process_name", trace->t.source.pid, trace->t.source.pid, comm);
	snprintf(name, sizeof(name), "processors of %s", comm);
	put_name(trace, "process_name", PROCESSORS_PID, 0, name);
	for (uint64_t i = 0; i < target_root(&trace->t, ENTRY_processor_count); i++) {
		snprintf(name, sizeof(name), "processor %lu", (unsigned long)i);
		put_name(trace, "thread_name", PROCESSORS_PID, (long)i, name);
	}
}

static void end_json(struct trace *trace, uint64_t lost)
{
	if (!trace->json)
		return;
	fprintf(trace->json, "\n],\"otherData\":{\"lost\":\"%lu\"}}\n", (unsigned long)lost);
	if (ferror(trace->json) || fclose(trace->json) != 0)
		die(EXIT_OTHER, "%s: cannot be written", trace->json_name);
}

/* ---- the process --------------------------------------------------------------------------- */

/* Start the program by the launcher, whose path is the first argument of this process. */
static void start_program(struct trace *trace)
{
	size_t count = 0;
	char **words;

	while (trace->program[count])
		count++;
	words = calloc(count + 2, sizeof(*words));
	if (!words)
		die(EXIT_OTHER, "no memory");
	words[0] = program_invocation_name;
	memcpy(words + 1, trace->program, count * sizeof(*words));
	child_start(&trace->child, words);
	free(words);
}

static bool is_time_over(const struct trace *trace, uint64_t since)
{
	return trace->seconds && since &&
	       (double)(cycles() - since) / cycles_per_second() > trace->seconds;
}

/* Wait until the child runs a program with the library.  False if the child has ended or the time is over. */
static bool find_program(struct trace *trace)
{
	long pause = START_NS;

	while (!interrupted && !child_ended(&trace->child)) {
		if (!trace->child.is_ending && target_try(&trace->t, trace->child.pid)) {
			child_trace(&trace->child);
			return true;
		}
		/* The child is at its end, and has no library whose events could be read. */
		if (trace->child.is_leaving)
			child_let_go(&trace->child);
		child_wait(pause);
		/* Pause longer each time: programs load within ms, but one without the library may run for days. */
		if (pause < PAUSE_NS)
			pause += pause / 16;
		else if (is_time_over(trace, trace->origin))
			return false;
	}
	return false;
}

/* Wait until the process has loaded the library, and hold it.  False if interrupted or the time is over. */
static bool find_process(struct trace *trace, const char *name)
{
	const uint64_t since = cycles();

	while (trace->t.is_loading) {
		if (interrupted || is_time_over(trace, since))
			return false;
		child_wait(PAUSE_NS);
		target_release(&trace->t);
		target_open(&trace->t, name, false);
	}
	if (!target_hold(&trace->t))
		target_die(&trace->t, EXIT_NO_PROCESS, "%s: the process has ended", name);
	return true;
}

/* Trace the program that is held until it is gone.  False if interrupted or the time is over. */
static bool follow(struct trace *trace)
{
	/* In seconds (events.h). It may be long if this tool has started the program, which waits at its end. */
	const double permission = trace->program ? 60 : 3;
	struct events *events = events_begin(&trace->t, trace->origin, permission);
	struct symbols *symbols = symbols_open(&trace->t.source);
	const struct timeline_user user = { on_call, trace->json ? on_slice : NULL, trace };
	struct timeline *timeline = timeline_new(&trace->t, symbols, &user);
	bool lives = events != NULL;

	if (events && !trace->origin)
		print_head(trace);
	name_processes(trace);
	while (lives && !interrupted && !child_ended(&trace->child) && !child_is_still(&trace->child) &&
	       (!trace->seconds || events_time(events) < trace->seconds)) {
		const double begun = events_time(events);

		lives = events_read(events, false, timeline_event, timeline);
		/* If reading took long, do not pause: more events have come meanwhile. */
		if (events_time(events) - begun < PAUSE_NS / 1e9)
			child_wait(PAUSE_NS);
	}
	if (events) {
		/* Read the last events before events_stop(), because the library may free the rings after it. */
		events_read(events, true, timeline_event, timeline);
		events_stop(events);
		trace->traced = events_time(events);
		timeline_end(timeline, trace->traced);
		trace->lost += events_lost(events);
		trace->unread += events_unread(events);
		trace->origin = events_origin(events);
		events_free(events);
	}
	timeline_free(timeline);
	symbols_close(symbols);
	target_release(&trace->t);
	if (!trace->child.is_leaving)
		return !lives;
	child_let_go(&trace->child);
	return true;
}

static void report(struct trace *trace)
{
	end_json(trace, trace->lost);
	/* Nothing was traced: there was no program with the library. */
	if (!trace->origin)
		return;
	if (trace->summary)
		sums_print(&trace->sums, trace->out);
	fflush(trace->out);
	fprintf(stderr, "fiberize: %lu calls blocked in %.3f s, %lu events lost", trace->calls,
		trace->traced, trace->lost);
	if (trace->unread > 0)
		fprintf(stderr, ", and those of %.3f s until a program ended or executed another one",
			trace->unread);
	fputc('\n', stderr);
}

/* ---- the command line ------------------------------------------------------------------------ */

static char **read_options(struct trace *trace, char **words)
{
	enum command_option option;
	char *value, *end;

	while ((option = option_next("trace", &words, &value)) != OPTION_NONE) {
		if (option == OPTION_trace_summary) {
			trace->summary = true;
		} else if (option == OPTION_trace_json) {
			trace->json_name = value;
		} else {
			trace->seconds = strtod(value, &end);
			if (*end || end == value || !(trace->seconds > 0 && trace->seconds < 1e9))
				die(EXIT_USAGE, "trace: --seconds %s: not a number above 0", value);
		}
	}
	if (!*words || (strcmp(*words, "--") == 0 && !words[1]))
		wrong_usage("trace", "a process id or a program is needed");
	return words;
}

int command_trace(char **words)
{
	struct trace trace = { .out = stdout };

	words = read_options(&trace, words);
	if (strcmp(*words, "--") != 0 && words[1])
		wrong_usage("trace", "%s: one process id is enough", words[1]);
	if (strcmp(*words, "--") == 0) {
		trace.program = words + 1;
		trace.out = stderr;
	} else {
		target_open(&trace.t, *words, false);
	}
	if (trace.json_name && !(trace.json = fopen(trace.json_name, "we")))
		die(EXIT_OTHER, "cannot write the time line to %s: %s", trace.json_name, strerror(errno));
	set_action(interrupt);
	begin_json(&trace);
	if (!trace.program) {
		if (find_process(&trace, *words))
			follow(&trace);
	} else {
		start_program(&trace);
		while (find_program(&trace) && follow(&trace))
			continue;
		child_detach(&trace.child);
	}
	report(&trace);
	set_action(SIG_DFL);
	while (trace.child.pid && !child_ended(&trace.child))
		child_wait(PAUSE_NS);
	return trace.child.status;
}
