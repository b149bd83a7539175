/* SPDX-License-Identifier: MIT */
#ifndef INSPECT_UNWIND_H
#define INSPECT_UNWIND_H

/*
 * scripts/inspect/unwind.h - finds the frames of a stack by libdwfl. The registers come from a saved
 * context or from a kernel thread.
 */

#include <elfutils/libdwfl.h>

#include "scripts/process/target.h"

enum { FRAMES_MOST = 256 };

struct stack {
	uint64_t pc[FRAMES_MOST];	/* if is_call, a return address: the call is just before it */
	bool is_call[FRAMES_MOST];
	int depth;
};

struct unwinder {
	const struct target *target;
	Dwfl *dwfl;
	struct stack stack;		/* the frames that were found */
	struct registers registers;	/* the registers in the first frame */
	bool is_call;			/* the pc of the first frame is a return address, too */
	uint64_t copied_from;		/* address of the memory in copy, from the stack pointer on */
	size_t copied;
	char copy[1 << 17];
};

/*
 * Open libdwfl for the process.  If the process's files cannot be read, unwinder_open() ends the tool
 * with a message; unwinder_try() returns the reason in words, and NULL on success.
 */
void unwinder_open(struct unwinder *u, const struct target *t);
const char *unwinder_try(struct unwinder *u, const struct target *t);
void unwinder_close(struct unwinder *u);

/*
 * Unwind from the context saved at sp.  If the thread is queued it may run meanwhile, and be queued again at the same
 * place.  Then, with whole, most of the stack is copied first, and unwind_is_same() tells later whether the stack has
 * the same contents still: only then the frames are those of one moment.
 */
void unwind_context(struct unwinder *u, uint64_t sp, bool whole);
bool unwind_is_same(const struct unwinder *u);

/*
 * unwind_stop() stops a kernel thread for a moment and copies its registers and the top of its stack.
 * Returns false if the thread does not stop.  unwind_stopped() then unwinds from the copy.
 */
bool unwind_stop(struct unwinder *u, int kernel_tid);
void unwind_stopped(struct unwinder *u);

#endif
