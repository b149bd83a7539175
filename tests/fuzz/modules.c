/* SPDX-License-Identifier: MIT */
/*
 * tests/fuzz/modules.c - an ELF object is read from the memory of a process, which has the input's bytes at
 * BASE, and nothing else.
 */
#include "fuzz.h"

#include "scripts/process/object.c"

enum { BASE = 1 << 20, COPIED_MOST = 256 << 20 };

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
static void judge(const struct object *o, uint32_t type)
{
	uint64_t room = COPIED_MOST;
	Elf64_Ehdr header;
	bool is_cut;
	char id[64];
	const int fd = object_copy(o, type, &room, &is_cut);

	FUZZ_CHECK(room <= COPIED_MOST);
	if (fd < 0)
		return;
	FUZZ_CHECK(pread(fd, &header, sizeof(header), 0) == sizeof(header));
	FUZZ_CHECK(memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && !header.e_shnum && !header.e_shoff);
	FUZZ_CHECK(id_of_file(fd, id, sizeof(id)) <= sizeof(id));
	object_match(o, fd);
	close(fd);
}

/* No mapping is of an object of which no header is in memory, nor one from before it or after it. */
static void judge_mappings(const struct object *o)
{
	for (unsigned i = 0; i < o->header.e_phnum && o->in_memory; i++) {
		const uint64_t begin = o->bias + o->parts[i].p_vaddr;
		const struct mapping m = { begin, begin + 1, o->parts[i].p_offset, NULL, 0, 0 };

		if (object_has(o, &m))
			FUZZ_CHECK(begin >= o->base && begin < o->end);
		else
			FUZZ_CHECK(o->parts[i].p_type != PT_LOAD || begin < o->base || begin >= o->end);
	}
	FUZZ_CHECK(!object_has(o, &(struct mapping){ o->end, o->end + 1, 0, NULL, 0, 0 }));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static const struct source_ops ops = { .read = read_input };
	const struct source memory = { .ops = &ops };
	static struct object object;

	input = bytes;
	input_size = size;
	object_find(&object, &memory, BASE);
	judge_mappings(&object);
	judge(&object, PT_NOTE);
	judge(&object, PT_LOAD);
	return 0;
}
