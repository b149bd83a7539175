/* SPDX-License-Identifier: MIT */
#ifndef INSPECT_FIBERS_H
#define INSPECT_FIBERS_H

/*
 * scripts/inspect/fibers.h - the threads of a process as its library sees them: fibers, and wired
 * threads, which were fibers; and the kernel threads beside them.
 *
 * The process goes on while it is read.  Each record is read twice, and taken when its wait and
 * context are the same both times; a thread that changes all the time is taken as it was last.  A
 * thread that is alive all the time is there, however many come and go.
 */

#include "scripts/process/target.h"
#include "scripts/process/tasks.h"

enum state {
	STATE_RUNS,		/* on a kernel thread */
	STATE_CALLS,		/* on a kernel thread, in a call that may wait or that waits */
	STATE_QUEUED,		/* runnable, waits for a processor */
	STATE_WAITS,		/* parked */
	STATE_WIRED,		/* has a kernel thread of its own */
	STATE_NATIVE,		/* was never a fiber */
	STATE_LIBRARY,		/* a kernel thread of the library's; in fibers.library alone */
	STATE_COUNT
};

struct fiber {
	uint64_t address;		/* of its record; 0: it has none that is known */
	uint64_t wait;			/* the word of its wait */
	int tid;			/* what gettid() returns in it */
	int kernel_tid;			/* of its kernel thread, as we see it; 0: none now */
	int processor;			/* that it has; -1: none */
	enum state state;
	bool is_main;
	bool waits;			/* in the library; not only in STATE_WAITS */
	char name[16];
	unsigned waits_for;		/* a value of for_*, if it waits */
	uint64_t object;		/* in the process; of what it waits for */
	uint64_t signals;		/* for_signal: bit n - 1 is signal n */
	double waits_since;		/* seconds ago; below 0: unknown, as in a core file */
	double deadline;		/* seconds from now, 0 in a core file; below 0: none */
	uint64_t cpu_ns;
	uint64_t switches;		/* how often it has waited; of a kernel thread: was switched to */
	uint64_t sp;			/* of its saved context; 0 on a kernel thread */
	char in_kernel[24];		/* where in the kernel it sleeps, if not in the library; or "" */
	const char *why;		/* why it has a kernel thread, or what that is for; or NULL */
};

struct fibers {
	struct fiber *list;		/* sorted by tid */
	size_t count;
	size_t room;
	struct fiber *library;		/* its own kernel threads; by natives_add() */
	size_t library_count;
	struct tasks tasks;
	uint64_t alive;			/* threads, native ones too */
	uint64_t processors, open;	/* open: all but those that a CPU limit has closed */
	size_t wired;			/* of the list, in STATE_WIRED */
	bool has_natives;		/* natives_add() was called */
	bool is_cut;			/* threads may be missing */
};

/*
 * fibers_open() is target_open() and fibers_read(); it returns false, with a message, if the
 * library is dormant there.  fibers_read() reads all threads, and ends the tool if the process is
 * gone; once: for counting, each record once.  fibers_try() returns instead what target_end() says.
 */
bool fibers_open(struct target *t, const char *name, bool is_core, struct fibers *all);
bool fibers_dormant(const struct target *t);
void fibers_read(const struct target *t, struct fibers *all, bool once);
const char *fibers_try(const struct target *t, struct fibers *all, bool once);
void fibers_free(struct fibers *all);

/* Add the native threads, and the library's own kernel threads (natives.c). */
void natives_add(const struct target *t, struct fibers *all);

/* The tid here of the library's monitor; 0: unknown. */
int monitor_of(const struct target *t, const struct tasks *tasks);

/* Add a thread; sort the list, so that each thread is in it once. */
void fibers_add(struct fibers *all, const struct fiber *f);
void fibers_sort(struct fibers *all);

/* Take into f what its record says of its wait (waits.c). */
void fibers_take_wait(const struct target *t, const void *record, struct fiber *f);

struct fiber *fibers_by_tid(const struct fibers *all, int tid);

#endif
