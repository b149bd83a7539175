/* SPDX-License-Identifier: MIT */
/*
 * scripts/inspect/frames.c - prints stack frames: the functions, inlined functions, and places in the
 * source.
 */
#include "frames.h"

#include <dwarf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scripts/process/say.h"
#include "scripts/process/text.h"

/* A place in the source, as far as debug information tells. */
struct place {
	const char *file;
	int line;
};

char *demangled(const char *name)
{
	return name && strncmp(name, "_Z", 2) == 0 ? __cxa_demangle(name, NULL, NULL, NULL) : NULL;
}

static void print_place(FILE *out, int number, const char *address, const char *name, struct place at,
			const char *object)
{
	char *readable = demangled(name), *text;
	const char *shown = readable ? readable : name ? name : "??";
	int size;

	if (at.file)
		size = asprintf(&text, "%s at %s:%d", shown, at.file, at.line);
	else
		size = asprintf(&text, "%s%s%s", shown, object ? " in " : "", object ? object : "");
	if (size < 0)
		die(EXIT_OTHER, "no memory");
	text_clean(text);
	fprintf(out, "  #%-3d %s%s\n", number, address, text);
	free(text);
	free(readable);
}

static Dwarf_Word number_of(Dwarf_Die *die, unsigned name)
{
	Dwarf_Attribute attribute;
	Dwarf_Word value;

	return dwarf_formudata(dwarf_attr(die, name, &attribute), &value) ? 0 : value;
}

static const char *function_name(Dwarf_Die *function)
{
	Dwarf_Attribute attribute;
	const char *name = dwarf_formstring(dwarf_attr_integrate(function, DW_AT_linkage_name,
								 &attribute));

	return name ? name : dwarf_diename(function);
}

/*
 * Print the functions inlined at pc, innermost first. Returns the name of the function into which
 * they are inlined, or NULL; *at becomes the place in that function.
 */
static const char *print_inlined(FILE *out, Dwfl_Module *module, Dwarf_Addr pc, int number, struct place *at)
{
	const char *name = NULL;
	Dwarf_Addr bias;
	Dwarf_Die *unit = dwfl_module_addrdie(module, pc, &bias);
	Dwarf_Die *innermost = NULL, *scopes = NULL, function;
	const int count = unit ? dwarf_getscopes(unit, pc - bias, &innermost) : 0;
	/* dwarf_getscopes() gives the scopes around pc in the source; these are the scopes after inlining. */
	const int inlined = count > 0 ? dwarf_getscopes_die(innermost, &scopes) : 0;
	Dwarf_Files *files = NULL;
	size_t file_count = 0;

	if (unit)
		dwarf_getsrcfiles(unit, &files, &file_count);
	for (int i = 0; i < inlined; i++) {
		const size_t file = number_of(&scopes[i], DW_AT_call_file);

		function = scopes[i];
		if (dwarf_tag(&function) == DW_TAG_subprogram && !name)
			name = function_name(&function);
		if (dwarf_tag(&function) != DW_TAG_inlined_subroutine)
			continue;
		print_place(out, number, "(inlined) ", function_name(&function), *at, NULL);
		at->line = (int)number_of(&function, DW_AT_call_line);
		at->file = file && file < file_count ? dwarf_filesrc(files, file, NULL, NULL) : NULL;
	}
	free(innermost);
	free(scopes);
	return name;
}

static void print_frame(FILE *out, const struct unwinder *u, int number, Dwarf_Addr pc, bool is_call)
{
	const Dwarf_Addr look = pc - is_call;
	Dwfl_Module *module = dwfl_addrmodule(u->dwfl, look);
	Dwfl_Line *line = module ? dwfl_module_getsrc(module, look) : NULL;
	const char *object = NULL, *name = NULL;
	struct place at = { NULL, 0 };
	char address[24];

	if (line)
		at.file = dwfl_lineinfo(line, NULL, &at.line, NULL, NULL, NULL);
	if (module) {
		name = print_inlined(out, module, look, number, &at);
		object = dwfl_module_info(module, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
		if (!name)
			name = dwfl_module_addrname(module, look);
	}
	snprintf(address, sizeof(address), "%#" PRIx64 " ", (uint64_t)pc);
	print_place(out, number, address, name, at, object);
}

void print_stack(FILE *out, const struct unwinder *u, const struct stack *s)
{
	for (int i = 0; i < s->depth; i++)
		print_frame(out, u, i, s->pc[i], s->is_call[i]);
	if (s->depth == FRAMES_MOST)
		fprintf(out, "  ... cut after %d frames\n", FRAMES_MOST);
}
