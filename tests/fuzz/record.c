/* SPDX-License-Identifier: MIT */
/*
 * tests/fuzz/record.c - record CORE IMAGE: "fiberize ps" on a core file; all that it reads of it goes into an
 * image (image.h), a beginning for the corpus of description.c.
 */
#include <stdio.h>

#define core_open open_real_core
#include "scripts/process/core.c"
#undef core_open
void core_open(struct source *s, const char *path);

#include "scripts/inspect/commands.h"
#include "tests/fuzz/image.h"

static const struct source_ops *real;
static FILE *out;

static void put(uint8_t kind, uint64_t address, uint64_t end, uint64_t value)
{
	const struct image_head head = { kind, address, end, value };

	fwrite(&head, sizeof(head), 1, out);
}

/* What was read: each byte once, and neighbours together, so that the image is small. */
static struct {
	uint64_t address, end;
	char *bytes;
} pieces[4096];
static size_t piece_count;

static void keep(uint64_t address, const void *bytes, size_t size)
{
	size_t i = 0;

	for (; i < piece_count; i++)
		if (address >= pieces[i].address && address + size <= pieces[i].end)
			return;
	for (i = 0; i < piece_count && pieces[i].end != address; i++)
		continue;
	if (i == sizeof(pieces) / sizeof(*pieces))
		die(EXIT_OTHER, "too many pieces");
	if (i == piece_count) {
		pieces[i].address = pieces[i].end = address;
		piece_count++;
	}
	pieces[i].bytes = realloc(pieces[i].bytes, pieces[i].end - pieces[i].address + size);
	if (!pieces[i].bytes)
		die(EXIT_OTHER, "no memory");
	memcpy(pieces[i].bytes + (pieces[i].end - pieces[i].address), bytes, size);
	pieces[i].end += size;
}

static bool read_and_keep(const struct source *s, uint64_t address, void *buffer, size_t size)
{
	if (!real->read(s, address, buffer, size))
		return false;
	keep(address, buffer, size);
	return true;
}

static bool put_mapping(void *arg, const struct mapping *m)
{
	(void)arg;
	put(IMAGE_MAPPING, m->begin, m->end, m->offset);
	return true;
}

static bool put_thread(void *arg, int tid)
{
	(void)arg;
	put(IMAGE_THREAD, 0, 0, (uint64_t)tid);
	return true;
}

void core_open(struct source *s, const char *path)
{
	static struct source_ops ops;

	open_real_core(s, path);
	real = s->ops;
	ops = *real;
	ops.read = read_and_keep;
	s->ops = &ops;
	real->each_mapping(s, put_mapping, NULL);
	real->each_thread(s, put_thread, NULL);
}

int main(int argc, char **argv)
{
	char *words[] = { "ps", "--json", "--core", argc > 1 ? argv[1] : "", NULL };
	int code;

	if (argc != 3 || !(out = fopen(argv[2], "we")) || putc(0, out))
		return 2;
	code = command_run(words);
	for (size_t i = 0; i < piece_count; i++) {
		put(IMAGE_MEMORY, pieces[i].address, pieces[i].end, 0);
		fwrite(pieces[i].bytes, 1, pieces[i].end - pieces[i].address, out);
	}
	return fclose(out) ? 1 : code;
}
