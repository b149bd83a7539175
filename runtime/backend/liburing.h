/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_BACKEND_LIBURING_H
#define FZ_RUNTIME_BACKEND_LIBURING_H

/*
 * runtime/backend/liburing.h - liburing as it is linked into the library: its functions have other
 * names there (Makefile), since preload/ takes over the names that the program calls.
 */

#define io_uring_queue_exit fz_io_uring_queue_exit
#define io_uring_queue_init_params fz_io_uring_queue_init_params
#define io_uring_register_probe fz_io_uring_register_probe
#define io_uring_ring_dontfork fz_io_uring_ring_dontfork
#define io_uring_submit fz_io_uring_submit

#include <liburing.h>

#endif
