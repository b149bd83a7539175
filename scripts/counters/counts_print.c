/* SPDX-License-Identifier: MIT */
/*
 * scripts/counters/counts_print.c - prints the counters for other programs: as JSON, and in the text
 * format of Prometheus.
 */
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

#include "counts.h"

static const char *const processor_names[] = {
#define FZ_PROCESSOR_COUNTER(name, help) #name,
#define FZ_TOTAL(name, kind, help)
#include "runtime/base/counters.def"
};
static const char *const processor_helps[] = {
#define FZ_PROCESSOR_COUNTER(name, help) help,
#define FZ_TOTAL(name, kind, help)
#include "runtime/base/counters.def"
};

enum { COUNTER, GAUGE };

static const struct {
	const char *name, *help;
	int kind;
} totals[] = {
#define FZ_PROCESSOR_COUNTER(name, help)
#define FZ_TOTAL(name, kind, help) { #name, help, kind },
#include "runtime/base/counters.def"
};

static uint64_t count_of(const struct fz_times *t)
{
	uint64_t n = 0;

	for (size_t i = 0; i < FZ_TIME_BUCKETS; i++)
		n += t->bucket[i];
	return n;
}

/* ---- JSON --------------------------------------------------------------------------- */

static void put(struct json_object *o, const char *name, uint64_t value)
{
	json_object_object_add(o, name, json_object_new_uint64(value));
}

static struct json_object *json_times(const struct fz_times *t)
{
	struct json_object *o = json_object_new_object(), *buckets = json_object_new_array();

	put(o, "count", count_of(t));
	put(o, "sum_ns", t->sum);
	/* Bucket n counts times from 2^n to less than 2^(n + 1) ns. */
	for (size_t i = 0; i < FZ_TIME_BUCKETS; i++)
		json_object_array_add(buckets, json_object_new_uint64(t->bucket[i]));
	json_object_object_add(o, "log2_ns", buckets);
	return o;
}

static struct json_object *json_call(const struct call_counts *call)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "function", json_object_new_string(call->name));
	json_object_object_add(o, "rung", json_object_new_string(call->rung));
	put(o, "by_fibers", call->counts.by_fibers);
	put(o, "at_once", call->at_once);
	for (size_t i = 0; i < FZ_OUTCOMES; i++)
		put(o, outcome_names[i], call->counts.outcome[i]);
	put(o, "passed_through", call->counts.passed);
	return o;
}

static void json_calls(const struct counts *c, struct json_object *o)
{
	struct json_object *calls = json_object_new_array(), *waits = json_object_new_object();

	for (size_t i = 0; i < c->call_count; i++)
		json_object_array_add(calls, json_call(&c->calls[i]));
	json_object_object_add(o, "calls", calls);
	for (size_t i = 0; i < FZ_COUNTED_WAITS; i++)
		if (*c->waits[i].name)
			put(waits, c->waits[i].name, c->waits[i].count);
	json_object_object_add(o, "waits", waits);
	json_object_object_add(o, "time_to_run", json_times(&c->to_run));
	json_object_object_add(o, "time_to_completion", json_times(&c->to_complete));
}

void counts_print_json(const struct counts *c)
{
	struct json_object *o = json_object_new_object(), *reasons = json_object_new_object();

	put(o, "pid", c->head.pid);
	json_object_object_add(o, "program", json_object_new_string(c->head.program));
	json_object_object_add(o, "backend", json_object_new_string(c->head.backend));
	put(o, "since", c->head.begin);
	put(o, "processors", c->head.processors);
	put(o, "fibers", c->fibers);
	if (c->resident)
		put(o, "resident_bytes", c->resident);
	for (size_t i = 0; i < FZ_PROCESSOR_COUNTERS; i++)
		put(o, processor_names[i], c->sums[i]);
	for (size_t i = 0; i < FZ_TOTALS; i++)
		put(o, totals[i].name, c->head.total[i]);
	for (size_t i = 0; i < FZ_COUNTED_REASONS; i++)
		if (c->head.wired[i].state == 2)
			put(reasons, c->head.wired[i].why, c->head.wired[i].count);
	json_object_object_add(o, "wired", reasons);
	if (c->has_calls)
		json_calls(c, o);
	puts(json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN));
	json_object_put(o);
}

/* ---- Prometheus --------------------------------------------------------------------- */

static void head(const char *name, const char *kind, const char *help)
{
	printf("# HELP fiberize_%s %s\n# TYPE fiberize_%s %s\n", name, help, name, kind);
}

/* Print the value of a label, in quotes. */
static void put_quoted(const char *text)
{
	putchar('"');
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			putchar('\\');
		putchar(*text);
	}
	putchar('"');
}

