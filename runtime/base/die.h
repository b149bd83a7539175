/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_BASE_DIE_H
#define FZ_RUNTIME_BASE_DIE_H

/*
 * runtime/base/die.h - messages to standard error, by write(2) only.
 *
 * Formats: %s %d %u %x, %ld %lu %lx, %%.  A line is cut at 500 bytes.
 * Any thread, any context, signal handlers included.
 *
 * A daemon closes its standard streams, and its database may then get number 2.  So a message is written
 * only while number 2 is the file that had this number at the start of the process.
 */

#include <stdbool.h>
#include <stdint.h>

struct fz_file_id {
	uint64_t inode;
	uint32_t major, minor;
};

/*
 * At the start of the process: the file that has number 2 now is standard error.  launchers: the file
 * that the launcher, an ancestor of this process, had there; NULL if unknown.  A file that differs from
 * the launcher's may be a data file that an ancestor passed on by exec.  So it is taken for standard error
 * only if it is a terminal, or open for writing alone, as a shell opens it.  Without this call every
 * message is written.
 */
void fz_say_init(const struct fz_file_id *launchers);

/* Print one line, "fiberize: " and the text. */
void fz_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* What follows a noun after this number: "" or "s". */
static inline const char *fz_plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

/* Does the user want to know what the library does (--verbose)? Set by the owner of the runtime. */
extern bool fz_verbose;

/* Print one line like fz_say(), then abort.  Only if the library cannot go on. */
_Noreturn void fz_die(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
