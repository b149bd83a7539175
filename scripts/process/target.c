/* SPDX-License-Identifier: MIT */
#include "target.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "program.h"
#include "say.h"
#include "search.h"
#include "text.h"

bool target_read(const struct target *t, uint64_t address, void *buffer, size_t size)
{
	return t->source.ops->read(&t->source, address, buffer, size);
}

bool target_write(const struct target *t, uint64_t address, uint64_t word)
{
	return pwrite(t->source.program->memory, &word, sizeof(word), (off_t)address) ==
	       (ssize_t)sizeof(word);
}

size_t target_read_pieces(const struct target *t, const struct piece *pieces, size_t count)
{
	return source_read_pieces(&t->source, pieces, count);
}

int target_reader(const struct target *t)
{
	return t->source.program->reader;
}

int target_pidfd(const struct target *t)
{
	return t->source.program->pidfd;
}

bool target_runs(const struct target *t)
{
	return target_is_core(t) || program_runs(t->source.program);
}

const char *target_end(const struct target *t)
{
	if (target_runs(t))
		return NULL;
	/* If no thread has memory, the process is ending. */
	if (program_has_ended(t->source.program) || !program_choose_reader(t->source.program))
		return "the process has ended";
	return "the process has executed another program meanwhile";
}

void target_check(const struct target *t)
{
	const char *end = target_end(t);

	if (end)
		die(EXIT_NO_PROCESS, "%s: %s", t->source.name, end);
}

_Noreturn void target_die(const struct target *t, int code, const char *format, ...)
{
	char *text;
	va_list args;

	target_check(t);
	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		die(EXIT_OTHER, "no memory");
	va_end(args);
	die(code, "%s", text);
}

bool target_hold(struct target *t)
{
	struct source held;
	bool opened;

	opened = live_open(&held, t->source.pid, true);
	if (opened && held.program->memory < 0 && (errno == EACCES || errno == EPERM))
		target_die(t, EXIT_FORBIDDEN, "%s: not allowed to write to the process: ptrace(2) forbids it; "
			   "run this as root or with CAP_SYS_PTRACE", t->source.name);
	/* If the process still runs the program that was opened first, held is that program, too. */
	if (!opened || held.program->memory < 0 || !target_runs(t)) {
		live_close(&held);
		return false;
	}
	held.name = t->source.name;
	live_close(&t->source);
	t->source = held;
	return true;
}

void target_release(struct target *t)
{
	live_close(&t->source);
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
	return target_field_at(t, root, 0);
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
	/* Read byte by byte: the mapped memory may end just after the string. */
	for (size_t i = 0; i < sizeof(found->text) - 1; i++)
		if (!target_read(t, address + i, &found->text[i], 1) || !found->text[i])
			break;
	text_clean(found->text);
	found->address = address;
	found->next = known;
	known = found;
	return found->text;
}

/* ---- reading the description ------------------------------------------------------- */

static const char *const names[] = {
#define FZ_FIELD(name, type, member) #name,
#define FZ_ROOT(name, object) #name,
#define FZ_VALUE(name, value) #name,
#define FZ_WAIT(name, value, word, by) #name,
#include "runtime/inspect/fields.def"
};

/*
 * Is the description relocated? Roots are addresses of the library's variables, so they are near the
 * description (within 64 MiB) once the loader has relocated them.
 */
static bool is_relocated(const struct target *t, uint64_t root)
{
	const uint64_t near = 64 << 20;

	return root > t->description - near && root < t->description + near;
}

