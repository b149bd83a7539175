/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_THREAD_OWN_RING_H
#define FZ_PRELOAD_THREAD_OWN_RING_H

/*
 * preload/thread/own_ring.h - the io_urings that the program makes for itself.
 *
 * fz_wire_for_ring() is called by a thread that is about to use such a ring: a fiber is wired. If the
 * runtime does not run yet, the main thread is wired once it becomes a fiber.
 */
void fz_wire_for_ring(void);

#endif
