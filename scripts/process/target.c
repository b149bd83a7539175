/* SPDX-License-Identifier: MIT */
#include "target.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "say.h"
#include "tasks.h"

bool target_read(const struct target *t, uint64_t address, void *buffer, size_t size)
{
	return t->source.ops->read(&t->source, address, buffer, size);
}

bool target_write(const struct target *t, uint64_t address, uint64_t word)
{
	return pwrite(t->source.memory, &word, sizeof(word), (off_t)address) == (ssize_t)sizeof(word);
}

size_t target_read_pieces(const struct target *t, const struct piece *pieces, size_t count)
{
	return t->source.ops->read_pieces(&t->source, pieces, count);
}

bool target_is_there(const struct target *t)
{
	char path[64], line[512] = "";
	const char *state;
	FILE *stat;

	if (target_is_core(t))
		return true;
	snprintf(path, sizeof(path), "/proc/%d/stat", t->source.pid);
	stat = fopen(path, "re");
	if (!stat)
		return false;
	if (!fgets(line, sizeof(line), stat))
		*line = '\0';
	fclose(stat);
	/* The name before the state may have any character in it. */
	state = strrchr(line, ')');
	return state && state[1] && state[2] != 'Z' && state[2] != 'X';
}

bool target_has_memory(const struct target *t)
{
	char pages[64];

	task_line(t->source.pid, t->source.pid, "statm", pages, sizeof(pages));
	return strtoul(pages, NULL, 10) > 0;
}

bool target_is_held(const struct target *t)
{
	char magic[sizeof(((struct fz_description *)0)->magic)];

	return target_read(t, t->description, magic, sizeof(magic)) &&
	       memcmp(magic, FZ_DESCRIPTION_MAGIC, sizeof(magic)) == 0;
}

const char *target_end(const struct target *t)
{
	if (!target_is_there(t))
		return "the process has ended";
	if (!target_is_held(t))
		return target_has_memory(t) ? "the process has executed another program meanwhile" :
					       "the process has ended";
	return NULL;
}

void target_check(const struct target *t)
{
	const char *end = target_end(t);

	if (end)
		die(EXIT_NO_PROCESS, "%s: %s", t->source.name, end);
}

bool target_hold(struct target *t)
{
	if (!live_hold(&t->source) && (errno == EACCES || errno == EPERM) && target_is_there(t))
		die(EXIT_FORBIDDEN, "%s: not allowed to write to the process: ptrace(2) forbids it; "
		    "run this as root or with CAP_SYS_PTRACE", t->source.name);
	if (t->source.memory >= 0 && target_is_held(t))
		return true;
	target_release(t);
	return false;
}

void target_release(struct target *t)
{
	live_release(&t->source);
}

/* A number of 1, 2, 4 or 8 bytes. */
static uint64_t number(const void *bytes, size_t size)
{
	uint64_t n = 0;

	memcpy(&n, bytes, size < sizeof(n) ? size : sizeof(n));
	return n;
}

uint64_t target_field(const struct target *t, enum entry field, const void *record)
{
	return number((const char *)record + t->entries[field].value, t->entries[field].size);
}

uint64_t target_field_at(const struct target *t, enum entry field, uint64_t address)
{
	uint64_t n = 0;
	size_t size = t->entries[field].size < sizeof(n) ? t->entries[field].size : sizeof(n);

	return target_read(t, address + t->entries[field].value, &n, size) ? n : 0;
}

uint64_t target_root(const struct target *t, enum entry root)
{
	uint64_t n = 0;

	return target_read(t, t->entries[root].value, &n, t->entries[root].size) ? n : 0;
}

const char *target_text(const struct target *t, uint64_t address)
{
	static struct text {
		struct text *next;
		uint64_t address;
		char text[128];
	} *known;
	struct text *found = known;

	while (found && found->address != address)
		found = found->next;
	if (found || !address)
		return found ? found->text : NULL;
	found = calloc(1, sizeof(*found));
	if (!found)
		die(EXIT_OTHER, "no memory");
	/* The string may be shorter than what is read, at the end of what is mapped. */
	for (size_t i = 0; i < sizeof(found->text) - 1; i++)
		if (!target_read(t, address + i, &found->text[i], 1) || !found->text[i])
			break;
	found->address = address;
	found->next = known;
	known = found;
	return found->text;
}

/* ---- finding the description ------------------------------------------------------ */

/* The address of the description by the note at [notes, notes + size), or 0. */
static uint64_t by_note(const struct target *t, uint64_t notes, uint64_t size)
{
	const size_t owner = (sizeof(FZ_NOTE_OWNER) + 3) & ~(size_t)3;
	uint64_t at = notes;

	while (at - notes < size && size - (at - notes) > sizeof(Elf64_Nhdr)) {
		Elf64_Nhdr note;
		char name[sizeof(FZ_NOTE_OWNER)];
		int64_t distance;

		if (!target_read(t, at, &note, sizeof(note)))
			return 0;
		if (note.n_namesz == sizeof(name) && note.n_type == FZ_NOTE_DESCRIPTION &&
		    note.n_descsz == sizeof(distance) &&
		    target_read(t, at + sizeof(note), name, sizeof(name)) &&
		    memcmp(name, FZ_NOTE_OWNER, sizeof(name)) == 0) {
			at += sizeof(note) + owner;
			return target_read(t, at, &distance, sizeof(distance)) ?
				       at + (uint64_t)distance : 0;
		}
		at += sizeof(note) + ((note.n_namesz + 3) & ~3u) + ((note.n_descsz + 3) & ~3u);
	}
	return 0;
}

