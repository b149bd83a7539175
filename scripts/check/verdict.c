/* SPDX-License-Identifier: MIT */
/*
 * scripts/check/verdict.c - decides from a report's findings whether the program will gain by fibers.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"
#include "starts.h"

static const char CANNOT[] = "cannot", WILL_NOT[] = "will not gain", MAY[] = "may gain",
		  WILL[] = "will gain";
static const char run_native[] = "run it as it is";

static bool libraries_have(const struct report *r, enum trait trait)
{
	for (size_t i = 1; i < r->libraries.needed_count; i++)
		if (r->findings[i].traits[trait].count)
			return true;
	return false;
}

static void look_for_create(const char *name, void *arg)
{
	if (strcmp(name, "pthread_create") == 0)
		*(bool *)arg = true;
}

static bool defines_create(const struct object *program)
{
	bool found = false;

	object_each_export(program, look_for_create, &found);
	return found;
}

/* Does the program, or a library that it brings with it, load libraries at run time? */
static bool loads(const struct report *r)
{
	for (size_t i = 0; i < r->libraries.needed_count; i++)
		if (r->findings[i].traits[TRAIT_PLUGINS].count &&
		    library_is_own(r->libraries.objects[i]))
			return true;
	return false;
}

/*
 * The first library that the program may load by dlopen and that makes threads, or NULL. Only the
 * program's own libraries count: many programs load a library from the default directories.
 */
static const struct object *loads_threads(const struct report *r)
{
	for (size_t i = r->libraries.needed_count; i < r->libraries.count; i++)
		if (r->findings[i].traits[TRAIT_THREADS].count &&
		    library_is_own(r->libraries.objects[i]))
			return r->libraries.objects[i];
	return NULL;
}

