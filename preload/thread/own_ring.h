/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_THREAD_OWN_RING_H
#define FZ_PRELOAD_THREAD_OWN_RING_H

/*
 * preload/thread/own_ring.h - the io_urings that the program makes for itself.
 *
 * fz_wire_for_ring() is called by a thread that is about to use such a ring: a fiber is wired. Before the
 * runtime runs, the main thread will be wired when it becomes a fiber.
 */
void fz_wire_for_ring(void);

#endif
