/* SPDX-License-Identifier: MIT */
#include "objects.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frames.h"
#include "scripts/process/modules.h"
#include "scripts/process/say.h"
#include "scripts/trace/tree.h"

struct object {
	uint64_t address;
	char name[96];			/* empty: none */
};

/* Open libdwfl for the process. A tool looks at one process only, so this happens once. NULL: no address has a name. */
static Dwfl *modules(const struct target *t)
{
	static bool is_open;
	static Dwfl *dwfl;

	if (!is_open)
		modules_open(&t->source, &dwfl);
	is_open = true;
	return dwfl;
}

static void look_up(const struct target *t, struct object *o)
{
	Dwfl *dwfl = modules(t);
	Dwfl_Module *module = dwfl ? dwfl_addrmodule(dwfl, o->address) : NULL;
	const char *name;
	char *readable;
	GElf_Off offset;
	GElf_Sym elf;

	name = module ? dwfl_module_addrinfo(module, o->address, &offset, &elf, NULL, NULL, NULL) : NULL;
	if (!name || GELF_ST_TYPE(elf.st_info) != STT_OBJECT || offset >= elf.st_size)
		return;
	readable = demangled(name);
	snprintf(o->name, sizeof(o->name), offset ? "%s+%lu" : "%s", readable ? readable : name,
		 (unsigned long)offset);
	free(readable);
}

static int compare(const void *a, const void *b)
{
	const struct object *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

const char *object_name(const struct target *t, uint64_t address)
{
	static void *known;		/* a tree of struct object */
	const struct object key = { .address = address };
	struct object **found = tfind(&key, &known, compare), *o;

	if (!found) {
		o = calloc(1, sizeof(*o));
		if (!o)
			die(EXIT_OTHER, "no memory");
		o->address = address;
		look_up(t, o);
		found = tsearch(o, &known, compare);
		if (!found)
			die(EXIT_OTHER, "no memory");
	}
	return *(*found)->name ? (*found)->name : NULL;
}
