/* SPDX-License-Identifier: MIT */
/*
 * scripts/check/judge.c - judges whether the library can be preloaded into an ELF program, and
 * why not.
 */
#include "program_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libraries.h"
#include "misc.h"
#include "scripts/elf/file.h"
#include "secure.h"

void program_refuse(struct search *s, enum code code, const char *kind, const char *format, ...)
{
	char *text = NULL;
	va_list args;

	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		text = NULL;
	va_end(args);
	s->program->code = code;
	s->program->kind = kind;
	free(s->program->message);
	if (asprintf(&s->program->message, "%s%s", s->whose, text ? text : kind) < 0)
		s->program->message = NULL;
	free(text);
}

static const struct {
	const char *library, *symbol, *name;
} sanitizers[] = {
	{ "libasan.so", "__asan_init", "AddressSanitizer" },
	{ "libtsan.so", "__tsan_init", "ThreadSanitizer" },
	{ "libhwasan.so", "__hwasan_init", "HWAddressSanitizer" },
	{ "liblsan.so", "__lsan_init", "LeakSanitizer" },
	{ "libclang_rt.asan", "__msan_init", "MemorySanitizer" },
	{ "libclang_rt.tsan", "__dfsan_init", "DataFlowSanitizer" },
};

enum { SANITIZERS = sizeof(sanitizers) / sizeof(*sanitizers) };

static void look_for_sanitizer(const char *name, void *arg)
{
	for (size_t i = 0; i < SANITIZERS; i++)
		if (strcmp(name, sanitizers[i].symbol) == 0)
			*(const char **)arg = sanitizers[i].name;
}

/*
 * The name of the sanitizer that o contains, or NULL. A sanitizer's run-time must be in front of all other
 * libraries, and must see each thread as a kernel thread, so it cannot work with fibers.
 */
static const char *sanitizer(const struct object *o)
{
	const char *found = NULL;

	for (size_t i = 0; i < SANITIZERS; i++)
		for (size_t n = 0; n < o->needed_count; n++)
			if (strncmp(o->needed[n], sanitizers[i].library,
				    strlen(sanitizers[i].library)) == 0)
				return strncmp(sanitizers[i].library, "libclang", 8) == 0 ?
					       "a sanitizer of clang's" : sanitizers[i].name;
	object_each_export(o, look_for_sanitizer, &found);
	return found;
}

static bool static_kind(struct search *s, const struct object *o)
{
	static const char why[] = "so that no library can be preloaded into it";

	if (o->has_interpreter && o->interpreter)
		return false;
	if (o->has_interpreter)
		program_refuse(s, CODE_NOEXEC, "damaged", "%s: a damaged program (no readable name of a loader)",
		       o->path);
	else if (o->go)
		program_refuse(s, CODE_STATIC, "Go, static",
		       "%s: statically linked, by Go, %s", o->path, why);
	else if (o->header.e_type == ET_DYN && o->flags_1 & DF_1_PIE)
		program_refuse(s, CODE_STATIC, "static-pie", "%s: statically linked, %s", o->path, why);
	else if (o->header.e_type == ET_DYN && o->soname && strncmp(o->soname, "ld-", 3) == 0)
		program_refuse(s, CODE_STATIC, "loader", "%s: is itself a loader, and what it will start is unknown",
		       o->path);
	else if (o->header.e_type == ET_DYN)
		program_refuse(s, CODE_STATIC, "static or library",
		       "%s: statically linked or a library, %s", o->path, why);
	else
		program_refuse(s, CODE_STATIC, "static", "%s: statically linked, %s", o->path, why);
	return true;
}

static bool other_libc(struct search *s, const struct object *o)
{
	static const char *const others[] = { "linker", "linker64", "ld-uClibc", "ld64-uClibc" };
	const char *name = strrchr(o->interpreter, '/');

	name = name ? name + 1 : o->interpreter;
	if (strncmp(name, "ld-musl-", 8) == 0) {
		program_refuse(s, CODE_LIBC, "musl", "%s: uses musl (%s); fiberize needs glibc", o->path,
		       o->interpreter);
		return true;
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		size_t length = strlen(others[i]);

		if (i < 2 ? strcmp(name, others[i]) != 0 : strncmp(name, others[i], length) != 0)
			continue;
		program_refuse(s, CODE_LIBC, "another libc", "%s: needs %s, which is not glibc's", o->path,
		       o->interpreter);
		return true;
	}
	return false;
}

