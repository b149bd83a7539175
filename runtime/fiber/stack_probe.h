/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_FIBER_STACK_PROBE_H
#define FZ_RUNTIME_FIBER_STACK_PROBE_H

/* runtime/fiber/stack_probe.h - has the calling thread enough stack left for the runtime? */

#include "runtime/fiber/fiber.h"

/*
 * Bytes.  FZ_STACK_ROOM: more than the runtime uses of a fiber's stack (measured: 2.9 KB).  FZ_STACK_ROOM_OF_CALLER: for a
 * function that keeps handlers away while it calls functions that enter the runtime.
 */
enum { FZ_STACK_ROOM = 3072, FZ_STACK_ROOM_OF_CALLER = FZ_STACK_ROOM + 2048 };

/*
 * If the thread has so little stack left that it would overflow in the middle of the runtime, fault
 * here: outside the runtime a handler of the program may run, and leave by siglongjmp.  If the
 * program runs on another stack than the thread's, the library knows nothing of its size.
 */
static inline void fz_stack_probe(const struct fz_fiber *self, size_t room)
{
	enum { LARGE_STACK = 65536 };	/* bytes: stacks of this size can spare the room */
	const char *here = __builtin_frame_address(0), *low = self->mem.stack;

	if (FZ_UNLIKELY((uintptr_t)here - (uintptr_t)low < room) && self->mem.guard_size &&
	    self->mem.stack_size >= LARGE_STACK)
		/* Touch the guard's last byte: the overflow faults here, in the program's code. */
		__asm__ volatile("" : : "r"(low[-1]));
}

#endif
