/* SPDX-License-Identifier: MIT */
#include "search.h"

#include <elf.h>
#include <string.h>

/* A limit, because the headers in a process's memory may be damaged and promise any size. */
enum { READS_MOST = 1 << 20 };

static bool read_some(struct search *search, uint64_t address, void *buffer, size_t size)
{
	return search->reads++ < READS_MOST && target_read(search->target, address, buffer, size);
}

/* Find the library's note in the size bytes of ELF notes. Returns the address of the description, or 0. */
static uint64_t by_note(struct search *search, uint64_t notes, uint64_t size)
{
	const size_t owner = (sizeof(FZ_NOTE_OWNER) + 3) & ~(size_t)3;
	uint64_t at = notes;

	while (at - notes < size && size - (at - notes) > sizeof(Elf64_Nhdr)) {
		Elf64_Nhdr note;
		char name[sizeof(FZ_NOTE_OWNER)];
		int64_t distance;

		if (!read_some(search, at, &note, sizeof(note)))
			return 0;
		if (note.n_namesz == sizeof(name) && note.n_type == FZ_NOTE_DESCRIPTION &&
		    note.n_descsz == sizeof(distance) &&
		    read_some(search, at + sizeof(note), name, sizeof(name)) &&
		    memcmp(name, FZ_NOTE_OWNER, sizeof(name)) == 0) {
			at += sizeof(note) + owner;
			return read_some(search, at, &distance, sizeof(distance)) ?
				       at + (uint64_t)distance : 0;
		}
		at += sizeof(note) + ((note.n_namesz + 3) & ~3u) + ((note.n_descsz + 3) & ~3u);
	}
	return 0;
}

/* The address of the description in the ELF object that is mapped at base, or 0. */
static uint64_t in_object(struct search *search, uint64_t base)
{
	Elf64_Ehdr header;

	if (!read_some(search, base, &header, sizeof(header)) ||
	    memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
	    header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phentsize != sizeof(Elf64_Phdr))
		return 0;
	for (unsigned i = 0; i < header.e_phnum; i++) {
		Elf64_Phdr part;
		uint64_t found;

		if (read_some(search, base + header.e_phoff + i * sizeof(part), &part, sizeof(part)) &&
		    part.p_type == PT_NOTE &&
		    (found = by_note(search, base + part.p_vaddr, part.p_memsz)))
			return found;
	}
	return 0;
}

bool search_look_at(void *arg, const struct mapping *m)
{
	struct search *search = arg;

	if (m->offset)
		return true;
	search->base = m->begin;
	search->found = in_object(search, m->begin);
	return !search->found && search->reads < READS_MOST;
}

/* The offset in the file of the bytes for this address, by the program headers; -1: no segment has it. */
static uint64_t offset_of(const struct target *t, uint64_t base, uint64_t address)
{
	Elf64_Ehdr header;
	Elf64_Phdr part;

	if (!target_read(t, base, &header, sizeof(header)))
		return (uint64_t)-1;
	for (unsigned i = 0; i < header.e_phnum; i++)
		if (target_read(t, base + header.e_phoff + i * sizeof(part), &part, sizeof(part)) &&
		    part.p_type == PT_LOAD && address - base - part.p_vaddr < part.p_filesz)
			return part.p_offset + (address - base - part.p_vaddr);
	return (uint64_t)-1;
}

struct place {
	uint64_t address, offset;	/* offset in the file */
	bool is_right;
};

static bool is_place(void *arg, const struct mapping *m)
{
	struct place *place = arg;

	if (place->address < m->begin || place->address >= m->end)
		return true;
	place->is_right = place->address - m->begin + m->offset == place->offset;
	return false;
}

bool search_is_mapped(const struct target *t, const struct search *search)
{
	struct place place = {
		search->found, offset_of(t, search->base, search->found), false,
	};

	t->source.ops->each_mapping(&t->source, is_place, &place);
	return place.is_right;
}
