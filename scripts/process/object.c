/* SPDX-License-Identifier: MIT */
#include "object.h"

#include <elfutils/libdwelf.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/param.h>
#include <sys/stat.h>
#include <unistd.h>

static uint64_t size_of_parts(const Elf64_Ehdr *header)
{
	return header->e_phnum * sizeof(Elf64_Phdr);
}

static bool is_known(const Elf64_Ehdr *header)
{
	return memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 && header->e_ident[EI_CLASS] == ELFCLASS64 &&
	       header->e_phentsize == sizeof(Elf64_Phdr) && header->e_phnum <= OBJECT_PARTS_MOST;
}

void object_find(struct object *o, const struct source *s, uint64_t base)
{
	bool is_first = true;

	memset(o, 0, sizeof(*o));
	o->source = s;
	o->base = base;
	if (!s->ops->read(s, base, &o->header, sizeof(o->header)) || !is_known(&o->header) ||
	    !s->ops->read(s, base + o->header.e_phoff, o->parts, size_of_parts(&o->header)))
		return;
	for (unsigned i = 0; i < o->header.e_phnum; i++) {
		const Elf64_Phdr *part = &o->parts[i];

		if (part->p_type != PT_LOAD)
			continue;
		if (is_first)
			o->bias = base - (part->p_vaddr - part->p_offset);
		is_first = false;
		o->end = MAX(o->end, o->bias + part->p_vaddr + part->p_memsz);
	}
	o->in_memory = !is_first;
}

bool object_has(const struct object *o, const struct mapping *m)
{
	if (!o->in_memory || m->begin < o->base || m->begin >= o->end)
		return false;
	/* The loader maps all of the file at first; between two parts, that stays. */
	for (unsigned i = 0; i < o->header.e_phnum; i++)
		if (o->parts[i].p_type == PT_LOAD &&
		    m->begin - m->offset == o->bias + o->parts[i].p_vaddr - o->parts[i].p_offset)
			return true;
	return false;
}

/*
 * Limits, in bytes, because the headers may promise any size, and one part many times: the size of a copy, which may
 * have holes, and what is copied of notes.
 */
enum { FILE_MOST = 1 << 30, NOTES_MOST = 1 << 20 };

/* Copy a part of the object to its place in the file; the memory may end early. */
static bool copy_part(const struct object *o, int fd, const Elf64_Phdr *part, uint64_t *room, bool *is_cut)
{
	static char buffer[64 * 4096];

	if (part->p_offset > FILE_MOST || part->p_filesz > *room)
		return false;
	*room -= part->p_filesz;
	for (uint64_t at = 0; at < part->p_filesz; at += sizeof(buffer)) {
		const size_t wanted = MIN(sizeof(buffer), part->p_filesz - at);
		const size_t got = source_read_up_to(o->source, o->bias + part->p_vaddr + at, buffer, wanted);

		if (pwrite(fd, buffer, got, (off_t)(part->p_offset + at)) != (ssize_t)got)
			return false;
		if (got < wanted) {
			*is_cut = true;
			break;
		}
	}
	return true;
}

static bool write_all(int fd, const void *bytes, size_t size, uint64_t offset)
{
	return pwrite(fd, bytes, size, (off_t)offset) == (ssize_t)size;
}

int object_copy(const struct object *o, uint32_t type, uint64_t *room, bool *ret_is_cut)
{
	const int fd = o->in_memory ? memfd_create("fiberize", MFD_CLOEXEC) : -1;
	Elf64_Ehdr header = o->header;
	uint64_t left = *room;
	bool good = fd >= 0 && header.e_phoff <= FILE_MOST &&
		    write_all(fd, o->parts, size_of_parts(&header), header.e_phoff);

	*ret_is_cut = false;
	for (unsigned i = 0; good && i < header.e_phnum; i++)
		good = o->parts[i].p_type != type || copy_part(o, fd, &o->parts[i], &left, ret_is_cut);
	header.e_shoff = 0;
	header.e_shnum = header.e_shstrndx = 0;
	if (good && write_all(fd, &header, sizeof(header), 0)) {
		*room = left;
		return fd;
	}
	if (fd >= 0)
		close(fd);
	return -1;
}

/* The build id of an ELF file, like object_build_id(). */
static size_t id_of_file(int fd, void *id, size_t size)
{
	const void *found;
	Elf *elf;
	ssize_t length;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	length = elf ? dwelf_elf_gnu_build_id(elf, &found) : 0;
	length = length > 0 ? MIN(length, (ssize_t)size) : 0;
	memcpy(id, length ? found : "", (size_t)length);
	elf_end(elf);
	return (size_t)length;
}

size_t object_build_id(const struct object *o, void *id, size_t size)
{
	uint64_t room = NOTES_MOST;
	bool is_cut;
	const int notes = object_copy(o, PT_NOTE, &room, &is_cut);
	const size_t length = notes >= 0 ? id_of_file(notes, id, size) : 0;

	if (notes >= 0)
		close(notes);
	return length;
}

/*
 * Has the file all the bytes that were mapped, at the same places?  The file of the debug information alone has the
 * build id, too, but not the bytes; a tool that rewrites files may move the bytes.
 */
static bool has_parts(const struct object *o, int fd)
{
	Elf64_Ehdr header;
	Elf64_Phdr part;
	struct stat st;

	if (fstat(fd, &st) != 0 || pread(fd, &header, sizeof(header), 0) != (ssize_t)sizeof(header) ||
	    !is_known(&header) || header.e_phnum != o->header.e_phnum)
		return false;
	for (unsigned i = 0; i < header.e_phnum; i++) {
		const Elf64_Phdr *ours = &o->parts[i];

		if (pread(fd, &part, sizeof(part), (off_t)(header.e_phoff + i * sizeof(part))) != (ssize_t)sizeof(part) ||
		    (part.p_type == PT_LOAD) != (ours->p_type == PT_LOAD))
			return false;
		if (part.p_type != PT_LOAD)
			continue;
		if (part.p_offset != ours->p_offset || part.p_vaddr != ours->p_vaddr || part.p_filesz != ours->p_filesz ||
		    part.p_filesz > (uint64_t)st.st_size || part.p_offset > (uint64_t)st.st_size - part.p_filesz)
			return false;
	}
	return true;
}

enum object_match object_match(const struct object *o, int fd)
{
	char ours[64], theirs[64];
	const size_t length = object_build_id(o, ours, sizeof(ours));

	if (!length)
		return OBJECT_UNKNOWN;
	return id_of_file(fd, theirs, sizeof(theirs)) == length && memcmp(ours, theirs, length) == 0 &&
	       has_parts(o, fd) ? OBJECT_IS_SAME : OBJECT_DIFFERS;
}
