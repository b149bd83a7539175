/* SPDX-License-Identifier: MIT */
#include "object.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- pieces of the file ------------------------------------------------- */

/*
 * size bytes at offset, mapped and hence aligned or not, or NULL if the file
 * does not have them.
 */
static const void *piece(const struct object *o, uint64_t offset, uint64_t size)
{
	Elf_Data *data;

	if (size == 0 || offset > INT64_MAX || size > INT64_MAX)
		return NULL;
	data = elf_getdata_rawchunk(o->elf, (int64_t)offset, size, ELF_T_BYTE);
	return data && data->d_size >= size ? data->d_buf : NULL;
}

/* How many program headers; more than the kernel would take are not looked at. */
static size_t header_count(const struct object *o)
{
	const size_t most = 65536 / sizeof(GElf_Phdr);
	size_t count;

	if (elf_getphdrnum(o->elf, &count) != 0)
		return 0;
	return count < most ? count : most;
}

/* What of the file is loaded at an address: offset, and bytes up to the end of it. */
static bool find_address(const struct object *o, uint64_t address, uint64_t *ret_offset,
			 uint64_t *ret_size)
{
	size_t count = header_count(o);
	GElf_Phdr ph;

	for (size_t i = 0; i < count; i++) {
		if (!gelf_getphdr(o->elf, (int)i, &ph) || ph.p_type != PT_LOAD)
			continue;
		if (address < ph.p_vaddr || address - ph.p_vaddr >= ph.p_filesz)
			continue;
		if (ph.p_offset > UINT64_MAX - ph.p_filesz)
			continue;
		*ret_offset = ph.p_offset + (address - ph.p_vaddr);
		*ret_size = ph.p_filesz - (address - ph.p_vaddr);
		return true;
	}
	return false;
}

/* The string at index, if it has an end; C++ makes long ones. */
static const char *string_at(const struct object *o, uint64_t index)
{
	const size_t longest = 65536;
	size_t room;

	if (!o->strings || index >= o->strings_size)
		return NULL;
	room = o->strings_size - index;
	if (!memchr(o->strings + index, '\0', room < longest ? room : longest))
		return NULL;
	return o->strings + index;
}

/* ---- headers ------------------------------------------------------------ */

static bool has_go_note(const struct object *o, const GElf_Phdr *ph)
{
	/* Elf64_Nhdr: size of the name, of the description, type; then "Go\0\0". */
	enum { GO_BUILD_ID = 4 };
	const uint64_t longest = 65536;
	const unsigned char *notes = NULL;
	uint64_t at = 0;
	uint32_t head[3];

	if (ph->p_filesz <= longest)
		notes = piece(o, ph->p_offset, ph->p_filesz);
	while (notes && ph->p_filesz - at >= sizeof(head) + 4) {
		memcpy(head, notes + at, sizeof(head));
		if (head[0] == 4 && head[2] == GO_BUILD_ID &&
		    memcmp(notes + at + sizeof(head), "Go\0", 4) == 0)
			return true;
		at += sizeof(head) + (((uint64_t)head[0] + 3) & ~UINT64_C(3)) +
		      (((uint64_t)head[1] + 3) & ~UINT64_C(3));
		if (at > ph->p_filesz)
			break;
	}
	return false;
}

static void read_interpreter(struct object *o, const GElf_Phdr *ph)
{
	const char *text = NULL;

	o->has_interpreter = true;
	if (ph->p_filesz <= 4096)
		text = piece(o, ph->p_offset, ph->p_filesz);
	if (text && memchr(text, '\0', ph->p_filesz))
		o->interpreter = strdup(text);
}

/* Go's linker may leave out the note, but not this. */
static bool has_go_section(const struct object *o)
{
	Elf_Scn *section = NULL;
	size_t names;
	GElf_Shdr sh;

	if (elf_getshdrstrndx(o->elf, &names) != 0)
		return false;
	while ((section = elf_nextscn(o->elf, section))) {
		const char *name;

		if (!gelf_getshdr(section, &sh))
			continue;
		name = elf_strptr(o->elf, names, sh.sh_name);
		if (name && strcmp(name, ".go.buildinfo") == 0)
			return true;
	}
	return false;
}

struct object *object_open(const char *path)
{
	struct object *o = calloc(1, sizeof(*o));
	GElf_Phdr ph;

	if (!o)
		return NULL;
	elf_version(EV_CURRENT);
	o->path = strdup(path);
	/* A FIFO must not make us wait. */
	o->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (!o->path || o->fd < 0) {
		int err = errno;

		object_close(o);
		errno = err;
		return NULL;
	}
	o->elf = elf_begin(o->fd, ELF_C_READ_MMAP, NULL);
	if (!o->elf || elf_kind(o->elf) != ELF_K_ELF || !gelf_getehdr(o->elf, &o->header))
		return o;
	o->elf_class = gelf_getclass(o->elf);
	for (size_t i = 0; i < header_count(o); i++) {
		if (!gelf_getphdr(o->elf, (int)i, &ph))
			continue;
		o->has_headers = true;
		if (ph.p_type == PT_INTERP && !o->has_interpreter)
			read_interpreter(o, &ph);
		if (ph.p_type == PT_NOTE && !o->go)
			o->go = has_go_note(o, &ph);
	}
	o->go = o->go || has_go_section(o);
	return o;
}

