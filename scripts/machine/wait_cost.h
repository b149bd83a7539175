/* SPDX-License-Identifier: MIT */
#ifndef MACHINE_WAIT_COST_H
#define MACHINE_WAIT_COST_H

/*
 * scripts/machine/wait_cost.h - measures what it costs on this machine when a thread waits.
 */

/*
 * Returns how much more CPU time, in ns, it costs to read a byte that arrives later than one that is
 * there already: to leave the CPU, to be woken, and to come back with cold caches.  Returns 0 if this could
 * not be measured, for example on a machine that is too busy.  Takes about 50 ms, at most about 500 ms.
 */
double wait_cost_ns(void);

#endif
