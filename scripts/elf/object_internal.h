/* SPDX-License-Identifier: MIT */
#ifndef ELF_OBJECT_INTERNAL_H
#define ELF_OBJECT_INTERNAL_H

/*
 * scripts/elf/object_internal.h - shared by the readers of an ELF file: object.c, dynamic.c and
 * symbols.c.
 */

#include "object.h"

/* The table of size bytes at an offset in the file, which may be unaligned; NULL if the file is too short. */
Elf_Data *object_table(const struct object *o, uint64_t offset, uint64_t size, Elf_Type type);

/* The size bytes at an offset in the file; NULL if the file is too short. */
const void *object_piece(const struct object *o, uint64_t offset, uint64_t size);

/* The number of program headers, at most as many as the kernel accepts. */
size_t object_header_count(const struct object *o);

/*
 * Find the place in the file of a virtual address. *ret_offset is the offset in the file, *ret_size
 * the number of bytes from there to the end of the segment.  False if no segment has the address.
 */
bool object_find_address(const struct object *o, uint64_t address, uint64_t *ret_offset,
			 uint64_t *ret_size);

/* The string at index of the string table, at most 65535 bytes long (names in C++ are long); else NULL. */
const char *object_string_at(const struct object *o, uint64_t index);

/* The dynamic section, or NULL if there is none that can be read. */
Elf_Data *object_find_dynamic(const struct object *o);

/* The value of the first entry with this tag, or 0. */
uint64_t object_dynamic_value(Elf_Data *dynamic, int64_t tag);

/* Find the symbol table. */
void object_find_symbols(struct object *o, Elf_Data *dynamic);

#endif
