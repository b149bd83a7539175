/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_LIBC_TEXT_H
#define FZ_PRELOAD_LIBC_TEXT_H

/*
 * preload/libc/text.h - where libc's code is, and which symbols it has.
 */

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

struct fz_text {
	uintptr_t inside;		/* an address in the text */
	const ElfW(Dyn) *dynamic;
	uintptr_t base;			/* load address, added to the addresses in the file */
	uintptr_t begin, end;		/* addresses of the executable segment */
	const ElfW(Sym) *symbols;
	const char *names;		/* of the symbols */
	const uint32_t *gnu_hash;
};

/* Find libc's text and symbols.  Returns false if libc is not laid out as expected.  Takes the loader's lock. */
bool fz_text_find(struct fz_text *text);

/* Call visit for each dynamic symbol that the module of this text defines; at: the symbol's address. */
void fz_text_each_symbol(const struct fz_text *text,
			 void (*visit)(const ElfW(Sym) *symbol, uint8_t *at, void *arg), void *arg);

/*
 * The address of an exported function that this module itself defines, not a module on which it depends; NULL if
 * there is none.  Takes no lock of the loader, and goes through all symbols.
 */
void *fz_text_symbol(const struct link_map *module, const char *name);

#endif
