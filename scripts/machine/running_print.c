/* SPDX-License-Identifier: MIT */
/*
 * scripts/machine/running_print.c - prints the result of running_look(), as text and as JSON.
 */
#include "running.h"

#include <string.h>

/* ---- text --------------------------------------------------------------- */

static double share(double part, double whole)
{
	return whole > 0 ? 100 * part / whole : 0;
}

static void put_candidate(const struct candidate *c, FILE *out)
{
	const struct activity *a = &c->activity;

	fprintf(out, "%8d ", c->pid);
	put_line(c->name, out);
	fprintf(out, "%*s %7zu %6.1f %7.1f %9.0f ", 15 - (int)strlen(c->name), "", a->threads, 100 * c->gain.cpu, share(a->system, a->cpu), (double)a->waits / a->seconds);
	if (c->advice)
		fprintf(out, "%6.0f %%", 100 * c->gain.at_most);
	else
		fprintf(out, "%8s", "-");
	fprintf(out, "  %s: ", c->verdict);
	put_line(c->reason, out);
	fputc('\n', out);
	if (c->advice) {
		fprintf(out, "%8s ", "");
		put_line(c->advice, out);
		fputc('\n', out);
	}
}

void running_text(const struct running *r, FILE *out)
{
	fprintf(out, "%.1f s; ", r->seconds);
	fprintf(out, r->wait_assumed ?
		"what a wait costs could not be measured, %.0f us of CPU time are assumed\n" :
		"a wait costs %.1f us of CPU time here\n", r->wait_ns / 1e3);
	put_backend(&r->backend, out);
	if (r->count)
		fputs("     PID NAME            THREADS   CPU% KERNEL%   WAITS/s  AT MOST  VERDICT\n", out);
	for (size_t i = 0; i < r->count; i++)
		put_candidate(&r->list[i], out);
	fprintf(out, "%zu more with one thread: nothing to gain", r->single);
	if (r->forbidden)
		fprintf(out, "; %zu with several, which only root may look at", r->forbidden);
	fputc('\n', out);
}

/* ---- JSON --------------------------------------------------------------- */

static void put_candidate_json(const struct candidate *c, FILE *out)
{
	const struct activity *a = &c->activity;

	fprintf(out, "{\"pid\":%d,\"name\":", c->pid);
	put_string(c->name, out);
	fputs(",\"program\":", out);
	put_string(c->program, out);
	fputs(",\"service\":", out);
	put_string(c->service, out);
	fputs(",\"command\":", out);
	put_string(c->command, out);
	fprintf(out, ",\"seconds\":%.6f,\"threads\":%zu,\"threads_in_loops\":%zu,\"threads_cpu_bound\":%zu,\"cpu\":%.4f,"
		"\"system\":%.4f,\"waits\":%.1f,\"preempted\":%.1f", a->seconds, a->threads, a->loops, a->cpu_bound,
		c->gain.cpu, share(a->system, a->cpu) / 100, (double)a->waits / a->seconds,
		(double)a->preempted / a->seconds);
	fprintf(out, ",\"short_threads\":%s,\"at_most\":%.4f,\"bound\":\"%s\",\"verdict\":\"%s\",\"reason\":",
		c->gain.short_threads ? "true" : "false", c->gain.at_most,
		c->gain.by_system ? "system" : "waits", c->verdict);
	put_string(c->reason, out);
	fputs(",\"advice\":", out);
	put_string(c->advice, out);
	fputc('}', out);
}

void running_json(const struct running *r, FILE *out)
{
	fprintf(out, "{\"seconds\":%.3f,\"wait_ns\":%.0f,\"wait_assumed\":%s,\"single\":%zu,\"forbidden\":%zu,",
		r->seconds, r->wait_ns, r->wait_assumed ? "true" : "false", r->single, r->forbidden);
	put_backend_json(&r->backend, out);
	fputs(",\"processes\":[", out);
	for (size_t i = 0; i < r->count; i++) {
		fputs(i ? "," : "", out);
		put_candidate_json(&r->list[i], out);
	}
	fputs("]}\n", out);
}
