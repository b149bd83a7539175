/* SPDX-License-Identifier: MIT */
#include "object_internal.h"

#include "file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- pieces of the file ------------------------------------------------- */

Elf_Data *object_table(const struct object *o, uint64_t offset, uint64_t size, Elf_Type type)
{
	Elf_Data *data;

	if (size == 0 || offset > INT64_MAX || size > INT64_MAX)
		return NULL;
	data = elf_getdata_rawchunk(o->elf, (int64_t)offset, size, type);
	return data && data->d_size >= size ? data : NULL;
}

const void *object_piece(const struct object *o, uint64_t offset, uint64_t size)
{
	const Elf_Data *data = object_table(o, offset, size, ELF_T_BYTE);

	return data ? data->d_buf : NULL;
}

size_t object_header_count(const struct object *o)
{
	const size_t most = 65536 / sizeof(GElf_Phdr);
	size_t count;

	if (elf_getphdrnum(o->elf, &count) != 0)
		return 0;
	return count < most ? count : most;
}

bool object_find_address(const struct object *o, uint64_t address, uint64_t *ret_offset,
			 uint64_t *ret_size)
{
	size_t count = object_header_count(o);
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

const char *object_string_at(const struct object *o, uint64_t index)
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
	enum { GO_BUILD_ID = 4 };
	const uint64_t longest = 65536;
	Elf_Data *notes = NULL;
	size_t at = 0, name, description;
	GElf_Nhdr note;

	if (ph->p_filesz <= longest)
		notes = object_table(o, ph->p_offset, ph->p_filesz, ELF_T_NHDR);
	while (notes && (at = gelf_getnote(notes, at, &note, &name, &description)))
		if (note.n_type == GO_BUILD_ID && note.n_namesz == sizeof("Go\0") &&
		    memcmp((const char *)notes->d_buf + name, "Go\0", sizeof("Go\0")) == 0)
			return true;
	return false;
}

static void read_interpreter(struct object *o, const GElf_Phdr *ph)
{
	const char *text = NULL;

	o->has_interpreter = true;
	if (ph->p_filesz <= 4096)
		text = object_piece(o, ph->p_offset, ph->p_filesz);
	if (text && memchr(text, '\0', ph->p_filesz))
		o->interpreter = strdup(text);
}

/* Has the object the section .go.buildinfo? Go's linker may leave out the note, but not this section. */
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
	o->fd = file_open(path);
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
	for (size_t i = 0; i < object_header_count(o); i++) {
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
	free(o->odd);
	free(o->path);
	free(o);
}

/* ---- code and strings ---------------------------------------------------- */

/* Call visit for each part of the file that is loaded into memory; if executable, only for code. */
static void each_piece(const struct object *o, bool executable,
		       void (*visit)(const unsigned char *bytes, size_t size, void *arg), void *arg)
{
	uint64_t left = UINT64_C(1) << 30;	/* no more than 1 GiB: a file that claims more is damaged */
	size_t count = object_header_count(o);
	GElf_Phdr ph;

	for (size_t i = 0; i < count; i++) {
		const unsigned char *bytes;

		if (!gelf_getphdr(o->elf, (int)i, &ph) || ph.p_type != PT_LOAD ||
		    (executable && !(ph.p_flags & PF_X)))
			continue;
		bytes = object_piece(o, ph.p_offset, ph.p_filesz);
		if (!bytes || ph.p_filesz > left)
			continue;
		left -= ph.p_filesz;
		visit(bytes, ph.p_filesz, arg);
	}
}

void object_each_code(const struct object *o,
		      void (*visit)(const unsigned char *code, size_t size, void *arg), void *arg)
{
	each_piece(o, true, visit, arg);
}

struct strings {
	void (*visit)(const char *text, void *arg);
	void *arg;
};

static void find_strings(const unsigned char *bytes, size_t size, void *arg)
{
	const struct strings *s = arg;
	size_t length = 0;

	for (size_t i = 0; i < size; i++) {
		if (bytes[i] == '\0' && length >= 4 && length <= 4096)
			s->visit((const char *)bytes + i - length, s->arg);
		length = bytes[i] >= ' ' && bytes[i] < 0x7f ? length + 1 : 0;
	}
}

void object_each_string(const struct object *o, void (*visit)(const char *text, void *arg),
			void *arg)
{
	struct strings s = { visit, arg };

	each_piece(o, false, find_strings, &s);
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
