/* SPDX-License-Identifier: MIT */
/*
 * tests/fuzz/proc.c - the readers of /proc, of the tools and of the library.  Each file that they open
 * has the input's bytes; the functions that are static are here because their files are.
 */
#include "fuzz.h"

#include <dirent.h>

static const uint8_t *input;
static size_t input_size;

static FILE *open_input(const char *path, const char *mode)
{
	(void)path;
	(void)mode;
	/* It reads nothing from 0 bytes. */
	return input_size ? fmemopen((void *)(uintptr_t)input, input_size, "r") : NULL;
}

#define fopen open_input
#include "scripts/process/tasks.c"
#define each_thread each_live_thread
#include "scripts/process/live.c"
#define by_inode by_socket_inode
#include "scripts/inspect/files.c"
#include "scripts/check/secure.c"
#define parse parse_entry
#define entry registered
#include "scripts/check/misc.c"
#undef entry
#undef parse
#define parse parse_group
#include "runtime/base/cpus.c"
#undef fopen

static bool count(void *arg, const struct mapping *m)
{
	FUZZ_CHECK(*m->path == '/' || *m->path == '[');
	*(uint64_t *)arg += m->end - m->begin + m->device + m->inode;
	return true;
}

static void read_groups(const char *text, size_t size)
{
	struct line line;
	const char *end;

	for (const char *at = text; (end = memchr(at, '\n', (size_t)(text + size - at))); at = end + 1)
		if (parse_group(at, (size_t)(end - at), &line)) {
			FUZZ_CHECK(line.names + line.names_size <= end);
			FUZZ_CHECK(line.group + line.group_size <= end);
			has_word(line.names, line.names_size, "cpu");
		}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct program program = { .reader = getpid() };
	struct source source = { .program = &program };
	struct target t = { .source = source };
	uint64_t sum = 0;
	char name[32], start[START_SIZE] = "\177ELF";
	char *text = fuzz_text(bytes, size);
	struct registered entry;
	struct tasks tasks;

	input = bytes;
	input_size = size;
	tasks_read(&tasks, getpid());
	tasks_outer(&tasks, 1);
	tasks_free(&tasks);
	task_usage(1, 1);
	task_has_left(1);
	task_sleeps_in(1, 1, name, sizeof(name));
	each_mapping(&source, count, &sum);
	sockets.read_at = 0;
	socket_of(&t, 1);
	is_mapped(65534, "");
	read_groups(text, size);
	parse_entry(text, &entry);
	matches(&entry, "/bin/program.jar", start);
	free(text);
	return 0;
}

/* Nothing ends the tool here. */
_Noreturn void die(int code, const char *format, ...)
{
	fprintf(stderr, "%d: %s\n", code, format);
	abort();
}

int target_reader(const struct target *t)
{
	return t->source.program->reader;
}
