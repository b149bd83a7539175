/* SPDX-License-Identifier: MIT */
#ifndef ELF_OBJECT_INTERNAL_H
#define ELF_OBJECT_INTERNAL_H

/*
 * scripts/elf/object_internal.h - what the readers of an ELF file share: object.c, dynamic.c
 * and symbols.c.
 */

#include "object.h"

/* size bytes at offset, mapped and hence aligned or not; NULL if the file does not have them. */
const void *object_piece(const struct object *o, uint64_t offset, uint64_t size);

/* The number of program headers.  More than the kernel would take are not looked at. */
size_t object_header_count(const struct object *o);

/* What of the file is loaded at an address: its offset, and the bytes from there to its end. */
bool object_find_address(const struct object *o, uint64_t address, uint64_t *ret_offset,
			 uint64_t *ret_size);

/* The string at index of the string table; NULL if it does not end.  C++ makes long ones. */
const char *object_string_at(const struct object *o, uint64_t index);

struct dynamic {
	const unsigned char *entries;	/* GElf_Dyn, aligned or not */
	size_t count;
};

/* Find the dynamic section.  False if there is none that can be read. */
bool object_find_dynamic(const struct object *o, struct dynamic *ret);

/* The value of the first entry with that tag, or 0. */
uint64_t object_dynamic_value(const struct dynamic *d, int64_t tag);

/* Find the symbol table and GNU's hash table of it. */
void object_find_symbols(struct object *o, const struct dynamic *d);

#endif
