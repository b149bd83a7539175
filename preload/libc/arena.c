/* SPDX-License-Identifier: MIT */
#include "preload/libc/arena.h"

#include <sys/mman.h>

#include "preload/gate.h"
#include "runtime/base/host.h"
#include "runtime/fiber/fiber.h"

void *(*fz_arena_real_mmap)(void *, size_t, int, int, int, off_t) = mmap;

void *fz_arena_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
	/*
	 * Of the memory that libc maps for a helper thread, only stacks and arenas have no access at
	 * first: refuse an arena. An allocator of the program's may map in this way what it needs.
	 */
	if (protection == PROT_NONE && !(flags & MAP_STACK) &&
	    FZ_UNLIKELY(fz_self()->kind == FZ_KIND_HELPER) && !fz_host.has_own_allocator)
		return (void *)fz_leave(-ENOMEM);
	return fz_arena_real_mmap(at, size, protection, flags, fd, offset);
}
