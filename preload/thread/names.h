/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_THREAD_NAMES_H
#define FZ_PRELOAD_THREAD_NAMES_H

/* preload/thread/names.h - the name of a fiber, wired or not. */

#include "runtime/fiber/fiber.h"

enum { FZ_NAME_SIZE = 16 };	/* the kernel's TASK_COMM_LEN */

/* Set or get the name. A name is cut to 15 characters. Any thread, outside the runtime. */
void fz_name_set(struct fz_fiber *fiber, const char *name);
void fz_name_get(struct fz_fiber *fiber, char ret_name[FZ_NAME_SIZE]);

/* The function fz_host.name_kernel_thread (runtime/base/host.h). */
void fz_host_name_kernel_thread(const char *name);

#endif
