/* SPDX-License-Identifier: MIT */
#include "report.h"

#include <stdlib.h>
#include <string.h>

#include "switch_cost.h"

/* ---- what the library does with a name ---------------------------------- */

/* One line of symbols.def: names separated by commas and blanks. */
static const struct {
	const char *names;
	enum rung rung;
	bool taken_over;
} lines[] = {
#define FZ_SYMBOL(name, rung, cancel, family, topic, version, ...) \
	{ #name " " #__VA_ARGS__, RUNG_##rung, true },
#define FZ_LIBC(rung, topic, ...) { #__VA_ARGS__, RUNG_##rung, false },
#include "preload/symbols.def"
};

static struct known {
	const char *name;
	enum rung rung;
	bool taken_over;
} *known;
static size_t known_count;

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Split the lines into names, sorted; the names live as long as the process. */
static void learn(void)
{
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		char *names = strdup(lines[i].names);

		for (char *name = strtok(names, ", "); name; name = strtok(NULL, ", ")) {
			known = reallocarray(known, known_count + 1, sizeof(*known));
			if (!known)
				abort();
			known[known_count++] = (struct known){ name, lines[i].rung,
							       lines[i].taken_over };
		}
	}
	qsort(known, known_count, sizeof(*known), by_name);
}

static const struct known *find_known(const char *name)
{
	return bsearch(&name, known, known_count, sizeof(*known), by_name);
}

static const struct {
	enum trait trait;
	const char *prefix;
} traits[] = {
#define THREADS(prefix) { TRAIT_THREADS, prefix },
#define COMPUTES(prefix) { TRAIT_COMPUTES, prefix },
#define LOOP(prefix) { TRAIT_LOOP, prefix },
#define PROCESSES(prefix) { TRAIT_PROCESSES, prefix },
#define SERVES(prefix) { TRAIT_SERVES, prefix },
#include "calls.def"
	{ TRAIT_PLUGINS, "dlopen " },
};

/* ---- what an object takes ----------------------------------------------- */

static void add(struct names *names, const char *name)
{
	const char **more;

	for (size_t i = 0; i < names->count; i++)
		if (strcmp(names->name[i], name) == 0)
			return;
	more = realloc(names->name, (names->count + 1) * sizeof(*more));
	if (!more)
		return;
	names->name = more;
	more[names->count++] = name;
}

static bool has_prefix(const char *name, const char *prefix)
{
	size_t length = strlen(prefix);

	if (prefix[length - 1] == ' ')
		return strlen(name) == length - 1 && strncmp(name, prefix, length - 1) == 0;
	return strncmp(name, prefix, length) == 0;
}

static void look_at_import(const char *name, void *arg)
{
	struct findings *f = arg;
	const struct known *call = find_known(name);

	if (call && rung_waits(call->rung))
		add(&f->calls[call->rung], name);
	for (size_t i = 0; i < sizeof(traits) / sizeof(*traits); i++)
		if (has_prefix(name, traits[i].prefix))
			add(&f->traits[traits[i].trait], name);
}

static void sort(struct names *names)
{
	if (names->count)
		qsort(names->name, names->count, sizeof(*names->name), by_name);
}

static void look_at(const struct object *o, bool program, struct findings *f)
{
	f->object = o;
	if (library_is_libc(o))
		return;
	object_each_import(o, look_at_import, f);
	raw_calls_find(o, &f->raw);
	/* Symbols of the program come before those of every library, preloaded ones included. */
	for (size_t i = 0; program && i < known_count; i++)
		if (known[i].taken_over && object_exports(o, known[i].name))
			add(&f->own, known[i].name);
	for (int i = 0; i < RUNG_COUNT; i++)
		sort(&f->calls[i]);
	for (int i = 0; i < TRAIT_COUNT; i++)
		sort(&f->traits[i]);
}

/* ---- the verdict -------------------------------------------------------- */

static bool program_has(const struct report *r, enum trait trait)
{
	return r->libraries.count && r->findings[0].traits[trait].count;
}

static bool libraries_have(const struct report *r, enum trait trait)
{
	for (size_t i = 1; i < r->libraries.count; i++)
		if (r->findings[i].traits[trait].count)
			return true;
	return false;
}

static void judge(struct report *r, const char *verdict, const char *reason, const char *advice)
{
	r->verdict = verdict;
	r->reason = reason;
	r->advice = advice;
}