__attribute__((format(printf, 4, 5)))
static void judge(struct report *r, const char *verdict, const char *advice,
		  const char *format, ...)
{
	va_list args;

	va_start(args, format);
	if (vasprintf(&r->reason, format, args) < 0)
		abort();
	va_end(args);
	r->verdict = verdict;
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

static const char *advice_to_run(const struct report *r)
{
	if (r->backend.by == BY_EPOLL && *r->backend.why)
		return "allow io_uring (fiberize(1), CONTAINERS); without it, measure by fiberize bench "
		       "first";
	return r->switch_ns < SWITCH_DEAR_NS ?
		       "run it by fiberize, and compare by fiberize bench" :
		       "measure by fiberize bench first: each switch costs a slow system call here";
}

/* ---- a program that shows no threads of its own -------------------------- */

static int rank(const char *verdict)
{
	return verdict == WILL ? 3 : verdict == MAY ? 2 : verdict == WILL_NOT;
}

static void judge_unknown(struct report *r)
{
	judge(r, MAY, "check the program that it becomes",
	      "it becomes a program whose name only the run shows, so one cannot tell");
}

/* Judge a program by those that it starts: the one with the best verdict counts. */
static void judge_starts(struct report *r)
{
	const struct start *best = &r->starts[0];
	const char *verdict;

	for (size_t i = 1; i < r->start_count; i++)
		if (rank(r->starts[i].verdict) > rank(best->verdict))
			best = &r->starts[i];
	verdict = best->verdict;
	if (verdict == WILL && (r->start_count > 1 || r->starts_unknown))
		verdict = MAY;
	if (r->starts_unknown && rank(verdict) < rank(MAY))
		judge_unknown(r);
	else if (verdict == CANNOT)
		judge(r, WILL_NOT, run_native, "it starts %s: cannot: %s", best->path, best->reason);
	else
		judge(r, verdict, best->advice, "it starts %s: %s", best->path, best->reason);
}

static void judge_without_threads(struct report *r)
{
	const struct object *loaded = loads_threads(r);

	if (loaded)
		judge(r, MAY, advice_to_run(r), "it can load %s, which makes threads", loaded->path);
	else if (r->start_count)
		judge_starts(r);
	else if (r->starts_unknown)
		judge_unknown(r);
	/* A shell loads libraries only for built-in commands, so loads() does not matter. */
	else if (report_has(r, TRAIT_EXECS) && !report_has(r, TRAIT_SERVES) &&
		 (!loads(r) || starts_is_shell(r->program.object->path)))
		judge(r, WILL_NOT, "check the programs that it starts; under fiberize, they have fibers",
		      r->program.script_count ?
			      "a script; its interpreter makes no threads, programs that it starts can" :
			      "it makes no threads itself; programs that it starts can");
	else if (loads(r))
		judge(r, MAY, advice_to_run(r),
		      "it loads libraries at run time, so one cannot tell whether it makes threads");
	else if (report_has(r, TRAIT_PROCESSES))
		judge(r, WILL_NOT, run_native, "processes instead of threads");
	else
		judge(r, WILL_NOT, run_native, "it makes no threads itself");
}

/* ---- all programs -------------------------------------------------------- */

/* Judge by the kind of the program, if that decides. Returns false if its calls must decide. */
static bool judge_kind(struct report *r)
{
	const struct program *p = &r->program;

	if (p->code != CODE_OK)
		judge(r, CANNOT, strcmp(p->kind, "loader") == 0 ?
				 "check the program that it starts; or run it by fiberize --force" :
				 advice_for(p->code), "%s", p->message);
	else if (p->native)
		judge(r, CANNOT, run_native, "%s", p->native);
	else if (p->dormant && p->object->go)
		judge(r, WILL_NOT, run_native,
		      "Go: its goroutines are what fibers are: threads of its own in user space");
	else if (p->dormant)
		judge(r, WILL_NOT,
		      "run it as it is; or by fiberize, for the programs that it starts",
		      "it traces other processes; its own threads stay kernel threads");
	else if (r->backend.by == BY_THREADS)
		judge(r, WILL_NOT, "allow io_uring (fiberize(1), CONTAINERS), or use --backend auto",
		      "only io_uring is wanted, and it cannot be used here: %s", r->backend.why);
	else if (r->libraries.count && defines_create(r->findings[0].object))
		judge(r, WILL_NOT, run_native,
		      "it defines pthread_create itself, so fiberize does not see its threads");
	else if (report_has(r, TRAIT_CPU_BOUND))
		judge(r, WILL_NOT, run_native, "its threads are CPU-bound (OpenMP)");
	else
		return false;
	return true;
}

void report_judge(struct report *r)
{
	const char *run = advice_to_run(r);

	r->is_certain = judge_kind(r);
	if (r->is_certain)
		;
	else if (!r->libraries.count)
		judge(r, MAY, run, "it cannot be read, so its calls are not known");
	else if (report_has(r, TRAIT_THREADS) && report_has(r, TRAIT_LOOP))
		judge(r, MAY, run, "threads and an event loop: waits of its threads cost less");
	else if (report_has(r, TRAIT_THREADS) && r->program.script_count)
		judge(r, MAY, run, "a script; its interpreter can make threads");
	else if (report_has(r, TRAIT_THREADS) && report_has(r, TRAIT_SERVES))
		judge(r, r->backend.by == BY_IO_URING ? WILL : MAY, run,
		      r->backend.by == BY_IO_URING ? "it makes threads, and serves connections" :
			      "it makes threads, and serves connections; its waits by epoll cost more");
	else if (report_has(r, TRAIT_THREADS))
		judge(r, MAY, run, "it makes threads; their waits cost less");
	else if (report_has(r, TRAIT_LOOP))
		judge(r, WILL_NOT, run_native, "event loop");
	/* Most programs have a library that can make threads, so the program must also serve. */
	else if (libraries_have(r, TRAIT_THREADS) && report_has(r, TRAIT_SERVES))
		judge(r, MAY, run, "it serves, and its libraries can make threads");
	else if (libraries_have(r, TRAIT_LOOP) && report_has(r, TRAIT_SERVES))
		judge(r, WILL_NOT, run_native, "event loop, in a library");
	else if (report_has(r, TRAIT_PLUGINS) && report_has(r, TRAIT_SERVES))
		judge(r, MAY, run, "a server that loads plugins, which can make threads");
	else
		judge_without_threads(r);
	if (r->libraries.odd)
		r->advice = "put a library in the place of what is none: the program does not start with it";
	else if (r->libraries.missing_count)
		r->advice = "install what was not found: the program does not start without it";
}
