/* SPDX-License-Identifier: MIT */
#include "tasks.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "say.h"

/* The thread's tid in its own PID namespace; *ret_nested tells whether that is not our namespace. */
static int inner_tid(int pid, int tid, int *ret_nested)
{
	char path[64], line[512];
	int inner = tid;
	FILE *file;

	*ret_nested = 0;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", pid, tid);
	file = fopen(path, "re");
	if (!file)
		return tid;
	while (fgets(line, sizeof(line), file)) {
		char *last;

		if (strncmp(line, "NSpid:", 6) != 0)
			continue;
		last = strrchr(line, '\t');
		if (last)
			inner = (int)strtol(last + 1, NULL, 10);
		*ret_nested = last != strchr(line, '\t');
		break;
	}
	fclose(file);
	return inner;
}

static int by_inner(const void *a, const void *b)
{
	const struct task *x = a, *y = b;

	return x->inner < y->inner ? -1 : x->inner > y->inner;
}

void tasks_sort(struct tasks *tasks)
{
	if (tasks->count)
		qsort(tasks->list, tasks->count, sizeof(*tasks->list), by_inner);
}

void tasks_add(struct tasks *tasks, struct task task)
{
	if (tasks->count == tasks->room) {
		tasks->room = tasks->room ? 2 * tasks->room : 64;
		tasks->list = realloc(tasks->list, tasks->room * sizeof(*tasks->list));
		if (!tasks->list)
			die(EXIT_OTHER, "no memory for %zu kernel threads", tasks->room);
	}
	tasks->list[tasks->count++] = task;
}

void task_each(int pid, bool (*found)(void *arg, int tid), void *arg)
{
	char path[64];
	struct dirent *entry;
	bool more = true;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && more && (entry = readdir(dir)))
		if (*entry->d_name != '.')
			more = found(arg, (int)strtol(entry->d_name, NULL, 10));
	if (dir)
		closedir(dir);
}

/* The number in the line of /proc/PID/task/TID/status that begins with name; 0: there is none. */
static int status_number(int pid, int tid, const char *name)
{
	char path[64], line[512];
	int number = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", pid, tid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		if (strncmp(line, name, strlen(name)) == 0) {
			number = (int)strtol(line + strlen(name), NULL, 10);
			break;
		}
	if (file)
		fclose(file);
	return number;
}

int task_tracer(int pid, int tid)
{
	const int thread = status_number(pid, tid, "TracerPid:");
	/* Any thread of a process may trace. A thread of this process that has just ended may be seen for a moment. */
	const int tracer = thread ? status_number(thread, thread, "Tgid:") : 0;

	return tracer == getpid() ? 0 : tracer;
}

struct reading {
	struct tasks *tasks;
	int pid, nested;
};

static bool add_found(void *arg, int tid)
{
	const struct reading *r = arg;
	int ignored;

	tasks_add(r->tasks, (struct task){ tid, r->nested ? inner_tid(r->pid, tid, &ignored) : tid });
	return true;
}

void tasks_read(struct tasks *tasks, int pid)
{
	struct reading r = { tasks, pid, 0 };

	memset(tasks, 0, sizeof(*tasks));
	inner_tid(pid, pid, &r.nested);
	task_each(pid, add_found, &r);
	tasks_sort(tasks);
}

void tasks_free(struct tasks *tasks)
{
	free(tasks->list);
	memset(tasks, 0, sizeof(*tasks));
}

int tasks_outer(const struct tasks *tasks, int inner)
{
	const struct task key = { .inner = inner };
	const struct task *found = tasks->count ? bsearch(&key, tasks->list, tasks->count,
							  sizeof(key), by_inner) : NULL;

	return found ? found->tid : 0;
}

void task_line(int pid, int tid, const char *name, char *line, size_t size)
{
	char path[64];
	FILE *file;

	*line = '\0';
	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", pid, tid, name);
	file = fopen(path, "re");
	if (!file)
		return;
	if (fgets(line, (int)size, file))
		line[strcspn(line, "\n")] = '\0';
	else
		*line = '\0';
	fclose(file);
}

struct task_usage task_usage(int pid, int tid)
{
	struct task_usage usage = { 0, 0 };
	char line[128];

	task_line(pid, tid, "schedstat", line, sizeof(line));
	if (sscanf(line, "%" SCNu64 " %*s %" SCNu64, &usage.cpu_ns, &usage.switches) != 2)
		return (struct task_usage){ 0, 0 };
	return usage;
}

void task_sleeps_in(int pid, int tid, char *name, size_t size)
{
	task_line(pid, tid, "wchan", name, size);
	/* In ptrace_stop the thread sleeps in no call: ps --stop or a debugger has stopped it. */
	if (strcmp(name, "0") == 0 || strcmp(name, "ptrace_stop") == 0)
		*name = '\0';
}

bool task_has_left(int pid)
{
	char line[512];
	const char *end;

	task_line(pid, pid, "stat", line, sizeof(line));
	/* The name before the state may contain any character, even ')'. */
	end = strrchr(line, ')');
	return end && end[1] && end[2] == 'Z';
}
