/* SPDX-License-Identifier: MIT */
/*
 * tests/targets/endless.c - a process that has mapped the head of an ELF file whose notes have no end: 1 TB of
 * them, all empty.
 *
 *	endless			prints "ready", and goes on until killed
 */
#define _GNU_SOURCE
#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int main(void)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE), size = (size_t)1 << 40;
	const int fd = memfd_create("endless", 0);
	struct {
		Elf64_Ehdr head;
		Elf64_Phdr part;
	} *file;
	char *notes;

	if (fd < 0 || ftruncate(fd, (off_t)page) != 0)
		return 1;
	file = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	notes = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (file == MAP_FAILED || notes == MAP_FAILED)
		return 1;
	memcpy(file->head.e_ident, ELFMAG, SELFMAG);
	file->head.e_ident[EI_CLASS] = ELFCLASS64;
	file->head.e_phoff = sizeof(file->head);
	file->head.e_phentsize = sizeof(file->part);
	file->head.e_phnum = 1;
	file->part.p_type = PT_NOTE;
	file->part.p_vaddr = (uintptr_t)notes - (uintptr_t)file;
	file->part.p_memsz = size;
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}
