/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_BASE_DIE_H
#define FZ_RUNTIME_BASE_DIE_H

/*
 * runtime/base/die.h - messages to standard error, by write(2) only.
 *
 * Formats: %s %d %u %x, %ld %lu %lx, %%.  A line is cut at 500 bytes.
 * Any thread, any context, signal handlers included.
 */

/* Print one line, "fiberize: " and the text. */
void fz_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Print one line like fz_say(), then abort.  Only if the library cannot go on. */
_Noreturn void fz_die(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
