/* SPDX-License-Identifier: MIT */
#ifndef TRACE_SYMBOLS_H
#define TRACE_SYMBOLS_H

/*
 * scripts/trace/symbols.h - finds names of addresses in the code of a process, by libdwfl.  Each address
 * is looked up once, and its name stays known when the process is gone.
 */

#include <stdbool.h>
#include <stdint.h>

struct source;
struct symbols;

/*
 * Read the mappings of the process. They are read again when an address is in none of them.  The source stays in use
 * until symbols_close(), which says on standard error of which objects the file could not be had.
 */
struct symbols *symbols_open(const struct source *source);
void symbols_close(struct symbols *s);

struct symbol {
	uint64_t address;		/* the return address of a call */
	char function[64];		/* cut to size; "?" if not known */
	bool is_global;			/* the function's symbol is not local */
	char place[160];		/* "function at file.c:12", "function in libx.so", "0x..." */
};

/* The symbol of a return address. Valid until symbols_close(). */
const struct symbol *symbols_find(struct symbols *s, uint64_t address);

#endif