void object_close(struct object *o)
{
	if (!o)
		return;
	elf_end(o->elf);
	if (o->fd >= 0)
		close(o->fd);
	free(o->interpreter);
	free(o->needed);
	free(o->path);
	free(o);
}

/* ---- the dynamic section ------------------------------------------------ */

struct dynamic {
	const unsigned char *entries;	/* GElf_Dyn, aligned or not */
	size_t count;
};

static GElf_Dyn dynamic_entry(const struct dynamic *d, size_t i)
{
	GElf_Dyn entry;

	memcpy(&entry, d->entries + i * sizeof(entry), sizeof(entry));
	return entry;
}

static uint64_t dynamic_value(const struct dynamic *d, int64_t tag)
{
	for (size_t i = 0; i < d->count; i++)
		if (dynamic_entry(d, i).d_tag == tag)
			return dynamic_entry(d, i).d_un.d_val;
	return 0;
}

static bool find_dynamic(const struct object *o, struct dynamic *ret)
{
	size_t count = header_count(o), entries;
	GElf_Phdr ph;

	for (size_t i = 0; i < count; i++) {
		if (!gelf_getphdr(o->elf, (int)i, &ph) || ph.p_type != PT_DYNAMIC)
			continue;
		entries = ph.p_filesz / sizeof(GElf_Dyn);
		ret->entries = piece(o, ph.p_offset, entries * sizeof(GElf_Dyn));
		if (!ret->entries)
			return false;
		for (ret->count = 0; ret->count < entries; ret->count++)
			if (dynamic_entry(ret, ret->count).d_tag == DT_NULL)
				break;
		return true;
	}
	return false;
}

static uint32_t word_at(const unsigned char *p)
{
	uint32_t word;

	memcpy(&word, p, sizeof(word));
	return word;
}

