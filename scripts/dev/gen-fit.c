/* SPDX-License-Identifier: MIT */
/*
 * scripts/dev/gen-fit.c LIBRARY - prints fit.h for preload/stub: the machine of libfiberize.so, the version of glibc
 * that it needs, and a checksum of its loaded contents (preload/stub/image.h).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "preload/stub/image.h"

static unsigned char *file;
static size_t size;

static _Noreturn void die(const char *why)
{
	fprintf(stderr, "gen-fit: %s\n", why);
	exit(1);
}

static void read_file(const char *name)
{
	FILE *f = fopen(name, "rb");

	if (!f || fseek(f, 0, SEEK_END) != 0)
		die("cannot read the library");
	size = (size_t)ftell(f);
	rewind(f);
	file = malloc(size ? size : 1);
	if (!file || fread(file, 1, size, f) != size)
		die("cannot read the library");
	fclose(f);
}

/* The bytes in the file that will be at this address (relative to its base) when the library is loaded. */
static const unsigned char *at(uint64_t address)
{
	const Elf64_Ehdr *head = (const Elf64_Ehdr *)file;
	const Elf64_Phdr *part = (const Elf64_Phdr *)(file + head->e_phoff);

	for (unsigned i = 0; i < head->e_phnum; i++)
		if (part[i].p_type == PT_LOAD && address >= part[i].p_vaddr &&
		    address - part[i].p_vaddr < part[i].p_filesz)
			return file + part[i].p_offset + (address - part[i].p_vaddr);
	die("an address outside of the library");
}

static const Elf64_Dyn *dynamic(int64_t tag)
{
	const Elf64_Ehdr *head = (const Elf64_Ehdr *)file;
	const Elf64_Phdr *part = (const Elf64_Phdr *)(file + head->e_phoff);

	for (unsigned i = 0; i < head->e_phnum; i++) {
		if (part[i].p_type != PT_DYNAMIC)
			continue;
		for (const Elf64_Dyn *d = (const Elf64_Dyn *)(file + part[i].p_offset); d->d_tag; d++)
			if (d->d_tag == tag)
				return d;
	}
	die("the library has no DT_STRTAB or no DT_VERNEED: is it linked with glibc?");
}

/*
 * The largest N of the needed symbol versions GLIBC_2.N. Only that one must be compared: a glibc with it has
 * all earlier versions, too.
 */
static unsigned libc_minor(void)
{
	const char *names = (const char *)at(dynamic(DT_STRTAB)->d_un.d_ptr);
	const Elf64_Verneed *need = (const Elf64_Verneed *)at(dynamic(DT_VERNEED)->d_un.d_ptr);
	unsigned most = 0, minor;

	for (;;) {
		const Elf64_Vernaux *version = (const Elf64_Vernaux *)((const char *)need + need->vn_aux);

		for (unsigned i = 0; i < need->vn_cnt; i++) {
			if (sscanf(names + version->vna_name, "GLIBC_2.%u", &minor) == 1 && minor > most)
				most = minor;
			version = (const Elf64_Vernaux *)((const char *)version + version->vna_next);
		}
		if (!need->vn_next)
			return most;
		need = (const Elf64_Verneed *)((const char *)need + need->vn_next);
	}
}

int main(int argc, char **argv)
{
	unsigned machine;

	if (argc != 2)
		die("usage: gen-fit LIBRARY");
	read_file(argv[1]);
	machine = size < sizeof(Elf64_Ehdr) ? 0 : ((const Elf64_Ehdr *)file)->e_machine;
	if (!fz_image_is_whole(file, size, machine))
		die("not a shared library");
	printf("/* Made by scripts/dev/gen-fit.c. */\n"
	       "#define FZ_FIT_MACHINE %u\n#define FZ_FIT_LIBC_MINOR %u\n#define FZ_FIT_SUM 0x%llxULL\n",
	       machine, libc_minor(), (unsigned long long)fz_image_sum(file));
	return 0;
}