static void put_call(const struct call_counts *call, const char *outcome, uint64_t n)
{
	if (!n)
		return;
	fputs("fiberize_calls_total{function=", stdout);
	put_quoted(call->name);
	fputs(",rung=", stdout);
	put_quoted(call->rung);
	printf(",outcome=\"%s\"} %lu\n", outcome, (unsigned long)n);
}

static void put_times(const char *name, const char *help, const struct fz_times *t)
{
	uint64_t n = 0;

	head(name, "histogram", help);
	for (size_t i = 0; i < FZ_TIME_BUCKETS; i++) {
		n += t->bucket[i];
		printf("fiberize_%s_bucket{le=\"%.10g\"} %lu\n", name,
		       (double)((uint64_t)2 << i) / 1e9, (unsigned long)n);
	}
	printf("fiberize_%s_bucket{le=\"+Inf\"} %lu\n", name, (unsigned long)n);
	printf("fiberize_%s_sum %.10g\n", name, (double)t->sum / 1e9);
	printf("fiberize_%s_count %lu\n", name, (unsigned long)n);
}

static void put_calls(const struct counts *c)
{
	head("calls_total", "counter", "calls of functions of libc, by what became of them first");
	for (size_t i = 0; i < c->call_count; i++) {
		const struct call_counts *call = &c->calls[i];

		put_call(call, "at_once", call->at_once);
		put_call(call, "passed_through", call->counts.passed);
		for (size_t n = 0; n < FZ_OUTCOMES; n++)
			put_call(call, outcome_names[n], call->counts.outcome[n]);
	}
	head("waits_total", "counter", "fibers that parked, by what they waited for");
	for (size_t i = 0; i < FZ_COUNTED_WAITS; i++) {
		if (!*c->waits[i].name)
			continue;
		fputs("fiberize_waits_total{kind=", stdout);
		put_quoted(c->waits[i].name);
		printf("} %lu\n", (unsigned long)c->waits[i].count);
	}
	put_times("time_to_run_seconds", "from runnable to running, of one wake-up in 61", &c->to_run);
	put_times("time_to_completion_seconds",
		  "from the request to its completion, of one wake-up in 61", &c->to_complete);
}

static void put_processors(const struct counts *c, size_t which)
{
	char name[64];

	snprintf(name, sizeof(name), "%s_total", processor_names[which]);
	head(name, "counter", processor_helps[which]);
	for (uint32_t p = 0; p < c->head.processors && p < FZ_PROCESSORS_MOST; p++)
		printf("fiberize_%s{processor=\"%u\"} %lu\n", name, p,
		       (unsigned long)c->head.processor[p].count[which]);
	printf("fiberize_%s{processor=\"none\"} %lu\n", name,
	       (unsigned long)c->head.processor[FZ_PROCESSORS_MOST].count[which]);
}

void counts_print_prometheus(const struct counts *c)
{
	char name[64];

	head("process_info", "gauge", "the process that is counted");
	printf("fiberize_process_info{pid=\"%u\",program=", c->head.pid);
	put_quoted(c->head.program);
	fputs(",backend=", stdout);
	put_quoted(c->head.backend);
	if (*c->version) {
		fputs(",version=", stdout);
		put_quoted(c->version);
	}
	fputs("} 1\n", stdout);
	head("processors", "gauge", "how many fibers can run at once");
	printf("fiberize_processors %u\n", c->head.processors);
	head("fibers", "gauge", "fibers alive");
	printf("fiberize_fibers %lu\n", (unsigned long)c->fibers);
	if (c->resident) {
		head("resident_bytes", "gauge", "memory of the process that is resident");
		printf("fiberize_resident_bytes %lu\n", (unsigned long)c->resident);
	}
	for (size_t i = 0; i < FZ_PROCESSOR_COUNTERS; i++)
		put_processors(c, i);
	for (size_t i = 0; i < FZ_TOTALS; i++) {
		snprintf(name, sizeof(name), "%s%s", totals[i].name,
			 totals[i].kind == COUNTER ? "_total" : "");
		head(name, totals[i].kind == COUNTER ? "counter" : "gauge", totals[i].help);
		printf("fiberize_%s %lu\n", name, (unsigned long)c->head.total[i]);
	}
	head("wired_reasons_total", "counter", "fibers that became kernel threads, by the reason");
	for (size_t i = 0; i < FZ_COUNTED_REASONS; i++) {
		if (c->head.wired[i].state != 2)
			continue;
		fputs("fiberize_wired_reasons_total{reason=", stdout);
		put_quoted(c->head.wired[i].why);
		printf("} %lu\n", (unsigned long)c->head.wired[i].count);
	}
	if (c->has_calls)
		put_calls(c);
}
