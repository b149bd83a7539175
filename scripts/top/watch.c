/* SPDX-License-Identifier: MIT */
#include "watch.h"

#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "scripts/inspect/ps.h"
#include "scripts/process/say.h"

bool watch_open(struct watch *w, const char *pid)
{
	if (pid[strspn(pid, "0123456789")])
		die(EXIT_USAGE, "%s: not a process id, which is a number from 1", pid);
	counts_open(&w->source, pid);
	w->target = &w->source.target;
	if (fibers_dormant(w->target))
		return false;
	return true;
}

double watch_time(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* ---- a picture ---------------------------------------------------------------------- */

static double process_cpu(int pid)
{
	struct timespec ts;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &ts) != 0)
		return 0;
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static double process_memory(int reader)
{
	unsigned long pages = 0;
	char path[64];
	FILE *statm;

	snprintf(path, sizeof(path), "/proc/%d/statm", reader);
	statm = fopen(path, "re");
	if (!statm)
		return 0;
	if (fscanf(statm, "%*s %lu", &pages) != 1)
		pages = 0;
	fclose(statm);
	return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

static void *room(size_t count, size_t size)
{
	void *p = calloc(count + 1, size);

	if (!p)
		die(EXIT_OTHER, "no memory for %zu threads", count);
	return p;
}

static void count_kind(struct picture *p, const char *name, const struct fiber *f)
{
	struct kind *k = p->waits, *end = p->waits + p->wait_count;

	while (k < end && (k->waits_for != f->waits_for || strcmp(k->name, name) != 0))
		k++;
	if (k == p->waits + KINDS_MOST)
		return;
	if (k == end) {
		*k = (struct kind){ name, f->waits_for, 0, -1 };
		p->wait_count++;
	}
	k->threads++;
	if (f->waits_since > k->longest)
		k->longest = f->waits_since;
}

static void count_threads(const struct target *t, struct picture *p)
{
	wait_kinds(t, p->all.list, p->all.count, p->kinds);
	for (size_t i = 0; i < p->all.count; i++) {
		const struct fiber *f = &p->all.list[i];

		p->states[f->state]++;
		if (*p->kinds[i])
			count_kind(p, p->kinds[i], f);
	}
}

/* Fill in the heat of each thread, by comparing two pictures. Both lists are sorted by tid. */
static void heat_up(struct picture *p, const struct picture *before)
{
	const double seconds = p->at - before->at;
	size_t old = 0;

	for (size_t i = 0; i < p->all.count; i++) {
		const struct fiber *f = &p->all.list[i];
		uint64_t cpu = 0, switches = 0;

		while (old < before->all.count && before->all.list[old].tid < f->tid)
			old++;
		if (old < before->all.count && before->all.list[old].tid == f->tid) {
			cpu = before->all.list[old].cpu_ns;
			switches = before->all.list[old].switches;
		}
		if (f->cpu_ns > cpu)
			p->heat[i].cpu = (double)(f->cpu_ns - cpu) / 1e9 / seconds;
		if (f->switches > switches)
			p->heat[i].switches = (double)(f->switches - switches) / seconds;
	}
}

static void forget(struct picture *p)
{
	for (size_t i = 0; p->details && i < p->all.count; i++)
		free(p->details[i]);
	free(p->details);
	free(p->heat);
	free(p->kinds);
	fibers_free(&p->all);
}

static const char *read_process(struct watch *w, struct picture *p)
{
	const struct target *t = w->target;
	const char *end;

	if (!counts_read(&w->source, &p->counts)) {
		end = target_end(t);
		return end ? end : "the process has ended";
	}
	p->at = watch_time();
	p->cpu = process_cpu(t->source.pid);
	p->resident = process_memory(target_reader(t));
	end = fibers_try(t, &p->all, false);
	if (end)
		return end;
	natives_add(t, &p->all);
	p->heat = room(p->all.count, sizeof(*p->heat));
	p->kinds = room(p->all.count, sizeof(*p->kinds));
	p->details = room(p->all.count, sizeof(*p->details));
	count_threads(t, p);
	return target_end(t);
}

bool watch_take(struct watch *w)
{
	struct picture *p = w->now == &w->pictures[0] ? &w->pictures[1] : &w->pictures[0];

	/* The new picture is read into fresh, so that the older one is kept if reading fails. */
	static struct picture fresh;

	memset(&fresh, 0, sizeof(fresh));
	w->end = read_process(w, &fresh);
	if (w->end) {
		forget(&fresh);
		return false;
	}
	processors_look(&w->looking, w->target, &fresh.all.tasks);
	w->processors = w->looking;
	processors_begin(&w->looking);
	forget(p);
	*p = fresh;
	w->before = w->now;
	w->now = p;
	w->seconds = w->before ? p->at - w->before->at : 0;
	if (w->before)
		heat_up(p, w->before);
	return true;
}

const char *watch_detail(const struct watch *w, size_t thread)
{
	struct picture *p = w->now;
	const struct fiber *f = &p->all.list[thread];
	struct wait_facts facts;
	char text[512];

	if (p->details[thread])
		return p->details[thread];
	if (w->end)
		return p->kinds[thread];
	wait_read(w->target, &p->all, f, &facts);
	ps_detail(w->target, &p->all, f, &facts, text, sizeof(text));
	if (target_end(w->target))
		return p->kinds[thread];
	p->details[thread] = strdup(text);
	return p->details[thread] ? p->details[thread] : "";
}

/* ---- waiting ------------------------------------------------------------------------ */

static struct timespec to_timespec(double seconds)
{
	const double whole = floor(seconds);

	return (struct timespec){ (time_t)whole, (long)((seconds - whole) * 1e9) };
}

/*
 * Seconds to the next look, at random from half to one and a half times the pause: looks at regular
 * times may always miss what a program does at regular times.
 */
static double next_look(const struct watch *w)
{
	return processors_pause(&w->processors) * (0.5 + (double)random() / (double)RAND_MAX);
}

enum wait_end watch_wait(struct watch *w, double until, bool looks, int fd, const sigset_t *mask)
{
	for (;;) {
		struct pollfd fds[] = {
			{ .fd = fd, .events = POLLIN },
			{ .fd = w->end ? -1 : target_pidfd(w->target), .events = POLLIN },
		};
		const double now = watch_time();
		double pause = until - now;
		struct timespec time;

		if (pause <= 0)
			return WAIT_TIME;
		if (looks && !w->end)
			pause = fmin(pause, next_look(w));
		time = to_timespec(isfinite(pause) ? pause : 0);
		switch (ppoll(fds, 2, isfinite(pause) ? &time : NULL, mask)) {
		case -1:
			return WAIT_SIGNAL;
		case 0:
			if (looks && !w->end)
				processors_look(&w->looking, w->target, &w->now->all.tasks);
			break;
		default:
			return fds[0].revents ? WAIT_INPUT : WAIT_TIME;
		}
	}
}

/* ---- rates -------------------------------------------------------------------------- */

double watch_rate(const struct watch *w, uint64_t now, uint64_t before)
{
	return w->seconds > 0 && now > before ? (double)(now - before) / w->seconds : 0;
}

double watch_sum_rate(const struct watch *w, enum fz_processor_counter which)
{
	return w->before ? watch_rate(w, w->now->counts.sums[which], w->before->counts.sums[which]) : 0;
}

double watch_total_rate(const struct watch *w, enum fz_total which)
{
	return w->before ? watch_rate(w, w->now->counts.head.total[which],
				      w->before->counts.head.total[which]) : 0;
}

const struct call_counts *watch_call_before(const struct watch *w, const struct call_counts *call)
{
	const struct counts *c = w->before ? &w->before->counts : NULL;
	/* Functions are in the same order in both pictures, and the new one may have more: search backwards. */
	size_t i = (size_t)(call - w->now->counts.calls) + 1;

	while (c && i-- > 0)
		if (i < c->call_count && strcmp(c->calls[i].name, call->name) == 0)
			return &c->calls[i];
	return NULL;
}
