/* SPDX-License-Identifier: MIT */
#include "modules.h"

#include <elf.h>
#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/param.h>
#include <sys/stat.h>
#include <unistd.h>

#include "debuginfo.h"
#include "program.h"
#include "text.h"

/* libdwfl's callbacks have no argument for the process. */
static const struct source *source;

/* ---- what is in memory of an object --------------------------------------------------- */

/* The object that is mapped from base on. */
struct object {
	uint64_t base;
	bool in_memory;			/* its ELF header is, so that it can be read; the loader needs no header */
	Elf64_Ehdr header;
	uint64_t bias;			/* what the loader has added to the addresses in the file */
	bool is_cut;			/* memory ended before a part that was copied */
};

static bool read_part(const struct object *o, unsigned number, Elf64_Phdr *ret)
{
	return source->ops->read(source, o->base + o->header.e_phoff + number * sizeof(*ret), ret, sizeof(*ret));
}

static void find_object(struct object *o, uint64_t base)
{
	Elf64_Phdr part;

	*o = (struct object){ .base = base };
	if (!source->ops->read(source, base, &o->header, sizeof(o->header)) ||
	    memcmp(o->header.e_ident, ELFMAG, SELFMAG) != 0 || o->header.e_ident[EI_CLASS] != ELFCLASS64 ||
	    o->header.e_phentsize != sizeof(part))
		return;
	for (unsigned i = 0; !o->in_memory && i < o->header.e_phnum && read_part(o, i, &part); i++) {
		o->bias = base - (part.p_vaddr - part.p_offset);
		o->in_memory = part.p_type == PT_LOAD;
	}
}

/*
 * Limits, in bytes, because the headers in a process's memory may promise any size, and one part many times: the size
 * of a copy, which may have holes, what is copied of notes, and what is copied of all objects of the process.
 */
enum { FILE_MOST = 1 << 30, NOTES_MOST = 1 << 20, COPIED_MOST = 256 << 20 };
static uint64_t copy_room;		/* of COPIED_MOST */

/* Copy a part of the object to its place in the file; the memory may end early.  *room: so many bytes at most. */
static bool copy_part(int fd, struct object *o, const Elf64_Phdr *part, uint64_t *room)
{
	static char buffer[64 * 4096];

	if (part->p_offset > FILE_MOST || part->p_filesz > *room)
		return false;
	*room -= part->p_filesz;
	for (uint64_t at = 0; at < part->p_filesz; at += sizeof(buffer)) {
		const size_t wanted = MIN(sizeof(buffer), part->p_filesz - at);
		const size_t got = source_read_up_to(source, o->bias + part->p_vaddr + at, buffer, wanted);

		if (pwrite(fd, buffer, got, (off_t)(part->p_offset + at)) != (ssize_t)got)
			return false;
		if (got < wanted) {
			o->is_cut = true;
			break;
		}
	}
	return true;
}

/*
 * Make a file of the object's parts of this type: PT_LOAD for all, PT_NOTE for the build id only, as reading makes
 * pages resident.  The file has no sections; libdwfl needs none.  Returns its descriptor, or -1.
 */
static int copy_object(struct object *o, uint32_t type)
{
	const int fd = o->in_memory ? memfd_create("fiberize", MFD_CLOEXEC) : -1;
	Elf64_Ehdr header = o->header;
	Elf64_Phdr part;
	uint64_t room = type == PT_LOAD ? copy_room : NOTES_MOST;
	bool good = fd >= 0 && header.e_phoff <= FILE_MOST;

	o->is_cut = false;
	for (unsigned i = 0; good && i < header.e_phnum; i++)
		good = read_part(o, i, &part) &&
		       pwrite(fd, &part, sizeof(part), (off_t)(header.e_phoff + i * sizeof(part))) ==
			       (ssize_t)sizeof(part) &&
		       (part.p_type != type || copy_part(fd, o, &part, &room));
	header.e_shoff = 0;
	header.e_shnum = header.e_shstrndx = 0;
	if (good && pwrite(fd, &header, sizeof(header), 0) == (ssize_t)sizeof(header)) {
		copy_room = type == PT_LOAD ? room : copy_room;
		return fd;
	}
	if (fd >= 0)
		close(fd);
	return -1;
}

/* ---- the file ------------------------------------------------------------------------- */

static bool find_begin(void *arg, const struct mapping *m)
{
	struct mapping *wanted = arg;

	if (m->begin != wanted->begin)
		return true;
	*wanted = *m;
	return false;
}

/* The build id of an ELF file; copies at most size bytes. Returns how many, 0: it has none. */
static size_t build_id(int fd, void *id, size_t size)
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

/* The build id in the object's memory, like build_id(). */
static size_t mapped_id(struct object *o, void *id, size_t size)
{
	const int notes = copy_object(o, PT_NOTE);
	const size_t length = notes >= 0 ? build_id(notes, id, size) : 0;

	if (notes >= 0)
		close(notes);
	return length;
}

/*
 * Is fd the mapped file?  Some file systems (btrfs, overlayfs) show another device in /proc/PID/maps than
 * fstat() does, so the build id comes first.
 */
