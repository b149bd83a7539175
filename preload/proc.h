/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_PROC_H
#define FZ_PRELOAD_PROC_H

/* preload/proc.h - what only /proc tells. Any thread; no cancellation point. */

#include <stddef.h>

/*
 * Read a small file, as far as it fits, as a string; empty if the file cannot be read. Returns
 * what follows `label` in it, or NULL.
 */
char *fz_proc_read(const char *path, const char *label, char *text, size_t size);

/* What a link points to, as far as it fits, as a string; empty if it cannot be read. */
void fz_proc_link(const char *path, char *text, size_t size);

#endif
