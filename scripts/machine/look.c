/* SPDX-License-Identifier: MIT */
#include "look.h"

#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/*
 * The kernel's functions in which a thread sleeps in the calls of an event loop: epoll_wait,
 * io_uring_enter and io_getevents. /proc/PID/task/TID/wchan shows them.
 */
static const char *const loops[] = { "ep_poll", "do_epoll_wait", "io_cqring_wait", "read_events" };

static FILE *open_file(int pid, int tid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", pid, tid, name);
	return fopen(path, "re");
}

/* Read the numbers of context switches. False if the thread has ended. */
static bool read_switches(int pid, struct look_thread *t)
{
	FILE *file = open_file(pid, t->tid, "status");
	char line[256];
	int found = 0;

	while (file && fgets(line, sizeof(line), file)) {
		found += sscanf(line, "voluntary_ctxt_switches: %" SCNu64, &t->waits) == 1;
		found += sscanf(line, "nonvoluntary_ctxt_switches: %" SCNu64, &t->preempted) == 1;
	}
	if (file)
		fclose(file);
	return found == 2;
}

static void see_sleep(int pid, struct look_thread *t)
{
	FILE *file = open_file(pid, t->tid, "wchan");
	char name[32] = "";
	bool is_loop = false;

	if (!file)
		return;
	if (fgets(name, sizeof(name), file) && strcmp(name, "0") != 0) {
		for (size_t i = 0; i < sizeof(loops) / sizeof(*loops); i++)
			is_loop |= strcmp(name, loops[i]) == 0;
		t->loops |= is_loop;
		t->elsewhere |= !is_loop;
	}
	fclose(file);
}

static bool read_thread(int pid, struct look_thread *t)
{
	FILE *file;

	if (!read_switches(pid, t))
		return false;
	file = open_file(pid, t->tid, "schedstat");
	if (!file || fscanf(file, "%" SCNu64, &t->cpu_ns) != 1)
		t->cpu_ns = 0;
	if (file)
		fclose(file);
	see_sleep(pid, t);
	return true;
}

static int by_tid(const void *a, const void *b)
{
	const struct look_thread *x = a, *y = b;

	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

static void read_threads(struct look *l)
{
	struct dirent *entry;
	size_t room = 0;
	char path[32];
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", l->pid);
	tasks = opendir(path);
	while (tasks && (entry = readdir(tasks))) {
		struct look_thread t = { .tid = atoi(entry->d_name) };

		if (!isdigit((unsigned char)*entry->d_name) || !read_thread(l->pid, &t))
			continue;
		if (l->count == room) {
			room = room ? 2 * room : 8;
			l->threads = reallocarray(l->threads, room, sizeof(*l->threads));
			if (!l->threads)
				abort();
		}
		l->threads[l->count++] = t;
	}
	if (tasks)
		closedir(tasks);
	if (l->count)
		qsort(l->threads, l->count, sizeof(*l->threads), by_tid);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

void looks_sample(struct look *looks, size_t count)
{
	for (size_t i = 0; i < count; i++)
		for (size_t n = 0; looks[i].count > 1 && n < looks[i].count; n++)
			see_sleep(looks[i].pid, &looks[i].threads[n]);
}

struct look *looks_take(size_t *ret_count)
{
	size_t count, kept = 0;
	int *pids = processes_list(&count);
	struct look *looks = calloc(count + 1, sizeof(*looks));

	if (!looks)
		abort();
	for (size_t i = 0; i < count; i++) {
		struct look *l = &looks[kept];

		*l = (struct look){ .pid = pids[i], .time = now() };
		if (!process_read(l->pid, &l->state) || l->state.is_kernel ||
		    (l->state.state == 'Z' && l->state.threads <= 1))
			continue;
		read_threads(l);
		kept += process_read(l->pid, &l->after) && l->after.start == l->state.start;
		l->time_after = now();
	}
	free(pids);
	*ret_count = kept;
	return looks;
}

void looks_free(struct look *looks, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(looks[i].threads);
	free(looks);
}

static int by_pid(const void *a, const void *b)
{
	const struct look *x = a, *y = b;

	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

const struct look *looks_find(const struct look *looks, size_t count, const struct look *other)
{
	const struct look *found = bsearch(other, looks, count, sizeof(*looks), by_pid);

	return found && found->state.start == other->state.start ? found : NULL;
}

/*
 * The CPU time of the process counts from the end of the first look to the beginning of the second.
 * Each thread is read during the looks, so the time between its two readings is a little longer.
 */
void activity_between(const struct look *first, const struct look *second, struct activity *a)
{
	const double tick = 1.0 / (double)sysconf(_SC_CLK_TCK);
	const uint64_t system = second->state.system - first->after.system;
	/* A thread is CPU-bound if it uses 1 ms of CPU time or more per wait, and 1 % of a CPU or more. */
	const double long_run = 0.001, least = 0.01;
	double seen = 0, by_ticks;

	*a = (struct activity){ .seconds = second->time - first->time_after, .threads = second->count };
	a->ticks = second->state.user - first->after.user + system;
	by_ticks = (double)a->ticks * tick;
	for (size_t i = 0; i < second->count; i++) {
		const struct look_thread none = { 0 }, *last = &second->threads[i];
		const struct look_thread *found = first->count ?
			bsearch(last, first->threads, first->count, sizeof(none), by_tid) : NULL;
		/* With smaller counters it is another thread, which has got the same tid. */
		const struct look_thread *before = found && found->cpu_ns <= last->cpu_ns &&
						   found->waits <= last->waits ? found : &none;
		const double cpu = (double)(last->cpu_ns - before->cpu_ns) / 1e9;
		const uint64_t waits = last->waits - before->waits;
		const bool is_loop = (last->loops || before->loops) && !last->elsewhere &&
				     !before->elsewhere;

		seen += cpu;
		a->preempted += last->preempted - before->preempted;
		a->cpu_bound += cpu >= least * a->seconds && cpu >= long_run * (double)waits;
		a->loops += is_loop;
		if (!is_loop)
			a->waits += waits;
	}
	/* Ticks are samples, and may miss a process that runs for short moments; then seen is larger. */
	a->cpu = seen > by_ticks ? seen : by_ticks;
	a->system = a->ticks ? a->cpu * (double)system / (double)a->ticks : 0;
	a->unseen_cpu = by_ticks - seen;
}
