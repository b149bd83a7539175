/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_REAL_H
#define FZ_PRELOAD_REAL_H

/*
 * preload/real.h - the next definition of each interposed symbol.
 *
 * fz_real.read is libc's read (or that of the next preloaded library).  The
 * field types come from libc's own prototypes through typeof, so a signature
 * that drifts is a compile error, and gdb prints the whole table by name.
 *
 * Written once by fz_real_bind(), before any other thread exists or under the
 * dynamic loader's lock; read-only afterwards, so it needs no ordering.
 */

#include "preload/libc_proto.h"

#include <stdbool.h>

enum fz_symbol {
#define FZ_SYMBOL(name, ...) FZ_SYM_##name,
#include "preload/symbols.def"
	FZ_SYM_COUNT
};

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
struct fz_real {
#define FZ_SYMBOL(name, ...) __typeof__(name) *name;
#include "preload/symbols.def"
};
#pragma GCC diagnostic pop

_Static_assert(sizeof(struct fz_real) == FZ_SYM_COUNT * sizeof(void *),
	       "fz_real is walked as an array of FZ_SYM_COUNT pointers");

extern struct fz_real fz_real;
extern bool fz_real_bound;

/*
 * A function that this libc lacks, though every known libc has it; NULL if none is missing.
 * Missing functions answer ENOSYS. Set, too, when libc.so.6 itself is run as the program,
 * because it then comes before this library.
 */
extern const char *fz_real_missing;

/* Fill fz_real.  Idempotent.  Calls dlsym, so never from a signal handler. */
void fz_real_bind(void);

/* The name of a symbol, and the word for its rung (symbols.def). */
const char *fz_symbol_name(enum fz_symbol symbol);
const char *fz_symbol_rung(enum fz_symbol symbol);

#endif
