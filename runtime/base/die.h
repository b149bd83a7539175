/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_BASE_DIE_H
#define FZ_RUNTIME_BASE_DIE_H

/*
 * runtime/base/die.h - messages to standard error, by write(2) only.
 *
 * Formats: %s %d %u %x, %ld %lu %lx, %%.  A line is cut at 500 bytes.
 * Any thread, any context, signal handlers included.
 */

/* One line "fiberize: ...". */
void fz_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same, then abort.  For broken invariants of ours only. */
_Noreturn void fz_die(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
