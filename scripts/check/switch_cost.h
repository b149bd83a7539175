/* SPDX-License-Identifier: MIT */
#ifndef CHECK_SWITCH_COST_H
#define CHECK_SWITCH_COST_H

/*
 * scripts/check/switch_cost.h - measures the system call that each switch between fibers makes
 * on a CPU where user space cannot write the thread pointer.
 */

/* The cost in nanoseconds; 0 if a switch makes no system call. Obeys FIBERIZE_WITHOUT. */
unsigned switch_call_ns(void);

/*
 * From this cost on, in ns, switches may lose more time than fibers save by parking outside the
 * kernel.
 */
enum { SWITCH_DEAR_NS = 1000 };

#endif
