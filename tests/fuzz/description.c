/* SPDX-License-Identifier: MIT */
/*
 * tests/fuzz/description.c - "fiberize ps" on a core file (image.h): the description of the library and
 * all that it leads to.  record.c makes such an image of a real core file.
 */
#include "fuzz.h"

#include <setjmp.h>

#include "scripts/inspect/commands.h"
#include "scripts/process/say.h"
#include "scripts/process/source.h"
#include "tests/fuzz/image.h"

static const uint8_t *image;
static size_t image_size;
static jmp_buf over;

int LLVMFuzzerInitialize(int *argc, char ***argv);
const char *__asan_default_options(void);

/* The tool ends where it has no memory, and frees nothing then. */
const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1:detect_leaks=0";
}

/* The next piece at *at; false: there is none. */
static bool next(size_t *at, struct image_head *ret_head, const uint8_t **ret_bytes)
{
	size_t size = 0;

	if (image_size - *at < sizeof(*ret_head))
		return false;
	memcpy(ret_head, image + *at, sizeof(*ret_head));
	*at += sizeof(*ret_head);
	if (ret_head->kind == IMAGE_MEMORY)
		size = ret_head->end - ret_head->address;
	if (size > image_size - *at)
		return false;
	*ret_bytes = image + *at;
	*at += size;
	return true;
}

static bool read_memory(const struct source *s, uint64_t address, void *buffer, size_t size)
{
	struct image_head head;
	const uint8_t *bytes;

	(void)s;
	for (size_t at = 1; next(&at, &head, &bytes);)
		if (head.kind == IMAGE_MEMORY && address >= head.address && address <= head.end &&
		    size <= head.end - address) {
			memcpy(buffer, bytes + (address - head.address), size);
			return true;
		}
	return false;
}

static bool each_mapping(const struct source *s, bool (*found)(void *arg, const struct mapping *m),
			 void *arg)
{
	struct image_head head;
	const uint8_t *bytes;
	bool more = true;

	(void)s;
	for (size_t at = 1; more && next(&at, &head, &bytes);)
		if (head.kind == IMAGE_MAPPING)
			/* Without a path: it has no objects that names come from. */
			more = found(arg, &(struct mapping){ head.address, head.end, head.value, NULL, 0, 0 });
	return true;
}

static void each_thread(const struct source *s, bool (*found)(void *arg, int tid), void *arg)
{
	struct image_head head;
	const uint8_t *bytes;
	bool more = true;

	(void)s;
	for (size_t at = 1; more && next(&at, &head, &bytes);)
		if (head.kind == IMAGE_THREAD)
			more = found(arg, (int)head.value);
}

void core_open(struct source *s, const char *path)
{
	static const struct source_ops ops = {
		.read = read_memory,
		.each_mapping = each_mapping,
		.each_thread = each_thread,
	};

	/* Any address will do: that it is a core file. */
	*s = (struct source){ .ops = &ops, .name = path, .core = (struct core *)&image };
}

_Noreturn void die(int code, const char *format, ...)
{
	(void)format;
	FUZZ_CHECK(code > 0 && code <= EXIT_CORE);
	longjmp(over, 1);
}

void die_after(void (*first)(void))
{
	(void)first;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	FUZZ_CHECK(freopen("/dev/null", "w", stdout));
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static char *const ways[] = { "--json", "--tree", "--hex", "--count", "--sort=wait" };
	char *words[] = { "ps", ways[size ? *bytes % 5 : 0], "--core", "image", NULL };

	if (!size)
		return 0;
	image = bytes;
	image_size = size;
	if (!setjmp(over))
		command_run(words);
	return 0;
}
