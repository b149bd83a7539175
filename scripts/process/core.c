/* SPDX-License-Identifier: MIT */
/*
 * scripts/process/core.c - reads a process that has ended from its core file.
 *
 * A core file does not have the contents of mapped files (core(5), coredump_filter): they are read from
 * these files.
 */
#include "source.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <sys/procfs.h>
#include <sys/stat.h>
#include <unistd.h>

#include "object.h"
#include "say.h"

/* A part of the address space, and the file that has its bytes. */
struct part {
	uint64_t begin, end;		/* address */
	uint64_t offset;		/* in the file */
	const char *path;		/* NULL: the core file */
	int fd;				/* -1: not opened yet; -2: open has failed */
};

struct parts {
	struct part *list;
	size_t count;
};

struct core {
	int fd;
	Elf *elf;
	struct parts dumped;		/* memory in the core file; the kernel writes it sorted by address */
	struct parts files;		/* mapped files, sorted by address */
	struct registers *threads;
	size_t thread_count;
	uint64_t vdso;			/* its address; 0: it has none */
};

static void *more(void *list, size_t count, size_t size)
{
	/* The list has room for a power of two elements: it is full only if count is 0 or a power of two. */
	if (count & (count - 1))
		return list;
	list = reallocarray(list, count ? 2 * count : 1, size);
	if (!list)
		die(EXIT_OTHER, "no memory");
	return list;
}

static void add_part(struct parts *parts, struct part part)
{
	parts->list = more(parts->list, parts->count, sizeof(part));
	parts->list[parts->count++] = part;
}

static struct part *part_of(const struct parts *parts, uint64_t address)
{
	size_t low = 0, high = parts->count;