static bool no_loader(struct search *s, const struct object *o)
{
	struct stat loader;

	if (stat(o->interpreter, &loader) != 0)
		program_refuse(s, CODE_NOTFOUND, "missing loader", "%s: its loader %s does not exist",
			       o->path, o->interpreter);
	else if (!S_ISREG(loader.st_mode))
		program_refuse(s, CODE_NOTFOUND, "missing loader", "%s: its loader %s is %s", o->path, o->interpreter,
			       file_kind(loader.st_mode));
	else
		return false;
	return true;
}

/*
 * The kernel tells the loader of a set-user-ID program, and of others with more rights, not to trust
 * the environment. Such a loader ignores a library in LD_PRELOAD with a path.
 */
bool program_refuse_secure(struct search *s, const char *path)
{
	const char *why = secure_why(path);

	if (why)
		program_refuse(s, CODE_SECURE, why, "%s: %s%s, so that the loader preloads nothing into it",
		       path, strncmp(why, "set", 3) == 0 ? "" : "has ", why);
	return why != NULL;
}

struct versions {
	const struct object *libc;
	const char *missing;
};

static void look_for_version(const char *version, void *arg)
{
	struct versions *v = arg;

	if (!v->missing && !object_defines_version(v->libc, version))
		v->missing = version;
}

/* Refuse o if its libc is too old for the library: the loader would end the program. */
static bool old_libc(struct search *s, struct object *o)
{
	struct object *libc = s->library ? library_open(o, "libc.so.6") : NULL;
	struct versions v = { libc, NULL };

	if (!libc)
		return false;
	object_each_version_needed(s->library, "libc.so.6", look_for_version, &v);
	if (v.missing)
		program_refuse(s, CODE_LIBC, "old glibc", "%s: its libc, %s, has no %s, which fiberize needs",
		       o->path, libc->path, v.missing);
	object_close(libc);
	return v.missing != NULL;
}

static void look_for_ptrace(const char *name, void *arg)
{
	if (strcmp(name, "ptrace") == 0)
		*(bool *)arg = true;
}

static void dormant(struct search *s, const char *why)
{
	free(s->program->dormant);
	if (asprintf(&s->program->dormant,
		     "%s%s: %s; it runs natively, and programs that it starts run with fibers",
		     s->whose,
		     s->program->object->path, why) < 0)
		s->program->dormant = NULL;
}

void program_judge(struct search *s, struct object *o)
{
	unsigned machine = s->library ? s->library->header.e_machine : MACHINE;
	const char *what;
	bool traces = false;

	if (o->elf_class == ELFCLASSNONE) {
		program_refuse(s, CODE_NOEXEC, "damaged", "%s: a damaged program (no readable ELF header)",
		       o->path);
		return;
	}
	if (o->elf_class == ELFCLASS32) {
		program_refuse(s, CODE_32BIT, "32-bit",
		       "%s: a 32-bit program; fiberize is for 64-bit ones", o->path);
		return;
	}
	if (o->header.e_machine != machine || o->header.e_ident[EI_DATA] != ELFDATA2LSB) {
		program_refuse(s, CODE_MACHINE, "other machine", "%s: made for %s, and %s for %s", o->path,
		       o->header.e_machine == machine ? "another byte order" :
							machine_name(o->header.e_machine),
		       s->library ? s->library->path : "fiberize", machine_name(machine));
		return;
	}
	if (o->header.e_type != ET_EXEC && o->header.e_type != ET_DYN) {
		program_refuse(s, CODE_NOEXEC, "not a program", "%s: not a program (ELF type %u)", o->path,
		       o->header.e_type);
		return;
	}
	/* Without this check, a file that ends within its headers would be taken for a static program. */
	if (!o->has_headers) {
		program_refuse(s, CODE_NOEXEC, "damaged", "%s: a damaged program (no readable program headers)",
		       o->path);
		return;
	}
	object_read_dynamic(o);
	if (static_kind(s, o) || other_libc(s, o) || no_loader(s, o))
		return;
	if (o->damage) {
		program_refuse(s, CODE_NOEXEC, "damaged", "%s: a damaged program (%s)", o->path, o->damage);
		return;
	}
	if (program_refuse_secure(s, s->credentials ? s->credentials : o->path) || old_libc(s, o))
		return;
	s->program->kind = o->go ? "Go, dynamic" : "dynamic";
	object_each_import(o, look_for_ptrace, &traces);
	if (o->go)
		dormant(s, "a Go program, whose threads do not use libc");
	/* Only the kernel thread that began to trace may go on; a fiber changes its kernel thread. */
	else if (traces)
		dormant(s, "traces other processes");
	what = sanitizer(o);
	if (what && asprintf(&s->program->native,
			     "%s%s: contains %s, which must see each thread as a kernel thread; the program runs natively",
			     s->whose, o->path, what) < 0)
		s->program->native = NULL;
}
