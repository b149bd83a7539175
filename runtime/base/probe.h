/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_BASE_PROBE_H
#define FZ_RUNTIME_BASE_PROBE_H

/*
 * runtime/base/probe.h - USDT probes, which bpftrace, perf and gdb see: one nop each, and a note in
 * the ELF file.  libfiberize(7), PROBES, lists them with their arguments.
 *
 *	FZ_PROBE4(park, tid, what, object, deadline);
 *
 * An argument must be a value that the code has anyway, and must cost no call and no branch.
 */

/* "nor": an argument is a constant, or stays in the register or memory where it is. */
#include <sys/sdt.h>

#define FZ_PROBE2(name, a, b) DTRACE_PROBE2(fiberize, name, a, b)
#define FZ_PROBE3(name, a, b, c) DTRACE_PROBE3(fiberize, name, a, b, c)
#define FZ_PROBE4(name, a, b, c, d) DTRACE_PROBE4(fiberize, name, a, b, c, d)

#endif
