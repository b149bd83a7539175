/* SPDX-License-Identifier: MIT */
#ifndef CHECK_SWITCH_COST_H
#define CHECK_SWITCH_COST_H

/*
 * scripts/check/switch_cost.h - what the system call costs that each switch between
 * fibers makes on a CPU whose thread pointer user space cannot write.
 */

/* In nanoseconds; 0 where a switch makes none.  FIBERIZE_WITHOUT is heeded. */
unsigned switch_call_ns(void);

/* From here on more than parking in the kernel would be saved may be lost again. */
enum { SWITCH_DEAR_NS = 1000 };

#endif
