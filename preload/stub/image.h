/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_STUB_IMAGE_H
#define FZ_PRELOAD_STUB_IMAGE_H

/*
 * preload/stub/image.h - a checksum of what an ELF file loads. scripts/dev/gen-fit.c computes the checksum of the
 * library that has been built; the stub compares it with that of the file that it finds. The checksum covers the
 * bytes that the loader maps, but not the headers: it does not change when debug symbols are stripped.
 */

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A word at an address of any alignment (packed), in memory of any type (may_alias). */
struct fz_image_word {
	uint64_t value;
} __attribute__((packed, may_alias));

/*
 * Is the file a shared library for 64-bit programs of this machine, and does it contain all parts that its
 * program headers name?
 */
static inline bool fz_image_is_whole(const unsigned char *file, size_t size, unsigned machine)
{
	const Elf64_Ehdr *head = (const Elf64_Ehdr *)file;
	const Elf64_Phdr *part;

	if (size < sizeof(*head) || head->e_ident[0] != 0x7f || head->e_ident[1] != 'E' ||
	    head->e_ident[2] != 'L' || head->e_ident[3] != 'F' ||
	    head->e_ident[EI_CLASS] != ELFCLASS64 || head->e_ident[EI_DATA] != ELFDATA2LSB ||
	    head->e_type != ET_DYN || head->e_machine != machine ||
	    head->e_phentsize != sizeof(*part) || head->e_phnum > 64 || head->e_phoff % 8 ||
	    head->e_phoff > size || head->e_phnum * sizeof(*part) > size - head->e_phoff)
		return false;
	part = (const Elf64_Phdr *)(file + head->e_phoff);
	for (unsigned i = 0; i < head->e_phnum; i++)
		if (part[i].p_type != PT_NULL &&
		    (part[i].p_offset > size || part[i].p_filesz > size - part[i].p_offset))
			return false;
	return true;
}

/* Returns the checksum of a file for which fz_image_is_whole() has returned true. */
static inline uint64_t fz_image_sum(const unsigned char *file)
{
	const Elf64_Ehdr *head = (const Elf64_Ehdr *)file;
	const Elf64_Phdr *part = (const Elf64_Phdr *)(file + head->e_phoff);
	const uint64_t behind_headers = head->e_phoff + head->e_phnum * sizeof(*part);
	uint64_t sum = 0x9e3779b97f4a7c15;

	for (unsigned i = 0; i < head->e_phnum; i++) {
		uint64_t at = part[i].p_offset, end = at + part[i].p_filesz;

		if (part[i].p_type != PT_LOAD)
			continue;
		sum = (sum ^ part[i].p_vaddr ^ part[i].p_flags) * 0x100000001b3;
		if (at < behind_headers)
			at = behind_headers;
		for (; at + 8 <= end; at += 8) {
			/* The bytes are in little-endian order: fz_image_is_whole() refuses other files. */
			sum = (sum ^ ((const struct fz_image_word *)(file + at))->value) * 0x9fb21c651e98df25;
			sum ^= sum >> 29;
		}
		for (; at < end; at++)
			sum = (sum ^ file[at]) * 0x100000001b3;
	}
	return sum;
}

#endif
