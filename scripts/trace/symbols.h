/* SPDX-License-Identifier: MIT */
#ifndef TRACE_SYMBOLS_H
#define TRACE_SYMBOLS_H

/*
 * scripts/trace/symbols.h - names of addresses in the code of a process, by libdwfl.  Addresses are
 * looked up once; what has been looked up stays known when the process is gone.
 */

#include <stdbool.h>
#include <stdint.h>

struct symbols;

/* Read what is mapped into the process now, and again when an address is not in it. */
struct symbols *symbols_open(int pid);
void symbols_close(struct symbols *s);

struct symbol {
	uint64_t address;		/* that a call returns to */
	char function[64];		/* cut to size; "?" if not known */
	bool is_global;			/* the function has a name for other objects */
	char place[160];		/* "function at file.c:12", "function in libx.so", "0x..." */
};

/* Valid until symbols_close(). */
const struct symbol *symbols_find(struct symbols *s, uint64_t address);

#endif
