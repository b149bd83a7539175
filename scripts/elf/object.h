/* SPDX-License-Identifier: MIT */
#ifndef ELF_OBJECT_H
#define ELF_OBJECT_H

/*
 * scripts/elf/object.h - one ELF file, as the dynamic loader sees it.
 *
 * All data is found by program headers and the dynamic section, because that
 * is what the loader uses.  Section headers are used only to count symbols and to recognize
 * Go programs.  Damaged and hostile files do no harm: libelf checks offsets and sizes against
 * the size of the file, and every loop is bounded.
 */

#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct object {
	char *path;
	struct object *needed_by;	/* the object that needs this one; NULL for the program */
	int fd;
	Elf *elf;

	char *odd;			/* set by library_open(); see there */

	/* set by object_open() */
	int elf_class;			/* ELFCLASS*; ELFCLASSNONE: no ELF file at all */
	GElf_Ehdr header;
	bool has_headers;		/* at least one program header could be read */
	bool has_interpreter;
	char *interpreter;
	bool go;

	/* set by object_read_dynamic(); strings point into the file, and are valid until object_close() */
	bool has_dynamic;
	const char *damage;		/* what is wrong with the file, or NULL */
	const char *soname, *rpath, *runpath;
	const char **needed;
	size_t needed_count;
	uint64_t flags_1;

	/* the symbol table */
	Elf_Data *symbols;
	const char *strings;
	size_t strings_size;
};

/*
 * Open path and read its headers.  Returns NULL with errno set if it cannot be
 * opened or read, or is no regular file; a file that is not ELF has elf_class ELFCLASSNONE.
 */
struct object *object_open(const char *path);

/* Read needed libraries, search paths and symbols of a 64-bit file. Returns false if it is damaged. */
bool object_read_dynamic(struct object *o);

void object_close(struct object *o);

/* Call visit for each name that o imports, or exports. */
void object_each_import(const struct object *o, void (*visit)(const char *name, void *arg),
			void *arg);
void object_each_export(const struct object *o, void (*visit)(const char *name, void *arg),
			void *arg);

/* Call visit for each symbol version that o needs from the object with this soname. */
void object_each_version_needed(const struct object *o, const char *soname,
				void (*visit)(const char *version, void *arg), void *arg);

/* Does o define this symbol version? */
bool object_defines_version(const struct object *o, const char *version);

/* Call visit for each executable part of o. */
void object_each_code(const struct object *o,
		      void (*visit)(const unsigned char *code, size_t size, void *arg), void *arg);

/*
 * Call visit for each string of 4 to 4096 printable ASCII characters that ends in a null byte, in
 * all parts of o that are loaded into memory.
 */
void object_each_string(const struct object *o, void (*visit)(const char *text, void *arg),
			void *arg);

/* The common name of the machine with this EM_ value. */
const char *machine_name(unsigned machine);

#endif
