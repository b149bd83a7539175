/* SPDX-License-Identifier: MIT */
#ifndef INSPECT_UNWIND_H
#define INSPECT_UNWIND_H

/*
 * scripts/inspect/unwind.h - the frames of a stack, by libdwfl, which gets the registers from a saved
 * context or from a kernel thread.
 */

#include "scripts/process/target.h"

enum { FRAMES_MOST = 256 };

struct stack {
	uint64_t pc[FRAMES_MOST];	/* of a caller: the address before it is the call */
	bool is_call[FRAMES_MOST];
	int depth;
};

struct unwinder {
	const struct target *target;
	Dwfl *dwfl;
	struct stack stack;		/* the frames that were found */
	struct registers registers;	/* that the first frame begins with */
	bool is_call;			/* the first frame, too, is one that a call returns to */
	uint64_t copied_from;		/* memory at the stack pointer, read at once */
	size_t copied;
	char copy[1 << 15];
};

/*
 * unwinder_open() ends the tool if the files of the process cannot be read; unwinder_try() returns
 * the reason in words, or NULL.
 */
void unwinder_open(struct unwinder *u, const struct target *t);
const char *unwinder_try(struct unwinder *u, const struct target *t);
void unwinder_close(struct unwinder *u);

/* Unwind from the context saved at sp. */
void unwind_context(struct unwinder *u, uint64_t sp);

/*
 * Stop a kernel thread for a moment to get its registers and the stack near them; false: it does not
 * stop.  unwind_stopped() then unwinds.
 */
bool unwind_stop(struct unwinder *u, int kernel_tid);
void unwind_stopped(struct unwinder *u);

#endif
