/* SPDX-License-Identifier: MIT */
/*
 * scripts/elf/dynamic.c - the dynamic section of an ELF file: what it needs, and the
 * versions of symbols that it wants or defines.
 */
#include "object_internal.h"

#include <stdlib.h>
#include <string.h>

static GElf_Dyn dynamic_entry(const struct dynamic *d, size_t i)
{
	GElf_Dyn entry;

	memcpy(&entry, d->entries + i * sizeof(entry), sizeof(entry));
	return entry;
}

uint64_t object_dynamic_value(const struct dynamic *d, int64_t tag)
{
	for (size_t i = 0; i < d->count; i++)
		if (dynamic_entry(d, i).d_tag == tag)
			return dynamic_entry(d, i).d_un.d_val;
	return 0;
}

bool object_find_dynamic(const struct object *o, struct dynamic *ret)
{
	size_t count = object_header_count(o), entries;
	GElf_Phdr ph;

	for (size_t i = 0; i < count; i++) {
		if (!gelf_getphdr(o->elf, (int)i, &ph) || ph.p_type != PT_DYNAMIC)
			continue;
		entries = ph.p_filesz / sizeof(GElf_Dyn);
		ret->entries = object_piece(o, ph.p_offset, entries * sizeof(GElf_Dyn));
		if (!ret->entries)
			return false;
		for (ret->count = 0; ret->count < entries; ret->count++)
			if (dynamic_entry(ret, ret->count).d_tag == DT_NULL)
				break;
		return true;
	}
	return false;
}

bool object_read_dynamic(struct object *o)
{
	const size_t most_needed = 4096;
	struct dynamic d;
	uint64_t offset, room;

	if (!object_find_dynamic(o, &d)) {
		o->damage = "no readable dynamic section";
		return false;
	}
	o->has_dynamic = true;
	o->flags_1 = object_dynamic_value(&d, DT_FLAGS_1);
	if (object_find_address(o, object_dynamic_value(&d, DT_STRTAB), &offset, &room)) {
		o->strings_size = object_dynamic_value(&d, DT_STRSZ);
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
	for (size_t i = 0; i < d.count; i++) {
		GElf_Dyn entry = dynamic_entry(&d, i);
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
	object_find_symbols(o, &d);
	return !o->damage;
}

/* ---- versions ----------------------------------------------------------- */

/* The first entry of a version section; each entry holds the distance in bytes to the next. */
static const unsigned char *version_table(const struct object *o, int64_t tag, uint64_t *ret_size)
{
	struct dynamic d;
	uint64_t offset;

	if (!object_find_dynamic(o, &d) || !object_find_address(o, object_dynamic_value(&d, tag), &offset, ret_size))
		return NULL;
	return object_piece(o, offset, *ret_size);
}

void object_each_version_needed(const struct object *o, const char *soname,
				void (*visit)(const char *version, void *arg), void *arg)
{
	uint64_t size, at = 0, aux;
	const unsigned char *table = version_table(o, DT_VERNEED, &size);
	GElf_Verneed need;
	GElf_Vernaux one;

	while (table && at <= size && size - at >= sizeof(need)) {
		const char *file;

		memcpy(&need, table + at, sizeof(need));
		file = object_string_at(o, need.vn_file);
		aux = at + need.vn_aux;
		for (unsigned i = 0; file && strcmp(file, soname) == 0 && i < need.vn_cnt; i++) {
			const char *name;

			if (aux > size || size - aux < sizeof(one))
				break;
			memcpy(&one, table + aux, sizeof(one));
			name = object_string_at(o, one.vna_name);
			if (name)
				visit(name, arg);
			if (!one.vna_next)
				break;
			aux += one.vna_next;
		}
		if (!need.vn_next)
			break;
		at += need.vn_next;
	}
}

bool object_defines_version(const struct object *o, const char *version)
{
	uint64_t size, at = 0;
	const unsigned char *table = version_table(o, DT_VERDEF, &size);
	GElf_Verdef def;
	GElf_Verdaux name;

	while (table && at <= size && size - at >= sizeof(def)) {
		memcpy(&def, table + at, sizeof(def));
		if (at + def.vd_aux <= size && size - at - def.vd_aux >= sizeof(name)) {
			const char *text;

			memcpy(&name, table + at + def.vd_aux, sizeof(name));
			text = object_string_at(o, name.vda_name);
			if (text && strcmp(text, version) == 0)
				return true;
		}
		if (!def.vd_next)
			break;
		at += def.vd_next;
	}
	return false;
}
