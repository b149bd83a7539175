/* SPDX-License-Identifier: MIT */
#ifndef INSPECT_TARGET_H
#define INSPECT_TARGET_H

/*
 * scripts/inspect/target.h - the process that is looked at: its memory, and what its library says
 * of itself (runtime/inspect/describe.h).
 *
 * Memory is read by process_vm_readv, which the kernel allows to whom it allows ptrace; the process
 * is not stopped.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/inspect/describe.h"

/* The entries of runtime/inspect/fields.def. */
enum entry {
#define FZ_FIELD(name, type, member) ENTRY_##name,
#define FZ_ROOT(name, object) ENTRY_##name,
#define FZ_VALUE(name, value) ENTRY_##name,
#include "runtime/inspect/fields.def"
#undef FZ_FIELD
#undef FZ_ROOT
#undef FZ_VALUE
	ENTRY_COUNT
};

struct saved_register {
	unsigned number;		/* DWARF's */
	uint64_t offset;		/* in the saved context, bytes */
};

struct target {
	int pid;
	struct {
		uint64_t value;
		uint32_t size;
	} entries[ENTRY_COUNT];
	struct saved_register registers[64];
	size_t register_count;
};

/* Ends the tool with a message and an exit code if the process cannot be looked at. */
void target_open(struct target *t, const char *pid);

/* Read size bytes; false if they are not there. */
bool target_read(const struct target *t, uint64_t address, void *buffer, size_t size);

/* The object of a root; 0 if it cannot be read. */
uint64_t target_root(const struct target *t, enum entry root);

/* The field in a struct that was read into record. */
uint64_t target_field(const struct target *t, enum entry field, const void *record);

/* The field of a struct at this address in the process; 0 if it cannot be read. */
uint64_t target_field_at(const struct target *t, enum entry field, uint64_t address);

static inline uint64_t target_value(const struct target *t, enum entry entry)
{
	return t->entries[entry].value;
}

/* Does the process live? */
bool target_lives(const struct target *t);

#endif