static void take(struct target *t, const struct fz_entry *e, bool *known)
{
	if (e->kind == FZ_ENTRY_REGISTER) {
		if (t->register_count < sizeof(t->registers) / sizeof(*t->registers))
			t->registers[t->register_count++] = (struct saved_register){
				(unsigned)strtoul(e->name, NULL, 10), e->value,
			};
		return;
	}
	/* Skip words for people: the tool has its own, and a word may be equal to the name of an entry. */
	if (e->kind == FZ_ENTRY_WORD || e->kind == FZ_ENTRY_REQUEST)
		return;
	for (size_t i = 0; i < ENTRY_COUNT; i++)
		if (strncmp(names[i], e->name, FZ_ENTRY_NAME) == 0) {
			t->entries[i].value = e->value;
			t->entries[i].size = e->size;
			known[i] = true;
		}
	if (e->kind == FZ_ENTRY_ROOT && !is_relocated(t, e->value))
		t->is_loading = true;
}

/* Why a description is TARGET_OTHER_VERSION: the version of its format, or the name of a missing entry. */
struct otherness {
	unsigned form;
	const char *missing;
};

static bool read_head(const struct target *t, uint64_t at, struct fz_description *ret)
{
	return target_read(t, at, ret, sizeof(*ret)) &&
	       memcmp(ret->magic, FZ_DESCRIPTION_MAGIC, sizeof(ret->magic)) == 0;
}

static enum target_found read_description(struct target *t, const struct search *search,
					  struct otherness *ret)
{
	enum { ENTRIES_MOST = 4096 };	/* far more than any version has */
	const uint64_t at = search->found;
	struct fz_description head;
	bool known[ENTRY_COUNT] = { false };

	t->description = at;
	if (!read_head(t, at, &head)) {
		t->is_loading = !search_is_mapped(t, search);
		if (t->is_loading)
			return TARGET_LOADING;
		/* The loader may have mapped the description after it was read. Read it again. */
		if (!read_head(t, at, &head))
			return TARGET_DAMAGED;
	}
	*ret = (struct otherness){ head.version, NULL };
	if (head.version != FZ_DESCRIPTION_VERSION || head.entry_size < sizeof(struct fz_entry))
		return TARGET_OTHER_VERSION;
	if (head.count > ENTRIES_MOST)
		return TARGET_DAMAGED;
	for (uint32_t i = 0; i < head.count; i++) {
		struct fz_entry e;

		if (!target_read(t, at + sizeof(head) + (uint64_t)i * head.entry_size, &e,
				 sizeof(e)))
			return TARGET_DAMAGED;
		e.name[FZ_ENTRY_NAME - 1] = '\0';
		take(t, &e, known);
	}
	for (size_t i = 0; i < ENTRY_COUNT && !ret->missing; i++)
		if (!known[i])
			ret->missing = names[i];
	if (ret->missing)
		return TARGET_OTHER_VERSION;
	return t->is_loading ? TARGET_LOADING : TARGET_READY;
}

/*
 * Read the description.  Returns false if it is damaged.  Ends the tool with a message if it is of another
 * version; if the process has ended or executed another program meanwhile, the message says that instead.
 */
static bool must_read_description(struct target *t, const struct search *search)
{
	struct otherness other;
	const enum target_found found = read_description(t, search, &other);

	if (found == TARGET_OTHER_VERSION && other.missing)
		target_die(t, EXIT_VERSION, "%s: its libfiberize.so does not describe \"%s\": use "
			   "the fiberize that came with it", t->source.name, other.missing);
	if (found == TARGET_OTHER_VERSION)
		target_die(t, EXIT_VERSION,
			   "%s: its libfiberize.so describes itself in version %u, this tool reads %d: "
			   "use the fiberize that came with it", t->source.name, other.form,
			   FZ_DESCRIPTION_VERSION);
	return found != TARGET_DAMAGED;
}

enum target_found target_look(struct target *t, int pid)
{
	struct search search = { .target = t };
	enum target_found found = TARGET_ABSENT;
	struct otherness other;

