/* SPDX-License-Identifier: MIT */
#ifndef INSPECT_BT_H
#define INSPECT_BT_H

/* scripts/inspect/bt.h - prints the backtrace of one thread, for fiberize top (bt.c). */

#include <stdio.h>

#include "fibers.h"

/* Print a backtrace as "fiberize bt PID TID" does.  Returns NULL, or in words why that is impossible. */
const char *bt_thread(const struct target *t, int tid, FILE *out);

#endif
