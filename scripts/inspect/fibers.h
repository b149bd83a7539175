/* SPDX-License-Identifier: MIT */
#ifndef INSPECT_FIBERS_H
#define INSPECT_FIBERS_H

/*
 * scripts/inspect/fibers.h - reads the threads of a process: fibers, wired threads, native threads,
 * and kernel threads of the library.
 *
 * The process goes on while it is read.  Each record is read twice, and taken when its wait and
 * context have not changed; if they change each time, the last reading is taken.  A thread that is
 * alive during the whole reading is always found.
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
	STATE_LIBRARY,		/* a kernel thread of the library; only in fibers.library */
	STATE_COUNT
};

struct fiber {
	uint64_t address;		/* of its record in the process; 0: none or unknown */
	uint64_t wait;			/* fz_fiber.wait */
	int tid;			/* what gettid() returns in it */
	int kernel_tid;			/* tid of its kernel thread in our PID namespace; 0: none now */
	int processor;			/* the number of its processor; -1: none */
	enum state state;
	bool is_main;
	bool waits;			/* waits in the library; may be true in other states than STATE_WAITS */
	char name[16];
	unsigned waits_for;		/* enum fz_waits_for, if waits is true */
	uint64_t object;		/* address in the process of what it waits for */
	uint64_t signals;		/* if it waits for signals: bit n - 1 is signal n */
	double waits_since;		/* seconds ago; below 0: unknown, as in a core file */
	double waits_at_least;		/* seconds, if waits_since is unknown; below 0: unknown, too (asleep.h) */
	bool has_deadline;		/* its wait has one */
	double deadline;		/* if has_deadline: seconds from now; below 0: it is over; 0 in a core file */
	uint64_t cpu_ns;
	uint64_t switches;		/* how often it has waited; of a kernel thread: context switches */
	uint64_t sp;			/* of its saved context; 0 on a kernel thread */
	const char *in_kernel;		/* kernel function in which it sleeps, if waits is false; or "" */
	const char *why;		/* why it has a kernel thread, or what the thread is for; or NULL */
};

/* For how many seconds it waits: what is known for certain; below 0: nothing. */
static inline double fiber_waits_certainly(const struct fiber *f)
{
	return f->waits_since >= 0 ? f->waits_since : f->waits_at_least;
}

struct fibers {
	struct fiber *list;		/* sorted by tid */
	size_t count;
	size_t room;
	struct fiber *library;		/* the library's kernel threads; filled by natives_add() */
	size_t library_count;
	struct tasks tasks;
	uint64_t alive;			/* threads, native ones too */
	uint64_t processors, open;	/* all processors, and those that are open */
	size_t wired;			/* how many of the list are in STATE_WIRED */
	bool has_natives;		/* natives_add() was called */
	bool hex;			/* ids of threads are told in hexadecimal */
	bool is_cut;			/* threads may be missing */
};

/*
 * fibers_read() reads all threads; it ends the tool with a message if the process is gone. With once,
 * each record is read only once, which is enough to count threads.  fibers_try() is fibers_read(),
 * but returns the text of target_end() instead of ending the tool.  fibers_open() calls target_open()
 * and fibers_read(); it returns false, after a message, if the library is dormant.
 */
bool fibers_open(struct target *t, const char *name, bool is_core, struct fibers *all);
bool fibers_dormant(const struct target *t);
void fibers_read(const struct target *t, struct fibers *all, bool once);
const char *fibers_try(const struct target *t, struct fibers *all, bool once);
void fibers_free(struct fibers *all);

/*
 * fiber_is_same() tells whether a thread of a record still has the wait and the context that were read: then it has not
 * run since, except that a queued thread may have yielded.  fiber_again() reads the thread's record once more;
 * false if the thread has ended.
 */
bool fiber_is_same(const struct target *t, const struct fiber *f);
bool fiber_again(const struct target *t, const struct fibers *all, struct fiber *f);

/* The kernel function in which a kernel thread sleeps; "" if it does not sleep, or the kernel does not tell. */
const char *kernel_function(int pid, int kernel_tid);

/* Add the native threads, and the library's own kernel threads (natives.c). */
void natives_add(const struct target *t, struct fibers *all);

/* The tid, in our PID namespace, of the library's monitor; 0: unknown. */
int monitor_of(const struct target *t, const struct tasks *tasks);

/* fibers_add() appends a thread. fibers_sort() sorts the list by tid and removes duplicates. */
void fibers_add(struct fibers *all, const struct fiber *f);
void fibers_sort(struct fibers *all);

/* Copy into f what its record says about its wait (waits.c). */
void fibers_take_wait(const struct target *t, const void *record, struct fiber *f);

struct fiber *fibers_by_tid(const struct fibers *all, int tid);

#endif
