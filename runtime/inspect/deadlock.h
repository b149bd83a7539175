/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_INSPECT_DEADLOCK_H
#define FZ_RUNTIME_INSPECT_DEADLOCK_H

/*
 * runtime/inspect/deadlock.h - the process says by itself that its threads wait for each other
 * (FIBERIZE_DEADLOCK=report).
 *
 * The monitor looks when calls were made since its last look: after 100 ms if no processor is in use,
 * else after 10 s; and it takes at most 1 % of the time for that.  It reads records and locks by
 * process_vm_readv, because locks are the program's, and may be unmapped meanwhile.
 */

/* Let the monitor look.  At start-up. */
void fz_deadlock_report(void);

#endif