/* The description in the ELF object whose first byte is at base, or 0. */
static uint64_t in_object(const struct target *t, uint64_t base)
{
	Elf64_Ehdr header;

	if (!target_read(t, base, &header, sizeof(header)) ||
	    memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
	    header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phentsize != sizeof(Elf64_Phdr))
		return 0;
	for (unsigned i = 0; i < header.e_phnum; i++) {
		Elf64_Phdr part;
		uint64_t found;

		if (target_read(t, base + header.e_phoff + i * sizeof(part), &part, sizeof(part)) &&
		    part.p_type == PT_NOTE &&
		    (found = by_note(t, base + part.p_vaddr, part.p_memsz)))
			return found;
	}
	return 0;
}

struct search {
	const struct target *target;
	uint64_t found;
	uint64_t last;			/* where the last mapping begins that was looked at */
};

static bool look_at(void *arg, uint64_t begin)
{
	struct search *search = arg;

	search->found = in_object(search->target, begin);
	search->last = begin;
	return !search->found;
}

/* ---- reading it ------------------------------------------------------------------- */

static const char *const names[] = {
#define FZ_FIELD(name, type, member) #name,
#define FZ_ROOT(name, object) #name,
#define FZ_VALUE(name, value) #name,
#include "runtime/inspect/fields.def"
};

static void take(struct target *t, const struct fz_entry *e, bool *known)
{
	if (e->kind == FZ_ENTRY_REGISTER) {
		if (t->register_count < sizeof(t->registers) / sizeof(*t->registers))
			t->registers[t->register_count++] = (struct saved_register){
				(unsigned)strtoul(e->name, NULL, 10), e->value,
			};
		return;
	}
	for (size_t i = 0; i < ENTRY_COUNT; i++)
		if (strncmp(names[i], e->name, FZ_ENTRY_NAME) == 0) {
			t->entries[i].value = e->value;
			t->entries[i].size = e->size;
			known[i] = true;
		}
}

/* False: the process is gone, runs another program, or has not loaded all of the library yet. */
static bool read_description(struct target *t, uint64_t at)
{
	struct fz_description head;
	bool known[ENTRY_COUNT] = { false };

	if (!target_read(t, at, &head, sizeof(head)))
		return false;
	if (memcmp(head.magic, FZ_DESCRIPTION_MAGIC, sizeof(head.magic)) != 0)
		die(EXIT_VERSION, "%s: the description in its libfiberize.so is damaged", t->source.name);
	if (head.version != FZ_DESCRIPTION_VERSION || head.entry_size < sizeof(struct fz_entry))
		die(EXIT_VERSION,
		    "%s: its libfiberize.so describes itself in version %u, this tool reads %d: "
		    "use the fiberize that came with it", t->source.name, head.version,
		    FZ_DESCRIPTION_VERSION);
	for (uint32_t i = 0; i < head.count; i++) {
		struct fz_entry e;

		if (!target_read(t, at + sizeof(head) + (uint64_t)i * head.entry_size, &e,
				 sizeof(e)))
			return false;
		e.name[FZ_ENTRY_NAME - 1] = '\0';
		take(t, &e, known);
	}
	for (size_t i = 0; i < ENTRY_COUNT; i++)
		if (!known[i])
			die(EXIT_VERSION, "%s: its libfiberize.so does not describe \"%s\": use the "
			    "fiberize that came with it", t->source.name, names[i]);
	return true;
}

/* Before the loader has relocated the description, roots have no addresses. */
static bool is_relocated(const struct target *t)
{
	const uint64_t until = target_value(t, ENTRY_trace_until);

	return until > t->description - (64 << 20) && until < t->description + (64 << 20);
}

bool target_try(struct target *t, int pid)
{
	struct search search = { .target = t };
	static char name[16];

	memset(t, 0, sizeof(*t));
	snprintf(name, sizeof(name), "%d", pid);
	live_open(&t->source, name);
	/* What is held is what is searched.  At first it may be this tool, which has not executed yet. */
	if (!live_hold(&t->source))
		return false;
	t->source.ops->each_mapping(&t->source, look_at, &search);
	t->description = search.found;
	if (search.found && target_is_held(t) && read_description(t, search.found) && is_relocated(t))
		return true;
	target_release(t);
	return false;
}

void target_open(struct target *t, const char *name, bool is_core)
{
	struct search search = { .target = t };
	bool readable;
	char byte;

	memset(t, 0, sizeof(*t));
	(is_core ? core_open : live_open)(&t->source, name);
	readable = t->source.ops->each_mapping(&t->source, look_at, &search);
	t->description = search.found;
	if (search.found && read_description(t, search.found))
		return;
	if (search.found && is_core)
		die(EXIT_CORE, "%s: the memory of libfiberize.so is not in the core file", name);
	if (search.found)
		die(EXIT_NO_PROCESS, "%s: the process has ended, or executed another program", name);
	if (!target_is_there(t))
		die(EXIT_NO_PROCESS, "%s: no such process", name);
	if (is_core)
		die(EXIT_NOT_FIBERIZED, "%s: libfiberize.so is not in this core file", name);
	if (readable && !search.last)
		die(EXIT_NO_PROCESS, "%s: the process has no memory: it is ending, or is a kernel thread",
		    name);
	if (!readable || (!target_read(t, search.last, &byte, 1) && errno == EPERM))
		die(EXIT_FORBIDDEN, "%s: not allowed to look at the process: ptrace(2) forbids it; "
		    "run this as root or with CAP_SYS_PTRACE", name);
	die(EXIT_NOT_FIBERIZED, "%s: libfiberize.so is not in this process", name);
}
