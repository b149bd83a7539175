/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_LIBC_ARENA_H
#define FZ_PRELOAD_LIBC_ARENA_H

/*
 * preload/libc/arena.h - the carrier spawner has no arena of malloc's. When it makes a kernel thread,
 * libc allocates some hundred bytes for it, and would first reserve 64 MB for an arena, or share
 * one with the program and wait for its lock. If libc cannot reserve an arena, it maps a page for
 * the allocation.
 */

#include <stddef.h>
#include <sys/types.h>

/* Where calls of mmap from inside libc lead to, and libc's own function. */
void *fz_arena_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset);
extern void *(*fz_arena_real_mmap)(void *, size_t, int, int, int, off_t);

#endif
