/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_BASE_FAULT_H
#define FZ_RUNTIME_BASE_FAULT_H

/*
 * runtime/base/fault.h - failures of the kernel on demand, for tests (make FAULTS=1).
 *
 *	if (FZ_FAULT(mmap))
 *		return -ENOMEM;
 *
 * FZ_FAULTS in the environment says which points of runtime/base/fault.def fire, and when:
 *
 *	FZ_FAULTS=mmap:3,no_sqe:1/7,thread_carrier:2+
 *
 *	NAME:N		the Nth time that the point is reached, counted from 1
 *	NAME:1/N	every Nth time
 *	NAME:N+		the Nth time and each time after it
 *
 * With FIBERIZE_STATS=1 the process says at exit how often each point was reached and has fired.
 * Without -DFZ_FAULTS a point is the constant false.
 */

#include "runtime/base/base.h"

enum fz_fault {
#define FZ_FAULT_POINT(name, what) FZ_FAULT_##name,
#include "runtime/base/fault.def"
#undef FZ_FAULT_POINT
	FZ_FAULT_COUNT
};

#ifdef FZ_FAULTS
#define FZ_FAULT(name) FZ_UNLIKELY(fz_fault_fires(FZ_FAULT_##name))

bool fz_fault_fires(enum fz_fault fault);

/* The value of FZ_FAULTS, or NULL.  Before the second thread. */
void fz_fault_init(const char *value);
void fz_fault_say(void);
#else
#define FZ_FAULT(name) ((void)FZ_FAULT_##name, false)

static inline void fz_fault_init(const char *value)
{
	(void)value;
}

static inline void fz_fault_say(void)
{
}
#endif

#endif
