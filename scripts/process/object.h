/* SPDX-License-Identifier: MIT */
#ifndef PROCESS_OBJECT_H
#define PROCESS_OBJECT_H

/*
 * scripts/process/object.h - an ELF object that is mapped in a process: its headers, bias, end and build id, by what is
 * in memory of it.  Memory may be damaged: nothing that it says is trusted.
 */

#include <elf.h>

#include "source.h"

/* The kernel refuses a program that has more bytes of program headers than 64 KiB. */
enum { OBJECT_PARTS_MOST = 65536 / sizeof(Elf64_Phdr) };

struct object {
	const struct source *source;
	uint64_t base;			/* where its file is mapped from the first byte on */
	bool in_memory;			/* its headers are, so that they can be read; the loader does not need them later */
	Elf64_Ehdr header;
	Elf64_Phdr parts[OBJECT_PARTS_MOST];	/* header.e_phnum of them */
	uint64_t bias;			/* what the loader has added to the addresses in the file */
	uint64_t end;			/* the address after the last part */
};

void object_find(struct object *ret_object, const struct source *s, uint64_t base);

/* Does this mapping of the object's file belong to the object, by the program headers? */
bool object_has(const struct object *o, const struct mapping *m);

/*
 * Make a file of the object's parts of this type: PT_LOAD for all, PT_NOTE for the build id only, as reading makes
 * pages resident.  The file has no sections; libdwfl needs none.  At most *room bytes are copied, and taken from *room.
 * *ret_is_cut: memory ended before a part that was copied.  Returns the file's descriptor, or -1.
 */
int object_copy(const struct object *o, uint32_t type, uint64_t *room, bool *ret_is_cut);

/* The object's build id, at most size bytes of it.  Returns how many, 0: none is in memory. */
size_t object_build_id(const struct object *o, void *id, size_t size);

enum object_match {
	OBJECT_DIFFERS,
	OBJECT_IS_SAME,
	OBJECT_UNKNOWN,			/* it has no build id in memory */
};

/* Is fd a file that the object may have been mapped from?  The same file before strip(1), or after, is one. */
enum object_match object_match(const struct object *o, int fd);

#endif