	memset(t, 0, sizeof(*t));
	if (!live_open(&t->source, pid, false) || !target_reader(t))
		return TARGET_ABSENT;
	if (t->source.program->memory < 0)
		return errno == EACCES || errno == EPERM ? TARGET_FORBIDDEN : TARGET_ABSENT;
	t->source.ops->each_mapping(&t->source, search_look_at, &search);
	if (search.found)
		found = read_description(t, &search, &other);
	return target_runs(t) ? found : TARGET_ABSENT;
}

bool target_try(struct target *t, int pid)
{
	struct search search = { .target = t };
	static char name[16];

	memset(t, 0, sizeof(*t));
	snprintf(name, sizeof(name), "%d", pid);
	/*
	 * Search and hold the same program.  If the process was just started by this tool, it may not have
	 * executed its program yet, and the library is not found.
	 */
	if (live_open(&t->source, pid, true) && t->source.program->memory >= 0) {
		t->source.name = name;
		t->source.ops->each_mapping(&t->source, search_look_at, &search);
		if (search.found && target_runs(t) && must_read_description(t, &search) && !t->is_loading)
			return true;
	}
	target_release(t);
	return false;
}

bool target_dormant(const struct target *t, char *ret_why)
{
	const size_t size = t->entries[ENTRY_dormant_why].size;

	if (!t->is_loading && target_root(t, ENTRY_started))
		return false;
	memset(ret_why, 0, DORMANT_MOST);
	if (t->is_loading || !size ||
	    !target_read(t, target_value(t, ENTRY_dormant_why), ret_why,
			 size < DORMANT_MOST ? size : DORMANT_MOST))
		*ret_why = '\0';
	ret_why[DORMANT_MOST - 1] = '\0';
	text_clean(ret_why);
	if (!*ret_why)
		strcpy(ret_why, "no thread was made yet");
	return true;
}

static void open_core(struct target *t, const char *path)
{
	struct search search = { .target = t };

	core_open(&t->source, path);
	t->source.ops->each_mapping(&t->source, search_look_at, &search);
	if (!search.found)
		die(EXIT_NOT_FIBERIZED, "%s: libfiberize.so is not in this core file", path);
	if (!must_read_description(t, &search))
		die(EXIT_CORE, "%s: the memory of libfiberize.so is not in the core file", path);
}

static int process_id(const char *word)
{
	char *end;
	long pid;

	errno = 0;
	pid = strtol(word, &end, 10);
	if (errno || *end || end == word || pid < 1 || pid > INT32_MAX)
		die(EXIT_USAGE, "%s: not a process id, which is a number from 1", word);
	return (int)pid;
}

static void open_process(struct target *t, const char *name)
{
	struct search search = { .target = t };

	if (!live_open(&t->source, process_id(name), false))
		die(EXIT_NO_PROCESS, errno == EINVAL ? "%s: the number of a thread, not of a process" :
		    "%s: no such process", name);
	t->source.name = name;
	if (!target_reader(t))
		die(EXIT_NO_PROCESS, "%s: the process has no memory: it is ending, or is a kernel thread",
		    name);
	if (t->source.program->memory < 0) {
		if (errno == EACCES || errno == EPERM)
			die(EXIT_FORBIDDEN, "%s: not allowed to look at the process: ptrace(2) forbids it; "
			    "run this as root or with CAP_SYS_PTRACE", name);
		die(EXIT_NO_PROCESS, "%s: the process has ended", name);
	}
	if (!t->source.ops->each_mapping(&t->source, search_look_at, &search))
		target_die(t, EXIT_OTHER, "%s: its mappings cannot be read", name);
	if (!search.found)
		target_die(t, EXIT_NOT_FIBERIZED, "%s: libfiberize.so is not in this process", name);
	if (!must_read_description(t, &search))
		target_die(t, EXIT_VERSION, "%s: the description in its libfiberize.so is damaged", name);
	/* The description is sound, but the process may have executed another program since it was read. */
	target_check(t);
}

void target_open(struct target *t, const char *name, bool is_core)
{
	memset(t, 0, sizeof(*t));
	(is_core ? open_core : open_process)(t, name);
}
