/* SPDX-License-Identifier: MIT */
#ifndef ELF_OBJECT_INTERNAL_H
#define ELF_OBJECT_INTERNAL_H

/*
 * scripts/elf/object_internal.h - shared by the readers of an ELF file: object.c, dynamic.c and
 * symbols.c.
 */

#include "object.h"

/* size bytes at offset, which may be unaligned; NULL if the file is shorter. */
const void *object_piece(const struct object *o, uint64_t offset, uint64_t size);

/* The number of program headers, at most as many as the kernel accepts. */
size_t object_header_count(const struct object *o);

/*
 * Find which part of the file is loaded at address: its offset, and the bytes from there to the
 * end of the part.
 */
bool object_find_address(const struct object *o, uint64_t address, uint64_t *ret_offset,
			 uint64_t *ret_size);

/* The string at index of the string table; NULL if it has no end. C++ makes long strings. */
const char *object_string_at(const struct object *o, uint64_t index);

struct dynamic {
	const unsigned char *entries;	/* GElf_Dyn, aligned or not */
	size_t count;
};

/* Find the dynamic section. Returns false if there is none that can be read. */
bool object_find_dynamic(const struct object *o, struct dynamic *ret);

/* The value of the first entry with this tag, or 0. */
uint64_t object_dynamic_value(const struct dynamic *d, int64_t tag);

/* Find the symbol table and GNU's hash table of it. */
void object_find_symbols(struct object *o, const struct dynamic *d);

#endif
