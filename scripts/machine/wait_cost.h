/* SPDX-License-Identifier: MIT */
#ifndef MACHINE_WAIT_COST_H
#define MACHINE_WAIT_COST_H

/*
 * scripts/machine/wait_cost.h - what the kernel does for a thread that waits, measured on this machine.
 */

/*
 * CPU time in ns, by which reading a byte that somebody else sends later costs more than reading one that
 * is there: to leave the processor, to be woken, to come back with cold caches.  0: could not be measured,
 * for example on a machine that is too busy.  Takes some 50 ms, and half a second at most.
 */
double wait_cost_ns(void);

#endif
