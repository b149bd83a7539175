/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_PROCESSORS_H
#define FZ_PRELOAD_PROCESSORS_H

/* preload/processors.h - the number of processors at the start. */

#include "runtime/base/base.h"

/*
 * How many processors to make. *ret_open: how many of them the CPU limit lets run fibers now; 0: the
 * user has said how many. Some more are made than may run, since the limit may be raised, but not
 * the hundred that a large machine has CPUs.
 */
uint32_t fz_processors_wanted(uint32_t *ret_open);

#endif
