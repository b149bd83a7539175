/* SPDX-License-Identifier: MIT */
/*
 * scripts/elf/symbols.c - the dynamic symbol table of an ELF file: how long it is, what it
 * imports and exports.
 */
#include "object_internal.h"

#include <string.h>

static uint32_t word_at(const unsigned char *p)
{
	uint32_t word;

	memcpy(&word, p, sizeof(word));
	return word;
}

/* DT_GNU_HASH, in words: this header, a Bloom filter, buckets, chains. */
struct gnu_hash {
	uint32_t buckets, first_symbol, bloom_words;
	uint64_t start;			/* index of the first bucket, in words */
};

static uint32_t hash_word(const struct object *o, uint64_t i)
{
	return word_at(o->gnu_hash + 4 * i);
}

static bool read_gnu_hash(const struct object *o, struct gnu_hash *ret)
{
	const unsigned header_words = 4;

	if (o->gnu_hash_words < header_words)
		return false;
	ret->buckets = hash_word(o, 0);
	ret->first_symbol = hash_word(o, 1);
	ret->bloom_words = hash_word(o, 2);
	ret->start = header_words + 2 * (uint64_t)ret->bloom_words;
	return ret->buckets > 0 && ret->start + ret->buckets <= o->gnu_hash_words;
}

/*
 * Count the symbols: the table does not hold their number, but the last chain ends at the last
 * symbol.
 */
static size_t count_by_gnu_hash(const struct object *o)
{
	struct gnu_hash h;
	uint64_t last = 0, word;

	if (!read_gnu_hash(o, &h))
		return 0;
	for (uint32_t i = 0; i < h.buckets; i++)
		if (hash_word(o, h.start + i) > last)
			last = hash_word(o, h.start + i);
	if (last < h.first_symbol)
		return h.first_symbol;
	do
		word = h.start + h.buckets + (last++ - h.first_symbol);
	while (word < o->gnu_hash_words && !(hash_word(o, word) & 1));
	return last;
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

void object_find_symbols(struct object *o, const struct dynamic *d)
{
	uint64_t offset, room, size, count = 0;
	const unsigned char *hash;

	if (object_find_address(o, object_dynamic_value(d, DT_GNU_HASH), &offset, &room)) {
		/*
		 * The end of the table is not known; reading what is loaded after it does no
		 * harm.
		 */
		o->gnu_hash = object_piece(o, offset, room);
		o->gnu_hash_words = o->gnu_hash ? room / 4 : 0;
		count = count_by_gnu_hash(o);
	}
	if (object_find_address(o, object_dynamic_value(d, DT_HASH), &offset, &room) && room >= 8 &&
	    (hash = object_piece(o, offset, 8)) && word_at(hash + 4) > count)
		count = word_at(hash + 4);
	/* The GNU hash table counts nothing if there are no exports. */
	size = count_by_section(o);
	if (size > count)
		count = size;
	if (!object_find_address(o, object_dynamic_value(d, DT_SYMTAB), &offset, &room))
		return;
	if (count > room / sizeof(GElf_Sym))
		count = room / sizeof(GElf_Sym);
	o->symbols = object_piece(o, offset, count * sizeof(GElf_Sym));
	o->symbol_count = o->symbols ? count : 0;
}

static GElf_Sym symbol_at(const struct object *o, size_t i)
{
	GElf_Sym symbol;

	memcpy(&symbol, o->symbols + i * sizeof(symbol), sizeof(symbol));
	return symbol;
}

void object_each_import(const struct object *o, void (*visit)(const char *name, void *arg),
			void *arg)
{
	for (size_t i = 1; i < o->symbol_count; i++) {
		GElf_Sym symbol = symbol_at(o, i);
		const char *name;

		if (symbol.st_shndx != SHN_UNDEF)
			continue;
		name = object_string_at(o, symbol.st_name);
		if (name && *name)
			visit(name, arg);
	}
}

static bool defines(const struct object *o, uint64_t i, const char *name)
{
	const char *text;
	GElf_Sym symbol;

	if (i >= o->symbol_count)
		return false;
	symbol = symbol_at(o, i);
	if (symbol.st_shndx == SHN_UNDEF)
		return false;
	text = object_string_at(o, symbol.st_name);
	return text && strcmp(text, name) == 0;
}

bool object_exports(const struct object *o, const char *name)
{
	uint32_t hash = 5381;
	struct gnu_hash h;
	uint64_t symbol;

	if (!read_gnu_hash(o, &h)) {
		for (size_t i = 1; i < o->symbol_count; i++)
			if (defines(o, i, name))
				return true;
		return false;
	}
	for (const char *c = name; *c; c++)
		hash = hash * 33 + (unsigned char)*c;
	symbol = hash_word(o, h.start + hash % h.buckets);
	for (; symbol >= h.first_symbol; symbol++) {
		uint64_t word = h.start + h.buckets + (symbol - h.first_symbol);

		if (word >= o->gnu_hash_words)
			break;
		if ((hash_word(o, word) | 1) == (hash | 1) && defines(o, symbol, name))
			return true;
		if (hash_word(o, word) & 1)
			break;
	}
	return false;
}
