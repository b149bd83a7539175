/* SPDX-License-Identifier: MIT */
#ifndef INSPECT_TARGET_H
#define INSPECT_TARGET_H

/*
 * scripts/process/target.h - the process that is looked at: its memory, and the description that its
 * library has of itself (runtime/inspect/describe.h).
 *
 * A live process goes on while its memory is read.  The kernel allows reading to a user whom it allows
 * ptrace(2).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/inspect/describe.h"
#include "source.h"

/* The entries of runtime/inspect/fields.def. */
enum entry {
#define FZ_FIELD(name, type, member) ENTRY_##name,
#define FZ_ROOT(name, object) ENTRY_##name,
#define FZ_VALUE(name, value) ENTRY_##name,
#define FZ_WAIT(name, value, word, by) ENTRY_##name,
#include "runtime/inspect/fields.def"
	ENTRY_COUNT
};

struct saved_register {
	unsigned number;		/* DWARF number */
	uint64_t offset;		/* in the saved context, bytes */
};

struct target {
	struct source source;
	uint64_t description;		/* address of the description in the process */
	struct {
		uint64_t value;
		uint32_t size;
	} entries[ENTRY_COUNT];
	struct saved_register registers[64];
	size_t register_count;
	bool is_loading;		/* the loader has not mapped or relocated all of the library yet */
};

/*
 * Open a process by its id, or a core file by its path.  Ends the tool with a message and an exit code
 * if that is impossible.  If t->is_loading, the entries must not be used yet.
 */
void target_open(struct target *t, const char *name, bool is_core);

/* In which state the library is found in a process. */
enum target_found {
	TARGET_READY,
	TARGET_LOADING,			/* the loader is still loading the library */
	TARGET_ABSENT,			/* the library is not there, or the process is gone */
	TARGET_FORBIDDEN,
	TARGET_DAMAGED,
	TARGET_OTHER_VERSION,		/* the library does not describe all that this tool reads */
};

/*
 * Open a process like target_open(), but never end the tool.  With TARGET_OTHER_VERSION, only the entries
 * are known that the library describes.
 */
enum target_found target_look(struct target *t, int pid);

/* Like target_open() and target_hold(), but returns false if the library is not there, or not ready yet. */
bool target_try(struct target *t, int pid);

/*
 * Open the process's memory for target_write(), and bind t to the program that runs now: if the process
 * executes another program later, target_read() and target_write() fail.  Returns false if the process has
 * ended or has executed another program since it was opened.  Ends the tool with a message if writing is not
 * allowed.
 */
bool target_hold(struct target *t);
void target_release(struct target *t);

enum { DORMANT_MOST = 256 };

/*
 * Is the library dormant?  Then write why, in words, to ret_why, which has room for DORMANT_MOST bytes.  The
 * description need not have all entries (TARGET_OTHER_VERSION).
 */
bool target_dormant(const struct target *t, char *ret_why);

/* Does the process still run the program that was opened?  True for a core file. */
bool target_runs(const struct target *t);

/* Write a word of 8 bytes after target_hold(); false if the program is gone. */
bool target_write(const struct target *t, uint64_t address, uint64_t word);

/* Read size bytes. Returns false if they cannot all be read. */
bool target_read(const struct target *t, uint64_t address, void *buffer, size_t size);

/* source_read_pieces() of the process (source.h). */
size_t target_read_pieces(const struct target *t, const struct piece *pieces, size_t count);

/* The value of the variable that is a root; 0 if it cannot be read. */
uint64_t target_root(const struct target *t, enum entry root);

/* The value of a field in a struct that was read into record. */
uint64_t target_field(const struct target *t, enum entry field, const void *record);

/* The value of a field of a struct at this address in the process; 0 if it cannot be read. */
uint64_t target_field_at(const struct target *t, enum entry field, uint64_t address);

/*
 * The constant string at this address, up to 127 characters, read once and kept; NULL if it cannot
 * be read.
 */
const char *target_text(const struct target *t, uint64_t address);

static inline uint64_t target_value(const struct target *t, enum entry entry)
{
	return t->entries[entry].value;
}

/* Is it a core file?  Then the current time, /proc and open files must not be used. */
static inline bool target_is_core(const struct target *t)
{
	return t->source.core != NULL;
}

/* A kernel thread of the process whose files in /proc can be read; the first thread may have ended. */
int target_reader(const struct target *t);

/* A descriptor (pidfd) that becomes readable when the process ends. */
int target_pidfd(const struct target *t);

/*
 * Has the process ended, or executed another program, since it was opened?  Returns that in words.  Returns
 * NULL if not: then all that was read until now was read from this program.
 */
const char *target_end(const struct target *t);

/* End the tool with the text of target_end(), unless that is NULL. */
void target_check(const struct target *t);

/*
 * End the tool with this message.  But if the process has ended or executed another program, what was read
 * may belong to that program: then the message is that of target_check().
 */
_Noreturn void target_die(const struct target *t, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
