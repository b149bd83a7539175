/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_INSPECT_DORMANT_H
#define FZ_RUNTIME_INSPECT_DORMANT_H

/*
 * runtime/inspect/dormant.h - why no thread of this process will ever be a fiber; tools outside show it.
 *
 * Empty: there are fibers, or there will be some once the program makes a thread. Written by the only thread of
 * the process. It is not const, because a core file contains only data that the process may write.
 */

extern char fz_dormant_why[256];

#endif
