/* SPDX-License-Identifier: MIT */
#include "asleep.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "scripts/process/say.h"

struct sleeper {
	struct fiber *thread;
	int cpu;			/* on which it last ran */
	double ran;			/* when it last ran, by the scheduler's clock of that CPU, in seconds */
	double read;			/* when this was read, by CLOCK_MONOTONIC_RAW */
};

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* When a kernel thread last ran, by the scheduler's clock of its CPU, in seconds; 0: the kernel does not tell. */
static double last_ran(int pid, int tid)
{
	char path[64], line[128];
	double ms = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/sched", pid, tid);
	file = fopen(path, "re");
	if (!file)
		return 0;
	while (fgets(line, sizeof(line), file) && sscanf(line, "se.exec_start : %lf", &ms) != 1)
		;
	fclose(file);
	return ms / 1000;
}

/* The CPU on which a kernel thread runs, or last ran; -1: not known. */
static int cpu_of(int pid, int tid)
{
	enum { BEFORE = 36 };		/* how many fields are between the name and the CPU */
	char line[1024];
	const char *at;

	task_line(pid, tid, "stat", line, sizeof(line));
	at = strrchr(line, ')');
	for (int i = 0; at && i <= BEFORE; i++)
		at = strchr(at + 1, ' ');
	return at ? atoi(at) : -1;
}

static void add(struct sleepers *s, int pid, struct fiber *f)
{
	struct sleeper *one = &s->list[s->count];

	if (!f->kernel_tid || f->waits_since >= 0 || !(f->waits || *f->in_kernel))
		return;
	*one = (struct sleeper){ f, cpu_of(pid, f->kernel_tid), last_ran(pid, f->kernel_tid), seconds() };
	/* If it has run on another CPU meanwhile, it does not sleep. */
	s->count += one->cpu >= 0 && one->cpu < CPU_SETSIZE && one->ran > 0 && cpu_of(pid, f->kernel_tid) == one->cpu;
}

void sleepers_read(const struct target *t, struct fibers *all, struct sleepers *ret)
{
	*ret = (struct sleepers){ calloc(all->tasks.count + 1, sizeof(*ret->list)), 0 };
	if (!ret->list)
		die(EXIT_OTHER, "no memory for %zu threads", all->tasks.count);
	if (target_is_core(t))
		return;
	for (size_t i = 0; i < all->count && ret->count < all->tasks.count; i++)
		add(ret, t->source.pid, &all->list[i]);
}

/* ---- the clocks of the schedulers ------------------------------------------------------ */

/*
 * The clocks, read by a thread that goes from CPU to CPU.  It is left behind if that takes too long: a CPU may have a
 * thread of a real-time policy that lets no other run.
 */
static struct {
	bool wanted[CPU_SETSIZE];
	double clock[CPU_SETSIZE];	/* in seconds; 0: not known */
	double read[CPU_SETSIZE];	/* when the clock was read, by CLOCK_MONOTONIC_RAW */
	_Atomic int done;		/* the clocks of the CPUs below this one have been read */
} clocks;

/* The time by the clock of this CPU; 0: this thread may not run there, or the kernel does not tell. */
static double clock_of(int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (sched_setaffinity(0, sizeof(one), &one) != 0)
		return 0;
	/* The scheduler notes the time when it looks at this thread. */
	sched_yield();
	return last_ran(getpid(), gettid());
}

static void *read_clocks(void *arg)
{
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (clocks.wanted[cpu]) {
			clocks.clock[cpu] = clock_of(cpu);
			clocks.read[cpu] = seconds();
		}
		/* release: pairs with the acquire in sleepers_tell(). */
		atomic_store_explicit(&clocks.done, cpu + 1, memory_order_release);
	}
	return arg;
}

void sleepers_tell(const struct sleepers *s)
{
	enum { MOST_MS = 200 };
	struct timespec until;
	pthread_t reader;
	int done;

	for (size_t i = 0; i < s->count; i++)
		clocks.wanted[s->list[i].cpu] = true;
	if (!s->count || pthread_create(&reader, NULL, read_clocks, NULL) != 0)
		return;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += MOST_MS * 1000000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_clockjoin_np(reader, NULL, CLOCK_MONOTONIC, &until);
	/* acquire: pairs with the release in read_clocks(). */
	done = atomic_load_explicit(&clocks.done, memory_order_acquire);
	for (size_t i = 0; i < s->count; i++) {
		const struct sleeper *one = &s->list[i];
		const int cpu = one->cpu;

		if (cpu >= done || !clocks.clock[cpu])
			continue;
		/* The clock of a scheduler is never faster than CLOCK_MONOTONIC_RAW: it leaves out interrupts. */
		one->thread->waits_at_least =
			fmax(0, clocks.clock[cpu] - one->ran - (clocks.read[cpu] - one->read));
	}
}

void sleepers_free(struct sleepers *s)
{
	free(s->list);
	*s = (struct sleepers){ NULL, 0 };
}
