/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_BACKEND_LIBURING_H
#define FZ_RUNTIME_BACKEND_LIBURING_H

/*
 * runtime/backend/liburing.h - liburing as it is linked into the library: its functions have other
 * names there (Makefile), since preload/ takes over the names that the program calls.
 */

#include <liburing.h>

#define FZ_LIBURING(name) extern __typeof__(name) name __asm__("fz_" #name)

FZ_LIBURING(io_uring_queue_exit);
FZ_LIBURING(io_uring_queue_init_params);
FZ_LIBURING(io_uring_register_probe);
FZ_LIBURING(io_uring_ring_dontfork);
FZ_LIBURING(io_uring_submit);

#endif
