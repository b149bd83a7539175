/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_FIBER_REMAINS_H
#define FZ_RUNTIME_FIBER_REMAINS_H

/*
 * runtime/fiber/remains.h - what is left of a stack that was given back: the pages of a fiber's
 * record, and how the stack's slot is mapped again around them.
 */

#include "runtime/base/base.h"

struct fz_remains {
	/* In pages of 4096 bytes. */
	uint64_t slot : 36;		/* address of the slot */
	uint64_t hole : 22;		/* unmapped, from the slot's start on */
	uint64_t pages : 2;		/* mapped, after the hole; the rest of the slot is unmapped */
	uint64_t class : 4;		/* size class, for stack.c */
};

/*
 * Map the slot again, without access to its lowest `closed` bytes.  Returns NULL with *ret_err 0 if
 * something else is mapped there; then the remains are of no use any more.  If it returns NULL with
 * an error in *ret_err, the remains are as they were.  Any thread in the runtime.
 */
char *fz_remains_mend(struct fz_remains remains, size_t slot_size, size_t closed, int *ret_err);

#endif