/* DT_GNU_HASH, in words: this header, a Bloom filter, buckets, chains. */
struct gnu_hash {
	uint32_t buckets, first_symbol, bloom_words;
	uint64_t start;			/* of the buckets */
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

/* The table does not say how many symbols there are: the last chain's end does. */
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

static void find_symbols(struct object *o, const struct dynamic *d)
{
	uint64_t offset, room, size, count = 0;
	const unsigned char *hash;

	if (find_address(o, dynamic_value(d, DT_GNU_HASH), &offset, &room)) {
		/* Its end is not known; what is loaded behind it does no harm. */
		o->gnu_hash = piece(o, offset, room);
		o->gnu_hash_words = o->gnu_hash ? room / 4 : 0;
		count = count_by_gnu_hash(o);
	}
	if (find_address(o, dynamic_value(d, DT_HASH), &offset, &room) && room >= 8 &&
	    (hash = piece(o, offset, 8)) && word_at(hash + 4) > count)
		count = word_at(hash + 4);
	/* Without exports, GNU's table counts nothing. */
	size = count_by_section(o);
	if (size > count)
		count = size;
	if (!find_address(o, dynamic_value(d, DT_SYMTAB), &offset, &room))
		return;
	if (count > room / sizeof(GElf_Sym))
		count = room / sizeof(GElf_Sym);
	o->symbols = piece(o, offset, count * sizeof(GElf_Sym));
	o->symbol_count = o->symbols ? count : 0;
}

static GElf_Sym symbol_at(const struct object *o, size_t i)
{
	GElf_Sym symbol;

	memcpy(&symbol, o->symbols + i * sizeof(symbol), sizeof(symbol));
	return symbol;
}

bool object_read_dynamic(struct object *o)
{
	const size_t most_needed = 4096;
	struct dynamic d;
	uint64_t offset, room;

	if (!find_dynamic(o, &d)) {
		o->damage = "no readable dynamic section";
		return false;
	}
	o->has_dynamic = true;
	o->flags_1 = dynamic_value(&d, DT_FLAGS_1);
	if (find_address(o, dynamic_value(&d, DT_STRTAB), &offset, &room)) {
		o->strings_size = dynamic_value(&d, DT_STRSZ);
		if (o->strings_size > room)
			o->strings_size = room;
		o->strings = piece(o, offset, o->strings_size);
	}
	if (!o->strings) {
		o->damage = "no readable string table";
		return false;
	}
	o->needed = calloc(most_needed, sizeof(*o->needed));
	if (!o->needed)
		return false;
	for (size_t i = 0; i < d.count; i++) {
		GElf_Dyn entry = dynamic_entry(&d, i);
		const char *text = string_at(o, entry.d_un.d_val);

		switch (entry.d_tag) {
		case DT_NEEDED:
			if (text && o->needed_count < most_needed)
				o->needed[o->needed_count++] = text;
			else
				o->damage = "a needed library without a readable name";
			break;
		case DT_SONAME: o->soname = text; break;
		case DT_RPATH: o->rpath = text; break;
		case DT_RUNPATH: o->runpath = text; break;
		}
	}
	find_symbols(o, &d);
	return !o->damage;
}

/* ---- symbols ------------------------------------------------------------ */

void object_each_import(const struct object *o, void (*visit)(const char *name, void *arg),
			void *arg)
{
	for (size_t i = 1; i < o->symbol_count; i++) {
		GElf_Sym symbol = symbol_at(o, i);
		const char *name;

		if (symbol.st_shndx != SHN_UNDEF)
			continue;
		name = string_at(o, symbol.st_name);
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
	text = string_at(o, symbol.st_name);
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

/* ---- versions ----------------------------------------------------------- */

/* Each entry of a version section is linked to the next by a distance in bytes. */
static const unsigned char *version_table(const struct object *o, int64_t tag, uint64_t *ret_size)
{
	struct dynamic d;
	uint64_t offset;

	if (!find_dynamic(o, &d) || !find_address(o, dynamic_value(&d, tag), &offset, ret_size))
		return NULL;
	return piece(o, offset, *ret_size);
}

void object_each_version_needed(const struct object *o, const char *soname,
				void (*visit)(const char *version, void *arg), void *arg)
{
	uint64_t size, at = 0, aux;
	const unsigned char *table = version_table(o, DT_VERNEED, &size);
	GElf_Verneed need;
	GElf_Vernaux one;

	while (table && at <= size && size - at >= sizeof(need)) {
		const char *file;

		memcpy(&need, table + at, sizeof(need));
		file = string_at(o, need.vn_file);
		aux = at + need.vn_aux;
		for (unsigned i = 0; file && strcmp(file, soname) == 0 && i < need.vn_cnt; i++) {
			const char *name;

			if (aux > size || size - aux < sizeof(one))
				break;
			memcpy(&one, table + aux, sizeof(one));
			name = string_at(o, one.vna_name);
			if (name)
				visit(name, arg);
			if (!one.vna_next)
				break;
			aux += one.vna_next;
		}
		if (!need.vn_next)
			break;
		at += need.vn_next;
	}
}

bool object_defines_version(const struct object *o, const char *version)
{
	uint64_t size, at = 0;
	const unsigned char *table = version_table(o, DT_VERDEF, &size);
	GElf_Verdef def;
	GElf_Verdaux name;

	while (table && at <= size && size - at >= sizeof(def)) {
		memcpy(&def, table + at, sizeof(def));
		if (at + def.vd_aux <= size && size - at - def.vd_aux >= sizeof(name)) {
			const char *text;

			memcpy(&name, table + at + def.vd_aux, sizeof(name));
			text = string_at(o, name.vda_name);
			if (text && strcmp(text, version) == 0)
				return true;
		}
		if (!def.vd_next)
			break;
		at += def.vd_next;
	}
	return false;
}

/* ---- code ---------------------------------------------------------------- */

void object_each_code(const struct object *o,
		      void (*visit)(const unsigned char *code, size_t size, void *arg), void *arg)
{
	uint64_t left = UINT64_C(1) << 30;	/* a file that claims more is damaged */
	size_t count = header_count(o);
	GElf_Phdr ph;

	for (size_t i = 0; i < count; i++) {
		const unsigned char *code;

		if (!gelf_getphdr(o->elf, (int)i, &ph) || ph.p_type != PT_LOAD ||
		    !(ph.p_flags & PF_X))
			continue;
		code = piece(o, ph.p_offset, ph.p_filesz);
		if (!code || ph.p_filesz > left)
			continue;
		left -= ph.p_filesz;
		visit(code, ph.p_filesz, arg);
	}
}

const char *machine_name(unsigned machine)
{
	static const struct {
		unsigned machine;
		const char *name;
	} names[] = {
		{ EM_386, "x86" }, { EM_X86_64, "x86-64" }, { EM_ARM, "ARM" },
		{ EM_AARCH64, "AArch64" }, { EM_RISCV, "RISC-V" }, { EM_PPC, "PowerPC" },
		{ EM_PPC64, "PowerPC64" }, { EM_S390, "S/390" }, { EM_MIPS, "MIPS" },
		{ EM_SPARC, "SPARC" }, { EM_SPARCV9, "SPARC v9" }, { EM_IA_64, "IA-64" },
		{ EM_ALPHA, "Alpha" }, { EM_68K, "m68k" }, { EM_SH, "SuperH" },
		{ EM_PARISC, "PA-RISC" }, { EM_BPF, "BPF" }, { EM_LOONGARCH, "LoongArch" },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (names[i].machine == machine)
			return names[i].name;
	return "an unknown machine";
}
