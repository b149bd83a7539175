/* SPDX-License-Identifier: MIT */
#ifndef ELF_RAW_CALLS_H
#define ELF_RAW_CALLS_H

/*
 * scripts/elf/raw_calls.h - finds raw system calls in an object: instructions that enter the
 * kernel without libc.
 */

#include "object.h"

struct raw_calls {
	unsigned sites;			/* instructions that are system calls, as far as the code shows */
	uint32_t numbers[64];		/* each number once, as many as fit */
	unsigned number_count;
};

void raw_calls_find(const struct object *o, struct raw_calls *ret);

#endif
