/* SPDX-License-Identifier: MIT */
/*
 * tests/fuzz/modules.c - an ELF object is read from the memory of a process, which has the input's bytes at
 * BASE, and nothing else.
 */
#include "fuzz.h"

#include "scripts/process/modules.c"

enum { BASE = 1 << 20 };

static const uint8_t *input;
static size_t input_size;

static bool read_input(const struct source *s, uint64_t address, void *buffer, size_t size)
{
	(void)s;
	if (address < BASE || address - BASE > input_size || size > input_size - (address - BASE))
		return false;
	memcpy(buffer, input + (address - BASE), size);
	return true;
}

/* The file has what is in memory, and no sections. */
static void judge(int fd)
{
	Elf64_Ehdr header;
	char id[64];

	if (fd < 0)
		return;
	FUZZ_CHECK(pread(fd, &header, sizeof(header), 0) == sizeof(header));
	FUZZ_CHECK(memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && !header.e_shnum && !header.e_shoff);
	FUZZ_CHECK(build_id(fd, id, sizeof(id)) <= sizeof(id));
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static const struct source_ops ops = { .read = read_input };
	const struct source memory = { .ops = &ops };
	struct object object;

	input = bytes;
	input_size = size;
	source = &memory;
	copy_room = COPIED_MOST;
	find_object(&object, BASE);
	judge(copy_object(&object, PT_NOTE));
	judge(copy_object(&object, PT_LOAD));
	return 0;
}
