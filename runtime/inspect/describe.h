/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_INSPECT_DESCRIBE_H
#define FZ_RUNTIME_INSPECT_DESCRIBE_H

/*
 * runtime/inspect/describe.h - a description of the runtime's data, for tools outside the process.
 *
 * A tool reads the memory of the process (process_vm_readv, a core file) and must know where the
 * fields are in this very build, which may be stripped, older or newer than the tool.  So the
 * library carries the description in its own writable data, which core files contain:
 *
 *	the ELF note FZ_NOTE_DESCRIPTION of the owner FZ_NOTE_OWNER	8 bytes: the distance from
 *									these bytes to the
 *	struct fz_description						whose entries follow
 *
 * runtime/inspect/fields.def lists the entries.  Values are in the byte order of the process.
 */

#include <stdint.h>

#define FZ_NOTE_OWNER "fiberize"
#define FZ_NOTE_DESCRIPTION 1
#define FZ_DESCRIPTION_MAGIC "fiberize"
enum { FZ_DESCRIPTION_VERSION = 1, FZ_ENTRY_NAME = 24 };

enum fz_entry_kind {
	FZ_ENTRY_FIELD,		/* value: offset in the struct, bytes */
	FZ_ENTRY_ROOT,		/* value: address */
	FZ_ENTRY_VALUE,		/* value: the number; size is 0 */
	FZ_ENTRY_REGISTER,	/* value: offset in a saved context; name: the DWARF number */
	FZ_ENTRY_WORD,		/* value: of enum fz_waits_for; name: the word that people read */
	FZ_ENTRY_REQUEST,	/* value: opcode of a request; name: the word that people read */
};

struct fz_entry {
	char name[FZ_ENTRY_NAME];	/* padded with zeros */
	uint64_t value;
	uint32_t size;			/* of the field or object, bytes */
	uint32_t kind;			/* enum fz_entry_kind */
};

struct fz_description {
	char magic[8];
	uint32_t version;
	uint32_t entry_size;		/* bytes from one entry to the next */
	uint32_t count;
	uint32_t unused;
	struct fz_entry entries[];
};

#endif
