/* SPDX-License-Identifier: MIT */
#ifndef INSPECT_TASKS_H
#define INSPECT_TASKS_H

/*
 * scripts/process/tasks.h - the kernel threads of a process, from /proc.
 *
 * The library has the tids of its process's PID namespace; /proc and ptrace use those of our namespace.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct task {
	int tid;			/* in our PID namespace */
	int inner;			/* in the PID namespace of the process */
};

struct tasks {
	struct task *list;		/* sorted by inner */
	size_t count, room;
};

/* What the kernel says of a kernel thread. */
struct task_usage {
	uint64_t cpu_ns, switches;	/* 0: not known */
};

/* Call found for each kernel thread, until it returns false. */
void task_each(int pid, bool (*found)(void *arg, int tid), void *arg);

/* Read the list of kernel threads; it is empty if there is no such process. */
void tasks_read(struct tasks *tasks, int pid);
void tasks_add(struct tasks *tasks, struct task task);
void tasks_sort(struct tasks *tasks);
void tasks_free(struct tasks *tasks);

/* The tid, in our PID namespace, of the kernel thread whose tid in its process is inner; 0: there is none. */
int tasks_outer(const struct tasks *tasks, int inner);

struct task_usage task_usage(int pid, int tid);

/* The pid, in our PID namespace, of another process that traces the kernel thread; 0: none that is seen here. */
int task_tracer(int pid, int tid);

/* Has the first thread ended before the others (by pthread_exit)?  The process keeps its pid. */
bool task_has_left(int pid);

/* The kernel function in which the thread sleeps; "" if it does not sleep, or the kernel does not tell. */
void task_sleeps_in(int pid, int tid, char *name, size_t size);

/* The first line of /proc/PID/task/TID/FILE, without its newline; empty if it cannot be read. */
void task_line(int pid, int tid, const char *file, char *line, size_t size);

#endif
