/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_BACKEND_FILTER_H
#define FZ_RUNTIME_BACKEND_FILTER_H

/*
 * runtime/backend/filter.h - what seccomp filters forbid the program.
 *
 * A filter does not see requests on a ring, and may allow a call that stands in for the program's.  But
 * a call that a filter forbids must fail.  So the library makes such a call as the program has made it.
 */

#include "runtime/base/base.h"

/* Does the process have filters?  Only then fz_filter_forbids() tests the calls. */
extern _Atomic bool fz_filter_exists FZ_HIDDEN;

/*
 * Has the program itself installed a filter, by a call that the library sees?  Such a filter may end the process for a
 * forbidden call.
 */
extern _Atomic bool fz_filter_is_programs FZ_HIDDEN;

/* Before the second thread: ask the kernel whether there are filters. */
void fz_filter_init(void);

/* The program has installed a filter.  Any thread. */
void fz_filter_changed(void);

bool fz_filter_forbids_now(long number);

/*
 * Do filters forbid the system call, whose first argument is a descriptor?  A filter that looks at
 * arguments may answer otherwise for other arguments.
 */
static inline bool fz_filter_forbids(long number)
{
	/* relaxed: a call that races with the filter's installation may come before it. */
	return FZ_UNLIKELY(atomic_load_explicit(&fz_filter_exists, memory_order_relaxed)) &&
	       fz_filter_forbids_now(number);
}

#endif