	while (low < high) {
		const size_t middle = (low + high) / 2;

		if (parts->list[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < parts->count && parts->list[low].begin <= address ? &parts->list[low] : NULL;
}

/* ---- memory ------------------------------------------------------------------------- */

enum { PAGE = 4096 };

static int open_mapped(const struct source *s, const char *path);

/* Read memory, of which a part may be in a file that is open; only_dumped: no other file is read. */
static bool read_parts(const struct source *s, uint64_t address, void *buffer, size_t size, bool only_dumped)
{
	while (size > 0) {
		struct part *p = part_of(&s->core->dumped, address);
		size_t here;

		if (!p && !only_dumped)
			p = part_of(&s->core->files, address);
		if (p && p->fd == -1) {
			p->fd = open_mapped(s, p->path);
			p->fd = p->fd < 0 ? -2 : p->fd;
		}
		if (!p || p->fd < 0)
			return false;
		here = MIN(size, p->end - address);
		if (pread(p->fd, buffer, here, (off_t)(p->offset + address - p->begin)) !=
		    (ssize_t)here)
			return false;
		buffer = (char *)buffer + here;
		address += here;
		size -= here;
	}
	return true;
}

static bool read_memory(const struct source *s, uint64_t address, void *buffer, size_t size)
{
	return read_parts(s, address, buffer, size, false);
}

static bool read_dumped(const struct source *s, uint64_t address, void *buffer, size_t size)
{
	return read_parts(s, address, buffer, size, true);
}

/* Where the sections of an ELF file are: strip(1) changes that in the first page, and nothing else that is mapped. */
static void forget_sections(char *page)
{
	Elf64_Ehdr header;

	memcpy(&header, page, sizeof(header));
	if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
		return;
	header.e_shoff = 0;
	header.e_shnum = header.e_shstrndx = 0;
	memcpy(page, &header, sizeof(header));
}

/* Does the file begin with these bytes?  After the end of a short file the page has zeros. */
static bool begins_with(int fd, char page[static PAGE])
{
	char ours[PAGE] = "";

	if (pread(fd, ours, PAGE, 0) <= 0)
		return false;
	forget_sections(ours);
	forget_sections(page);
	return memcmp(ours, page, PAGE) == 0;
}

/* Is this the file that was mapped?  The kernel dumps the first page of an ELF file; without it, the name must do. */
static bool is_mapped_file(const struct source *s, int fd, const char *path)
{
	static const struct source_ops ops = { .read = read_dumped };
	const struct source dumped = { .ops = &ops, .core = s->core };
	char page[PAGE];

	for (size_t i = 0; i < s->core->files.count; i++) {
		const struct part *file = &s->core->files.list[i];
		enum object_match match;
		struct object object;

		if (file->offset || strcmp(file->path, path) != 0 || !read_dumped(&dumped, file->begin, page, PAGE))
			continue;
		object_find(&object, &dumped, file->begin);
		match = object_match(&object, fd);
		return match == OBJECT_UNKNOWN ? begins_with(fd, page) : match == OBJECT_IS_SAME;
	}
	return true;
}

static int open_mapped(const struct source *s, const char *path)
{
	const int fd = source_open_file(path);

	if (fd >= 0 && is_mapped_file(s, fd, path))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

static bool each_mapping(const struct source *s, bool (*found)(void *arg, const struct mapping *m),
			 void *arg)
{
	const struct parts *files = &s->core->files;
	const struct part *vdso = part_of(&s->core->dumped, s->core->vdso);
	bool more = true;

	if (vdso && vdso->begin == s->core->vdso)
		more = found(arg, &(struct mapping){ vdso->begin, vdso->end, .path = "[vdso]" });
	for (size_t i = 0; i < files->count && more; i++)
		more = found(arg, &(struct mapping){ files->list[i].begin, files->list[i].end,
						     files->list[i].offset, .path = files->list[i].path });
	return true;
}

/* ---- kernel threads ----------------------------------------------------------------- */

static void each_thread(const struct source *s, bool (*found)(void *arg, int tid), void *arg)
{
	for (size_t i = 0; i < s->core->thread_count; i++)
		if (!found(arg, s->core->threads[i].tid))
			break;
}

static bool stop(const struct source *s, int tid, struct registers *r, void *stack,
		 size_t *stack_size)
{
	for (size_t i = 0; i < s->core->thread_count; i++)
		if (s->core->threads[i].tid == tid) {
			*r = s->core->threads[i];
			*stack_size = source_read_up_to(s, r->sp, stack, *stack_size);
			return true;
		}
	return false;
}

static bool call(const struct source *s, int tid, struct system_call *ret)
{
	for (size_t i = 0; i < s->core->thread_count; i++)
		if (s->core->threads[i].tid == tid)
			return registers_call(s, &s->core->threads[i], ret);
	return false;
}

/* ---- opening it --------------------------------------------------------------------- */

static void take_thread(struct core *core, const char *note, size_t size)
{
	const size_t registers = offsetof(struct elf_prstatus, pr_reg);
	struct registers *r;
	pid_t tid;

	if (size < registers)
		return;
	memcpy(&tid, note + offsetof(struct elf_prstatus, pr_pid), sizeof(tid));
	core->threads = more(core->threads, core->thread_count, sizeof(*r));
	r = &core->threads[core->thread_count++];
	*r = (struct registers){ .tid = tid };
	registers_take(r, note + registers, size - registers);
}

/*
 * Take the mapped files from an NT_FILE note. The note has the number of mappings, the page size, then
 * for each mapping its begin, end and offset in the file (in pages), then all names.
 */
static void take_files(struct core *core, const char *note, size_t size)
{
	enum { NUMBERS = 3 };
	uint64_t head[2], numbers[NUMBERS];
	const char *name, *const end = note + size;

	if (size < sizeof(head))
		return;
	memcpy(head, note, sizeof(head));
	if (head[0] > (size - sizeof(head)) / sizeof(numbers))
		return;
	name = note + sizeof(head) + head[0] * sizeof(numbers);
	for (uint64_t i = 0; i < head[0] && memchr(name, '\0', (size_t)(end - name)); i++) {
		memcpy(numbers, note + sizeof(head) + i * sizeof(numbers), sizeof(numbers));
		add_part(&core->files, (struct part){ numbers[0], numbers[1],
						      numbers[2] * head[1], name, -1 });
		name += strlen(name) + 1;
	}
}

static void take_auxv(struct core *core, const char *note, size_t size)
{
	Elf64_auxv_t entry;

	for (; size >= sizeof(entry); note += sizeof(entry), size -= sizeof(entry)) {
		memcpy(&entry, note, sizeof(entry));
		if (entry.a_type == AT_SYSINFO_EHDR)
			core->vdso = entry.a_un.a_val;
	}
}

static void take_notes(struct source *s, Elf_Data *data)
{
	struct core *core = s->core;
	size_t at = 0, next, name, content;
	GElf_Nhdr note;

	for (; data && (next = gelf_getnote(data, at, &note, &name, &content)); at = next) {
		const char *bytes = (const char *)data->d_buf + content;

		if (note.n_type == NT_PRSTATUS)
			take_thread(core, bytes, note.n_descsz);
		else if (note.n_type == NT_FILE)
			take_files(core, bytes, note.n_descsz);
		else if (note.n_type == NT_AUXV)
			take_auxv(core, bytes, note.n_descsz);
		else if (note.n_type == NT_PRPSINFO && note.n_descsz >= sizeof(struct elf_prpsinfo))
			memcpy(&s->pid, bytes + offsetof(struct elf_prpsinfo, pr_pid), sizeof(int));
#if defined(__aarch64__)
		/* This note follows the NT_PRSTATUS of its thread. */
		else if (note.n_type == NT_ARM_TLS && core->thread_count &&
			 note.n_descsz >= sizeof(uint64_t))
			memcpy(&core->threads[core->thread_count - 1].tcb, bytes, sizeof(uint64_t));
#endif
	}
}

static void check_header(const struct source *s)
{
	const Elf *elf = s->core->elf;
	GElf_Ehdr header;
#if defined(__x86_64__)
	const unsigned machine = EM_X86_64;
#else
	const unsigned machine = EM_AARCH64;
#endif

	if (!elf || !gelf_getehdr((Elf *)elf, &header) || header.e_type != ET_CORE)
		die(EXIT_CORE, "%s: not a core file", s->name);
	if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != machine)
		die(EXIT_CORE, "%s: the core file of a program for another CPU", s->name);
}

void core_open(struct source *s, const char *path)
{
	static const struct source_ops ops = {
		.read = read_memory, .each_mapping = each_mapping,
		.each_thread = each_thread, .stop = stop, .call = call, .open_mapped = open_mapped,
	};
	struct core *core = calloc(1, sizeof(*core));
	struct stat file;
	size_t count = 0;

	if (!core)
		die(EXIT_OTHER, "no memory");
	*s = (struct source){ .ops = &ops, .name = path, .core = core };
	core->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (core->fd < 0 || fstat(core->fd, &file) != 0)
		die(EXIT_CORE, "%s: %s", path, strerror(errno));
	elf_version(EV_CURRENT);
	core->elf = elf_begin(core->fd, ELF_C_READ_MMAP, NULL);
	check_header(s);
	elf_getphdrnum(core->elf, &count);
	for (size_t i = 0; i < count; i++) {
		GElf_Phdr h;

		if (!gelf_getphdr(core->elf, (int)i, &h) ||
		    h.p_filesz > (uint64_t)file.st_size ||
		    h.p_offset > (uint64_t)file.st_size - h.p_filesz)
			die(EXIT_CORE, "%s: the core file is truncated, at %lld bytes: the limit of its "
			    "size (ulimit -c) or a full disk?", path, (long long)file.st_size);
		if (h.p_type == PT_LOAD && h.p_filesz)
			add_part(&core->dumped, (struct part){ h.p_vaddr, h.p_vaddr + h.p_filesz,
							       h.p_offset, NULL, core->fd });
		else if (h.p_type == PT_NOTE)
			take_notes(s, elf_getdata_rawchunk(core->elf, (int64_t)h.p_offset,
							   h.p_filesz, ELF_T_NHDR));
	}
	if (!core->thread_count)
		die(EXIT_CORE, "%s: the core file has no threads (no NT_PRSTATUS); "
		    "take one that the kernel or gcore has written", path);
}