static bool is_mapped_file(int fd, struct object *o, const struct mapping *m)
{
	char ours[64], theirs[64];
	const size_t length = mapped_id(o, theirs, sizeof(theirs));
	struct stat st;

	if (length)
		return build_id(fd, ours, sizeof(ours)) == length && memcmp(ours, theirs, length) == 0;
	return fstat(fd, &st) == 0 && st.st_ino == m->inode && st.st_dev == m->device;
}

/* The descriptor of the file in which the object is, or -1. */
static int open_object(const char *name, struct object *o)
{
	const int reader = source->program->reader;
	struct mapping m = { .begin = o->base };
	char *path;
	int fd;

	source->ops->each_mapping(source, find_begin, &m);
	if (!m.end)
		return -1;
	for (int way = 0; way < 3; way++) {
		const int size = way == 0 ? asprintf(&path, "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, reader,
						     m.begin, m.end) :
				 way == 1 ? asprintf(&path, "/proc/%d/root%s", reader, name) :
					    asprintf(&path, "%s", name);

		if (size < 0)
			return -1;
		fd = source_open_file(path);
		free(path);
		if (fd >= 0 && (way == 0 || is_mapped_file(fd, o, &m)))
			return fd;
		if (fd >= 0)
			close(fd);
	}
	return -1;
}

/* ---- libdwfl -------------------------------------------------------------------------- */

/* Of a module whose file cannot be had, *userdata becomes the text that says so. */
static char only_exported[] = "its file is gone, or another one by now, or cannot be opened: "
			      "only exported functions of it have names";
static char no_names[] = "its file is gone, or another one by now, or cannot be opened: "
			 "functions of it have no names, and stacks may end there";

static int find_elf(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base, char **file_name,
		    Elf **elf)
{
	struct object object;
	int fd;

	/* The vDSO is in no file. */
	if (*name != '/')
		return dwfl_linux_proc_find_elf(module, userdata, name, base, file_name, elf);
	find_object(&object, base);
	fd = open_object(name, &object);
	/* Data is mapped, too, and code that the program has made: no file is missing then. */
	if (fd < 0 && object.in_memory) {
		fd = copy_object(&object, PT_LOAD);
		*userdata = fd < 0 ? no_names : only_exported;
	}
	*file_name = fd < 0 ? NULL : strdup(name);
	return fd;
}

/* The same for a core file, in which an object is only as far as it was dumped. */
static int find_elf_of_core(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base, char **file_name,
			    Elf **elf)
{
	struct object object;
	unsigned char id[64];
	size_t length;
	int fd = *name == '/' ? source->ops->open_mapped(source, name) : -1;

	if (fd >= 0) {
		*file_name = strdup(name);
		return fd;
	}
	find_object(&object, base);
	length = mapped_id(&object, id, sizeof(id));
	if (length && dwfl_module_report_build_id(module, id, length, 0) == 0)
		fd = dwfl_build_id_find_elf(module, userdata, name, base, file_name, elf);
	if (fd >= 0 || *elf)
		return fd;
	fd = copy_object(&object, PT_LOAD);
	if (fd >= 0 && object.is_cut) {
		close(fd);
		fd = -1;
	}
	if (*name == '/')
		*userdata = fd < 0 ? no_names : only_exported;
	*file_name = NULL;
	return fd;
}

const char *modules_open(const struct source *s, Dwfl **ret_dwfl)
{
	static char *debug_path;
	static const Dwfl_Callbacks live_callbacks = {
		.find_elf = find_elf,
		.find_debuginfo = debuginfo_find,
		.debuginfo_path = &debug_path,
	};
	static const Dwfl_Callbacks core_callbacks = {
		.find_elf = find_elf_of_core,
		.find_debuginfo = debuginfo_find,
		.debuginfo_path = &debug_path,
	};
	const char *why;
	Dwfl *dwfl;

	source = s;
	copy_room = COPIED_MOST;
	dwfl = dwfl_begin(s->core ? &core_callbacks : &live_callbacks);
	if (dwfl && s->ops->report(s, dwfl)) {
		*ret_dwfl = dwfl;
		return NULL;
	}
	why = dwfl_errmsg(-1);
	dwfl_end(dwfl);
	return why ? why : "they are gone";
}

struct saying {
	FILE *out;
	const char *prefix;
};

static int say_missing(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base, void *arg)
{
	const struct saying *saying = arg;
	char *readable;

	(void)module;
	(void)base;
	if (!*userdata)
		return DWARF_CB_OK;
	readable = strdup(name);
	if (!readable)
		return DWARF_CB_OK;
	text_clean(readable);
	fprintf(saying->out, "%s%s: %s\n", saying->prefix, readable, (const char *)*userdata);
	free(readable);
	return DWARF_CB_OK;
}

void modules_say_missing(Dwfl *dwfl, FILE *out, const char *prefix)
{
	struct saying saying = { out, prefix };

	dwfl_getmodules(dwfl, say_missing, &saying, 0);
}
