/* SPDX-License-Identifier: MIT */
/*
 * scripts/elf/symbols.c - the dynamic symbol table of an ELF file: its length, and the names that
 * the file imports and exports.
 */
#include "object_internal.h"

#include <string.h>

static uint32_t word_at(const unsigned char *p)
{
	uint32_t word;

	memcpy(&word, p, sizeof(word));
	return word;
}

/*
 * Count the symbols by GNU's hash table. The symbol table does not hold their number, but the last
 * chain of the hash table ends at the last symbol. The hash table consists of 32-bit words: a
 * header, a Bloom filter, buckets, chains.
 */
static size_t count_by_gnu_hash(const unsigned char *hash, uint64_t words)
{
	const uint64_t header = 4;
	uint64_t first, buckets, chains, last = 0;

	if (!hash || words < header)
		return 0;
	first = word_at(hash + 4);
	buckets = header + 2 * (uint64_t)word_at(hash + 8);
	chains = buckets + word_at(hash);
	if (chains == buckets || chains > words)
		return 0;
	for (uint64_t i = buckets; i < chains; i++)
		if (word_at(hash + 4 * i) > last)
			last = word_at(hash + 4 * i);
	if (last < first)
		return first;
	while (chains + last - first < words && !(word_at(hash + 4 * (chains + last - first)) & 1))
		last++;
	return last + 1;
}

static size_t count_by_section(const struct object *o)
{
	Elf_Scn *section = NULL;
	GElf_Shdr sh;

	while ((section = elf_nextscn(o->elf, section)))
		if (gelf_getshdr(section, &sh) && sh.sh_type == SHT_DYNSYM)
			return sh.sh_size / sizeof(GElf_Sym);
	return 0;
}

void object_find_symbols(struct object *o, Elf_Data *dynamic)
{
	uint64_t offset, room, size, count = 0;
	const unsigned char *hash;

	/* The length of the hash table is not known, so read up to the end of its segment. */
	if (object_find_address(o, object_dynamic_value(dynamic, DT_GNU_HASH), &offset, &room))
		count = count_by_gnu_hash(object_piece(o, offset, room), room / 4);
	if (object_find_address(o, object_dynamic_value(dynamic, DT_HASH), &offset, &room) &&
	    room >= 8 && (hash = object_piece(o, offset, 8)) && word_at(hash + 4) > count)
		count = word_at(hash + 4);
	/* The GNU hash table does not tell the number if nothing is exported; the section does. */
	size = count_by_section(o);
	if (size > count)
		count = size;
	if (!object_find_address(o, object_dynamic_value(dynamic, DT_SYMTAB), &offset, &room))
		return;
	if (count > room / sizeof(GElf_Sym))
		count = room / sizeof(GElf_Sym);
	o->symbols = object_table(o, offset, count * sizeof(GElf_Sym), ELF_T_SYM);
}

static void each_symbol(const struct object *o, bool defined,
			void (*visit)(const char *name, void *arg), void *arg)
{
	GElf_Sym symbol;

	for (int i = 1; gelf_getsym(o->symbols, i, &symbol); i++) {
		const char *name = NULL;

		if ((symbol.st_shndx != SHN_UNDEF) == defined)
			name = object_string_at(o, symbol.st_name);
		if (name && *name)
			visit(name, arg);
	}
}

void object_each_import(const struct object *o, void (*visit)(const char *name, void *arg),
			void *arg)
{
	each_symbol(o, false, visit, arg);
}

void object_each_export(const struct object *o, void (*visit)(const char *name, void *arg),
			void *arg)
{
	each_symbol(o, true, visit, arg);
}
