/* SPDX-License-Identifier: MIT */
#include "symbols.h"

#include <elfutils/libdwfl.h>
#include <inttypes.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "scripts/process/modules.h"
#include "scripts/process/say.h"
#include "scripts/process/text.h"

struct symbols {
	const struct source *source;
	Dwfl *dwfl;			/* NULL: no address has a name */
	void *known;			/* a tree of struct symbol */
	time_t reported;
};

static void report(struct symbols *s)
{
	s->reported = time(NULL);
	dwfl_report_begin_add(s->dwfl);
	modules_report(s->dwfl);
}

struct symbols *symbols_open(const struct source *source)
{
	struct symbols *s = calloc(1, sizeof(*s));

	if (!s)
		die(EXIT_OTHER, "no memory");
	s->source = source;
	s->reported = time(NULL);
	modules_open(source, &s->dwfl);
	return s;
}

void symbols_close(struct symbols *s)
{
	if (s->dwfl)
		modules_say_missing(s->dwfl, stderr, "fiberize: ");
	tdestroy(s->known, free);
	dwfl_end(s->dwfl);
	free(s);
}

static int compare(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static void look_up(struct symbols *s, struct symbol *symbol)
{
	/* address is where the call returns to, which may be in the next function; the call is before it. */
	const Dwarf_Addr look = symbol->address - 1;
	Dwfl_Module *module = s->dwfl ? dwfl_addrmodule(s->dwfl, look) : NULL;
	const char *name, *file = NULL, *object;
	Dwfl_Line *line;
	char address[24];
	GElf_Off offset;
	GElf_Sym elf;
	int number = 0;

	/*
	 * The program may have loaded a library since the last report. But it may also make code at run time,
	 * which no report has, so report at most once a second.
	 */
	if (!module && s->dwfl && time(NULL) > s->reported) {
		report(s);
		module = dwfl_addrmodule(s->dwfl, look);
	}
	snprintf(symbol->function, sizeof(symbol->function), "?");
	snprintf(address, sizeof(address), "%#" PRIx64, symbol->address);
	snprintf(symbol->place, sizeof(symbol->place), "%s", address);
	if (!module)
		return;
	name = dwfl_module_addrinfo(module, look, &offset, &elf, NULL, NULL, NULL);
	/* In a stripped library the nearest symbol may be another function, which ends before the address. */
	if (name && elf.st_size && offset >= elf.st_size)
		name = NULL;
	symbol->is_global = name && GELF_ST_BIND(elf.st_info) != STB_LOCAL;
	line = dwfl_module_getsrc(module, look);
	object = dwfl_module_info(module, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
	if (line)
		file = dwfl_lineinfo(line, NULL, &number, NULL, NULL, NULL);
	/* If a function has several names, such as write and __write, libdwfl may choose __write. */
	if (name)
		snprintf(symbol->function, sizeof(symbol->function), "%s",
			 name + (strncmp(name, "__", 2) == 0 ? 2 : 0));
	if (file)
		snprintf(symbol->place, sizeof(symbol->place), "%s at %s:%d", name ? name : "?",
			 base_of(file), number);
	else
		snprintf(symbol->place, sizeof(symbol->place), "%s in %s",
			 name ? name : address, object ? base_of(object) : "?");
	text_clean(symbol->function);
	text_clean(symbol->place);
}

const struct symbol *symbols_find(struct symbols *s, uint64_t address)
{
	struct symbol *symbol = calloc(1, sizeof(*symbol)), **found;

	if (!symbol)
		die(EXIT_OTHER, "no memory");
	symbol->address = address;
	found = tsearch(symbol, &s->known, compare);
	if (!found)
		die(EXIT_OTHER, "no memory");
	if (*found != symbol) {
		free(symbol);
		return *found;
	}
	if (address)
		look_up(s, symbol);
	else
		snprintf(symbol->place, sizeof(symbol->place), "?");
	return symbol;
}
