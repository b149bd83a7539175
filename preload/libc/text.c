/* SPDX-License-Identifier: MIT */
#include "preload/libc/text.h"

#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

/*
 * Find the executable segment and the dynamic section. Returns false for a module that has several
 * executable segments or a writable one: libc has one, which is not writable.
 */
static bool find_segment(const struct dl_phdr_info *info, struct fz_text *text)
{
	const uintptr_t page = (uintptr_t)getpagesize() - 1;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];

		if (ph->p_type == PT_DYNAMIC)
			text->dynamic = (const void *)(info->dlpi_addr + ph->p_vaddr);
		if (ph->p_type != PT_LOAD || !(ph->p_flags & PF_X))
			continue;
		if (text->end || ph->p_flags != (PF_R | PF_X))
			return false;
		text->begin = (info->dlpi_addr + ph->p_vaddr) & ~page;
		text->end = info->dlpi_addr + ph->p_vaddr + ph->p_filesz;
	}
	return text->dynamic != NULL;
}

/* For dl_iterate_phdr: fill in the text whose `inside` lies in this module. */
static int find_module(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct fz_text text = *(struct fz_text *)arg;

	(void)size;
	text.base = info->dlpi_addr;
	if (!find_segment(info, &text) || text.inside < text.begin || text.inside >= text.end)
		return 0;
	*(struct fz_text *)arg = text;
	return 1;
}

/* ld.so has already turned the offsets of the dynamic section into addresses. */
static bool find_tables(struct fz_text *text)
{
	for (const ElfW(Dyn) *d = text->dynamic; d->d_tag != DT_NULL; d++) {
		if (d->d_tag == DT_SYMTAB)
			text->symbols = (const void *)d->d_un.d_ptr;
		if (d->d_tag == DT_STRTAB)
			text->names = (const void *)d->d_un.d_ptr;
		if (d->d_tag == DT_GNU_HASH)
			text->gnu_hash = (const void *)d->d_un.d_ptr;
	}
	return text->symbols && text->names && text->gnu_hash;
}

/* This does not use dladdr(), which is slow: it compares the address with each of libc's symbols. */
bool fz_text_find(struct fz_text *text)
{
	*text = (struct fz_text){ .inside = (uintptr_t)dlsym(RTLD_DEFAULT, "gnu_get_libc_version") };
	return dl_iterate_phdr(find_module, text) && find_tables(text);
}

/*
 * The number of symbols is stored nowhere; the hash table tells the last one: a bucket holds the
 * first symbol of a chain, and the end of a chain has bit 0 set.
 */
void fz_text_each_symbol(const struct fz_text *text,
			 void (*visit)(const ElfW(Sym) *symbol, uint8_t *at, void *arg), void *arg)
{
	const uint32_t *h = text->gnu_hash;
	const uint32_t buckets = h[0], first = h[1], bloom = h[2];
	const uint32_t *bucket = (const uint32_t *)((const ElfW(Addr) *)(h + 4) + bloom);
	const uint32_t *chain = bucket + buckets;

	for (uint32_t i = 0; i < buckets; i++) {
		uint32_t n = bucket[i];

		if (n < first)
			continue;
		do {
			const ElfW(Sym) *symbol = &text->symbols[n];

			if (symbol->st_shndx != SHN_UNDEF)
				visit(symbol, (uint8_t *)text->base + symbol->st_value, arg);
		} while (!(chain[n++ - first] & 1));
	}
}

struct wanted {
	const char *names, *name;
	void *found;
};

static void compare(const ElfW(Sym) *symbol, uint8_t *at, void *arg)
{
	struct wanted *wanted = arg;

	if (strcmp(wanted->names + symbol->st_name, wanted->name) == 0)
		wanted->found = at;
}

void *fz_text_symbol(const struct link_map *module, const char *name)
{
	struct fz_text text = { .dynamic = module->l_ld, .base = module->l_addr };
	struct wanted wanted = { .name = name };

	if (!find_tables(&text))
		return NULL;
	wanted.names = text.names;
	fz_text_each_symbol(&text, compare, &wanted);
	return wanted.found;
}