static const char *advice_for(enum code code)
{
	switch (code) {
	case CODE_STATIC: return "link it dynamically, or use a package that is";
	case CODE_32BIT: return "use a 64-bit build of it";
	case CODE_MACHINE: return "use a build for this machine";
	case CODE_LIBC: return "use a build for glibc 2.34 or newer";
	case CODE_SECURE: return "run a copy without these rights, as the user that it needs";
	case CODE_NOTFOUND: return "give its name or its path, and install what is missing";
	case CODE_LIBRARY: return "install libfiberize.so, or name it by --library";
	default: return "give a program that can be executed";
	}
}

static void judge_program(struct report *r)
{
	const char *run = r->switch_ns < SWITCH_DEAR_NS ?
		"run it by fiberize, and compare by fiberize bench" :
		"measure by fiberize bench first: each switch costs a slow system call here";
	const char *native = "run it as it is";

	if (r->program.code != CODE_OK)
		judge(r, "cannot", r->program.message,
		      strcmp(r->program.kind, "loader") == 0 ?
			      "check the program that it starts; or run it by fiberize --force" :
			      advice_for(r->program.code));
	else if (r->program.native)
		judge(r, "cannot", r->program.native, native);
	else if (r->program.dormant && r->program.object->go)
		judge(r, "will not gain",
		      "Go: its goroutines are what fibers are: threads of its own in user space",
		      native);
	else if (r->program.dormant)
		judge(r, "will not gain",
		      "it traces other processes; programs that it starts run with fibers", run);
	else if (!r->libraries.count)
		judge(r, "may gain", "it cannot be read, so its calls are not known", run);
	else if (object_exports(r->findings[0].object, "pthread_create"))
		judge(r, "will not gain",
		      "it defines pthread_create itself, so fiberize does not see its threads",
		      native);
	else if (program_has(r, TRAIT_COMPUTES))
		judge(r, "will not gain", "its threads are CPU-bound (OpenMP)", native);
	else if (program_has(r, TRAIT_THREADS) && program_has(r, TRAIT_LOOP))
		judge(r, "may gain",
		      "threads and an event loop: waits of its threads cost less",
		      run);
	else if (program_has(r, TRAIT_THREADS) && r->program.script_count)
		judge(r, "may gain", "a script; its interpreter can make threads", run);
	else if (program_has(r, TRAIT_THREADS) && program_has(r, TRAIT_SERVES))
		judge(r, "will gain", "it makes threads, and serves connections", run);
	else if (program_has(r, TRAIT_THREADS))
		judge(r, "may gain", "it makes threads; their waits cost less", run);
	else if (program_has(r, TRAIT_LOOP))
		judge(r, "will not gain", "event loop", native);
	/* Libraries that can make threads are no sign of threads: most programs have one. */
	else if (libraries_have(r, TRAIT_THREADS) && program_has(r, TRAIT_SERVES))
		judge(r, "may gain", "it serves, and its libraries can make threads", run);
	else if (libraries_have(r, TRAIT_LOOP) && program_has(r, TRAIT_SERVES))
		judge(r, "will not gain", "event loop, in a library", native);
	else if (program_has(r, TRAIT_PLUGINS) && program_has(r, TRAIT_SERVES))
		judge(r, "may gain", "a server that loads plugins, which can make threads", run);
	else if (program_has(r, TRAIT_PROCESSES))
		judge(r, "will not gain", "processes instead of threads", native);
	else
		judge(r, "will not gain", "it makes no threads itself", native);
	if (r->libraries.missing_count)
		r->advice = "install what was not found: the program does not start without it";
}

void report_make(const char *name, const struct object *library, struct report *ret)
{
	*ret = (struct report){ .switch_ns = switch_call_ns() };
	program_find(name, library, &ret->program);
	if (ret->program.object && ret->program.code == CODE_OK) {
		libraries_find(ret->program.object, &ret->libraries);
		if (!known)
			learn();
		ret->findings = calloc(ret->libraries.count + 1, sizeof(*ret->findings));
		if (!ret->findings)
			abort();
		for (size_t i = 0; i < ret->libraries.count; i++)
			look_at(ret->libraries.objects[i], i == 0, &ret->findings[i]);
	}
	judge_program(ret);
}

void report_free(struct report *r)
{
	for (size_t i = 0; i < r->libraries.count; i++) {
		for (int rung = 0; rung < RUNG_COUNT; rung++)
			free(r->findings[i].calls[rung].name);
		for (int trait = 0; trait < TRAIT_COUNT; trait++)
			free(r->findings[i].traits[trait].name);
		free(r->findings[i].own.name);
	}
	free(r->findings);
	libraries_free(&r->libraries);
	program_free(&r->program);
}
