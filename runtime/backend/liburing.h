/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_BACKEND_LIBURING_H
#define FZ_RUNTIME_BACKEND_LIBURING_H

/*
 * runtime/backend/liburing.h - declares liburing's functions by the names that they have inside the
 * library.  The Makefile renames them, because preload/ defines the names that programs call.
 */

#include <liburing.h>

#define FZ_LIBURING(name) extern __typeof__(name) name __asm__("fz_" #name)

FZ_LIBURING(io_uring_queue_exit);
FZ_LIBURING(io_uring_queue_init_params);
FZ_LIBURING(io_uring_register_probe);
FZ_LIBURING(io_uring_ring_dontfork);
FZ_LIBURING(io_uring_submit);

#endif
