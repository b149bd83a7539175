/* SPDX-License-Identifier: MIT */
#ifndef COUNTERS_WAITING_H
#define COUNTERS_WAITING_H

/*
 * scripts/counters/waiting.h - prints for Prometheus what the threads of a process wait for now.
 */

#include "scripts/process/target.h"

/*
 * Print on standard output, for each kind of wait that "fiberize ps" knows, how many threads wait and how
 * long the longest wait has lasted.  Kinds of requests are printed only if threads wait for them.  Prints
 * nothing if the process has ended or has made no thread.
 */
void waiting_print_prometheus(const struct target *t);

#endif
