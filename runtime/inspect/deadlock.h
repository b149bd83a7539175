/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_INSPECT_DEADLOCK_H
#define FZ_RUNTIME_INSPECT_DEADLOCK_H

/*
 * runtime/inspect/deadlock.h - report a deadlock by a message: threads of the process wait for each
 * other (FIBERIZE_DEADLOCK=report).
 *
 * If calls were made since its last look, the monitor looks again: after 100 ms if no processor is in
 * use, else after 10 s.  The looks take at most 1 % of the time.  The monitor reads records and locks
 * by process_vm_readv, because the program may unmap its locks meanwhile.
 */

/* Let the monitor look.  At start-up. */
void fz_deadlock_report(void);

#endif
