/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_THREAD_OWN_RING_H
#define FZ_PRELOAD_THREAD_OWN_RING_H

/*
 * preload/thread/own_ring.h - the caller is about to use an io_uring of the program's: wire it, or,
 * before there are fibers, the main thread once there are.
 */
void fz_wire_for_ring(void);

#endif
