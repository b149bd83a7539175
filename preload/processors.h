/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_PROCESSORS_H
#define FZ_PRELOAD_PROCESSORS_H

/* preload/processors.h - the number of processors at the start. */

#include "runtime/base/base.h"

/*
 * The number of processors to make: more than the CPU limit allows now, since it may be raised, but
 * not one for each CPU of a large machine. *ret_open: how many may run fibers now; 0 if the user chose
 * the number.
 */
uint32_t fz_processors_wanted(uint32_t *ret_open);

#endif
