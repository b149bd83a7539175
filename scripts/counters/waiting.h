/* SPDX-License-Identifier: MIT */
#ifndef COUNTERS_WAITING_H
#define COUNTERS_WAITING_H

/*
 * scripts/counters/waiting.h - what the threads of a process wait for at this moment, for Prometheus.
 */

#include "scripts/process/target.h"

/*
 * On standard output: for each kind of wait that "fiberize ps" knows, how many threads wait and how long
 * the first of them has waited; kinds of requests only where threads wait for them.  Nothing if the process
 * has ended or has made no thread.
 */
void waiting_print_prometheus(const struct target *t);

#endif
