/* SPDX-License-Identifier: MIT */
#ifndef INSPECT_FIBERS_H
#define INSPECT_FIBERS_H

/*
 * scripts/inspect/fibers.h - the threads of a process as its library sees them: fibers, and wired
 * threads, which were fibers.
 *
 * The process goes on while it is read.  Each record is read twice, and taken when its wait and
 * context are the same both times; a thread that changes all the time is taken as it was last.
 */

#include "target.h"

enum state {
	STATE_RUNS,		/* on a kernel thread */
	STATE_CALLS,		/* on a kernel thread, in a call that may wait */
	STATE_QUEUED,		/* runnable, waits for a processor */
	STATE_WAITS,		/* parked */
	STATE_WIRED,		/* has a kernel thread of its own */
	STATE_COUNT
};

struct fiber {
	uint64_t address;		/* of its record */
	int tid;			/* what gettid() returns in it */
	int kernel_tid;			/* of its kernel thread; 0: none now */
	enum state state;
	bool is_main;
	char name[16];
	unsigned waits_for;		/* a value of for_*; in STATE_WAITS */
	uint64_t object;		/* in the process; of what it waits for */
	uint64_t signals;		/* for_signal: bit n - 1 is signal n */
	double waits_since;		/* seconds ago; below 0: unknown, as in a core file */
	double deadline;		/* seconds from now, 0 in a core file; below 0: none */
	uint64_t cpu_ns;
	uint64_t sp;			/* of its saved context; 0 on a kernel thread */
};

struct fibers {
	struct fiber *list;
	size_t count;
	uint64_t alive;			/* threads, native ones too */
	uint64_t processors;
};

/*
 * target_open(), and read all threads, sorted by tid.  Ends the tool if the process is gone.  Returns
 * false, with a message, if the library is dormant there.
 */
bool fibers_open(struct target *t, const char *name, bool is_core, struct fibers *all);
void fibers_free(struct fibers *all);

struct fiber *fibers_by_tid(const struct fibers *all, int tid);

#endif
