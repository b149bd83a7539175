/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_LIBC_ARENA_H
#define FZ_PRELOAD_LIBC_ARENA_H

/*
 * preload/libc/arena.h - malloc gets no arena for the runtime's helper threads, unless the program has
 * an allocator of its own. libc allocates a few hundred bytes when a helper makes a kernel thread. For
 * these, malloc would reserve an arena of 64 MB, or wait for the lock of an arena that the program uses.
 * Without an arena malloc maps a page.
 */

#include <stddef.h>
#include <sys/types.h>

/* The body for calls of mmap from inside libc (redirect.c), and libc's own function. */
void *fz_arena_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset);
extern void *(*fz_arena_real_mmap)(void *, size_t, int, int, int, off_t);

#endif
