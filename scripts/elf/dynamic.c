/* SPDX-License-Identifier: MIT */
/*
 * scripts/elf/dynamic.c - the dynamic section of an ELF file: the libraries that the file needs, and
 * the versions of symbols that it needs or defines.
 */
#include "object_internal.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

uint64_t object_dynamic_value(Elf_Data *dynamic, int64_t tag)
{
	GElf_Dyn entry;

	for (int i = 0; gelf_getdyn(dynamic, i, &entry) && entry.d_tag != DT_NULL; i++)
		if (entry.d_tag == tag)
			return entry.d_un.d_val;
	return 0;
}

Elf_Data *object_find_dynamic(const struct object *o)
{
	size_t count = object_header_count(o);
	GElf_Phdr ph;

	for (size_t i = 0; i < count; i++)
		if (gelf_getphdr(o->elf, (int)i, &ph) && ph.p_type == PT_DYNAMIC)
			return object_table(o, ph.p_offset, ph.p_filesz, ELF_T_DYN);
	return NULL;
}

bool object_read_dynamic(struct object *o)
{
	const size_t most_needed = 4096;
	Elf_Data *dynamic = object_find_dynamic(o);
	uint64_t offset, room;
	GElf_Dyn entry;

	if (!dynamic) {
		o->damage = "no readable dynamic section";
		return false;
	}
	o->has_dynamic = true;
	o->flags_1 = object_dynamic_value(dynamic, DT_FLAGS_1);
	if (object_find_address(o, object_dynamic_value(dynamic, DT_STRTAB), &offset, &room)) {
		o->strings_size = object_dynamic_value(dynamic, DT_STRSZ);
		if (o->strings_size > room)
			o->strings_size = room;
		o->strings = object_piece(o, offset, o->strings_size);
	}
	if (!o->strings) {
		o->damage = "no readable string table";
		return false;
	}
	o->needed = calloc(most_needed, sizeof(*o->needed));
	if (!o->needed)
		return false;
	for (int i = 0; gelf_getdyn(dynamic, i, &entry) && entry.d_tag != DT_NULL; i++) {
		const char *text = object_string_at(o, entry.d_un.d_val);

		switch (entry.d_tag) {
		case DT_NEEDED:
			if (text && o->needed_count < most_needed)
				o->needed[o->needed_count++] = text;
			else
				o->damage = "a needed library without a readable name";
			break;
		case DT_SONAME: o->soname = text; break;
		case DT_RPATH: o->rpath = text; break;
		case DT_RUNPATH: o->runpath = text; break;
		}
	}
	object_find_symbols(o, dynamic);
	return !o->damage;
}

/* ---- versions ----------------------------------------------------------- */

static Elf_Data *version_table(const struct object *o, int64_t tag, Elf_Type type)
{
	Elf_Data *dynamic = object_find_dynamic(o);
	uint64_t offset, size;

	if (!dynamic ||
	    !object_find_address(o, object_dynamic_value(dynamic, tag), &offset, &size))
		return NULL;
	return object_table(o, offset, size, type);
}

/* Go to the next version entry, which is distance bytes away. Returns false at the last entry. */
static bool step(int *at, uint32_t distance)
{
	if (!distance || distance > (uint32_t)(INT_MAX - *at))
		return false;
	*at += (int)distance;
	return true;
}

void object_each_version_needed(const struct object *o, const char *soname,
				void (*visit)(const char *version, void *arg), void *arg)
{
	Elf_Data *table = version_table(o, DT_VERNEED, ELF_T_VNEED);
	GElf_Verneed need;
	GElf_Vernaux one;
	int at = 0, aux;

	do {
		const char *file, *name;
		bool more;

		if (!gelf_getverneed(table, at, &need))
			return;
		file = object_string_at(o, need.vn_file);
		aux = at;
		more = file && strcmp(file, soname) == 0 && step(&aux, need.vn_aux);
		for (unsigned i = 0; more && i < need.vn_cnt; i++) {
			if (!gelf_getvernaux(table, aux, &one))
				break;
			name = object_string_at(o, one.vna_name);
			if (name)
				visit(name, arg);
			more = step(&aux, one.vna_next);
		}
	} while (step(&at, need.vn_next));
}

bool object_defines_version(const struct object *o, const char *version)
{
	Elf_Data *table = version_table(o, DT_VERDEF, ELF_T_VDEF);
	GElf_Verdef def;
	GElf_Verdaux name;
	int at = 0, aux;

	do {
		const char *text = NULL;

		if (!gelf_getverdef(table, at, &def))
			return false;
		aux = at;
		if (step(&aux, def.vd_aux) && gelf_getverdaux(table, aux, &name))
			text = object_string_at(o, name.vda_name);
		if (text && strcmp(text, version) == 0)
			return true;
	} while (step(&at, def.vd_next));
	return false;
}
