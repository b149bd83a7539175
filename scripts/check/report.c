/* SPDX-License-Identifier: MIT */
#include "report.h"

#include <stdlib.h>
#include <string.h>

#include "starts.h"

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

/* Split the lines into names and sort them. The names are never freed. */
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
	const char *names;		/* whole names, separated by commas and blanks */
} libc_traits[] = {
#define FZ_TRAIT(trait, ...) { TRAIT_##trait, #__VA_ARGS__ },
#include "preload/symbols.def"
};

static const struct {
	enum trait trait;
	const char *prefix;
	const char *shown;		/* what a report prints; "": the symbol's name */
} traits[] = {
#define THREADS(prefix, ...) { TRAIT_THREADS, prefix, "" __VA_ARGS__ },
#define CPU_BOUND(prefix) { TRAIT_CPU_BOUND, prefix, "" },
#define LOOP(prefix) { TRAIT_LOOP, prefix, "" },
#define SERVES(prefix) { TRAIT_SERVES, prefix, "" },
#define EXECS(prefix) { TRAIT_EXECS, prefix, "" },
#include "calls.def"
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

static bool is_among(const char *name, const char *names)
{
	const size_t length = strlen(name);

	for (const char *at = names; *at; at += strspn(at, ", ")) {
		const size_t one = strcspn(at, ", ");

		if (one == length && strncmp(at, name, length) == 0)
			return true;
		at += one;
	}
	return false;
}

static bool has_prefix(const char *name, const char *prefix)
{
	size_t length = strlen(prefix);

	if (prefix[length - 1] == ' ')
		return strlen(name) == length - 1 && strncmp(name, prefix, length - 1) == 0;
	return strncmp(name, prefix, length) == 0;
}

/*
 * Find the function of libc of which name is a variant: for large files (fopen64), checked
 * (__fgets_chk), or of a newer standard (__isoc99_fscanf). Only functions that the library leaves to
 * libc are searched: of those that it takes over, the table lists each variant itself.
 */
static const struct known *find_variant(const char *name)
{
	static const char *const prefixes[] = { "__isoc99_", "__isoc23_", "__" };
	static const char *const suffixes[] = { "_chk", "64" };
	const struct known *found;
	char plain[64];
	size_t length;

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++) {
		if (strncmp(name, prefixes[i], strlen(prefixes[i])) != 0)
			continue;
		name += strlen(prefixes[i]);
		break;
	}
	length = strlen(name);
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(*suffixes); i++) {
		size_t end = strlen(suffixes[i]);

		if (length > end && strcmp(name + length - end, suffixes[i]) == 0)
			length -= end;
	}
	if (length >= sizeof(plain))
		return NULL;
	memcpy(plain, name, length);
	plain[length] = '\0';
	found = find_known(plain);
	return found && !found->taken_over ? found : NULL;
}

static void look_at_import(const char *name, void *arg)
{
	struct findings *f = arg;
	const struct known *call = find_known(name) ?: find_variant(name);

	if (call && rung_waits(call->rung))
		add(&f->calls[call->rung], name);
	for (size_t i = 0; i < sizeof(libc_traits) / sizeof(*libc_traits); i++)
		if (is_among(name, libc_traits[i].names))
			add(&f->traits[libc_traits[i].trait], name);
	for (size_t i = 0; i < sizeof(traits) / sizeof(*traits); i++)
		if (has_prefix(name, traits[i].prefix))
			add(&f->traits[traits[i].trait],
			    *traits[i].shown ? traits[i].shown : name);
}

/*
 * Note each interposed name that the program defines: the loader finds symbols of the program before
 * those of every library, so the library's definition is not used.
 */
static void look_at_export(const char *name, void *arg)
{
	struct findings *f = arg;
	const struct known *call = find_known(name);

	if (call && call->taken_over)
		add(&f->own, name);
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
	if (program)
		object_each_export(o, look_at_export, f);
	sort(&f->own);
	for (int i = 0; i < RUNG_COUNT; i++)
		sort(&f->calls[i]);
	for (int i = 0; i < TRAIT_COUNT; i++)
		sort(&f->traits[i]);
}

/* ---- what it starts ----------------------------------------------------- */

/* Limits, because wrappers may start each other without end. */
enum { STARTS_DEPTH = 3, STARTS_MAX = 16 };

static void make(const char *name, const struct object *library, unsigned depth,
		 struct report *ret);

struct follower {
	struct report *report;
	const struct object *library;
	unsigned depth;
};

static void look_at_start(const char *name, void *arg)
{
	struct follower *f = arg;
	struct report *r = f->report, sub;
	struct start *s = &r->starts[r->start_count];

	if (r->start_count == STARTS_MAX)
		return;
	sub.backend = r->backend;
	sub.switch_ns = r->switch_ns;
	make(name, f->library, f->depth + 1, &sub);
	for (size_t i = 0; i < r->start_count && sub.program.path; i++)
		if (strcmp(r->starts[i].path, sub.program.path) == 0)
			goto out_free;
	/* A script may try several programs, some of which do not exist: leave those out. */
	if (sub.program.path && strcmp(sub.program.path, r->program.path) != 0) {
		*s = (struct start){ strdup(sub.program.path), sub.verdict, strdup(sub.reason),
				    sub.advice };
		if (!s->path || !s->reason)
			abort();
		r->start_count++;
	}
out_free:
	report_free(&sub);
}

/* Does the program only exec another program in its place, and start none in child processes? */
static bool becomes_another(const struct report *r)
{
	const struct names *execs = &r->findings[0].traits[TRAIT_EXECS];

	for (size_t i = 0; i < execs->count; i++)
		if (!strstr(execs->name[i], "exec"))
			return false;
	return execs->count && !report_has(r, TRAIT_PROCESSES);
}

/* ---- the report --------------------------------------------------------- */

static void make(const char *name, const struct object *library, unsigned depth,
		 struct report *r)
{
	struct follower f = { r, library, depth };

	*r = (struct report){ .backend = r->backend, .switch_ns = r->switch_ns };
	program_find(name, library, &r->program);
	if (r->program.object && r->program.code == CODE_OK) {
		libraries_find(r->program.object, &r->libraries);
		if (!known)
			learn();
		r->findings = calloc(r->libraries.count + 1, sizeof(*r->findings));
		r->starts = calloc(STARTS_MAX, sizeof(*r->starts));
		if (!r->findings || !r->starts)
			abort();
		for (size_t i = 0; i < r->libraries.count; i++)
			look_at(r->libraries.objects[i], i == 0, &r->findings[i]);
		if (r->libraries.count && depth < STARTS_DEPTH &&
		    (r->program.script_count || becomes_another(r)))
			r->starts_unknown = starts_find(&r->program, look_at_start, &f);
	}
	report_judge(r);
}

void report_make(const char *name, const struct object *library, struct report *ret)
{
	backend_find(&ret->backend);
	ret->switch_ns = switch_call_ns();
	make(name, library, 0, ret);
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
	for (size_t i = 0; i < r->start_count; i++) {
		free(r->starts[i].path);
		free(r->starts[i].reason);
	}
	free(r->starts);
	free(r->reason);
	free(r->findings);
	libraries_free(&r->libraries);
	program_free(&r->program);
}
