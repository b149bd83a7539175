/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_LIBC_LOADER_H
#define FZ_PRELOAD_LIBC_LOADER_H

/*
 * preload/libc/loader.h - what the dynamic loader knows, asked without its locks.
 */

#include <link.h>
#include <stdbool.h>
#include <stddef.h>

/* Once, at start-up. */
void fz_loader_init(void);

/* The module with this address; NULL if there is none, or before glibc 2.35. */
struct link_map *fz_loader_module(const void *address);

/*
 * The calling thread's variables of a module that has them at a fixed distance from
 * the thread pointer, or NULL if it has none there.
 */
void *fz_loader_static_tls(const struct link_map *module);

#endif
