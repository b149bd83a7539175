/* SPDX-License-Identifier: MIT */
#ifndef MACHINE_MEASURED_H
#define MACHINE_MEASURED_H

/*
 * scripts/machine/measured.h - the file in which "fiberize bench" keeps what it has measured, for
 * "fiberize status": $XDG_STATE_HOME/fiberize/measured, by default below ~/.local/state.
 *
 * scripts/bench/report/record.awk appends a line for each case of a bench, with tabs between
 *
 *	seconds since 1970, version, connections, rate (both 0: the load's own),
 *	median, low and high of the ratios of CPU time to native, verdict, program, command
 */

#include <stddef.h>

struct measured_case {
	long when, connections, rate;
	char version[32];
	double median, low, high;
	char verdict[16];
};

/*
 * What the file has of a process: its program and its command line, with a tab between; control characters are '?'.
 * NULL if these cannot be read. The caller frees it.
 */
char *measured_key(int pid);

/*
 * Find the cases of the last bench of this program with these arguments, apart from arguments, and ends of
 * arguments after "=" or ":", that are numbers: a bench has other ports than a service. key is that of
 * measured_key(). Returns how many cases there are, and stores the first `room` of them.
 */
size_t measured_find(const char *key, struct measured_case *ret, size_t room);

#endif
