/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_PROC_H
#define FZ_PRELOAD_PROC_H

/* preload/proc.h - what only /proc tells. Any thread; no cancellation point. */

#include <stddef.h>

/*
 * Read a small file into `text` as a string, at most size - 1 bytes; the string is empty if the file
 * cannot be read. Returns what follows the first `label` in the string, or NULL.
 */
char *fz_proc_read(const char *path, const char *label, char *text, size_t size);

/* Read what a symbolic link points to into `text`, at most size - 1 bytes; empty if that fails. */
void fz_proc_link(const char *path, char *text, size_t size);

#endif
