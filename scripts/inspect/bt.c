/* SPDX-License-Identifier: MIT */
/*
 * scripts/inspect/bt.c - fiberize bt: backtraces of the threads.
 *
 * The process goes on meanwhile.  A thread that does not run is unwound from its saved context.  If it
 * has run meanwhile, it is read and unwound again, a few times; then a line says so instead.  A thread that
 * runs, and a native one, is unwound from the registers of its kernel thread.  The thread pointer (TCB)
 * of a kernel thread leads to the record of the thread that runs on it.
 */
#include "bt.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "frames.h"
#include "runtime/base/die.h"
#include "scripts/process/modules.h"
#include "scripts/process/say.h"
#include "scripts/process/text.h"
#include "waits.h"

struct bt {
	const struct target *target;
	FILE *out;
	struct fibers all;
	char **tids;			/* the threads that are wanted; none: all */
	struct unwinder unwinder;
	bool *found;			/* for each of all.list: its stack was printed or put into a group */
	struct group **groups;		/* hash table of groups by stack; NULL: equal stacks are not grouped */
	struct group *first, **last;	/* list of all groups, in the order in which they were found */
	size_t traced;			/* threads whose kernel threads another program traces, so that they have no stack */
	int tracer;			/* that program's pid */
	struct wait waits;		/* of the thread whose stack is in the unwinder */
};

enum { GROUP_LISTS = 1 << 16 };

struct group {
	struct stack *stack;
	const struct fiber *fiber;	/* the first thread with this stack */
	int kernel_tid;
	char *waits;			/* what it waits for */
	size_t count;
	struct group *same_hash, *next;
};

/* ---- output --------------------------------------------------------------------------- */

static void print_head(const struct bt *bt, const struct fiber *f, int kernel_tid, const char *waits)
{
	fprintf(bt->out, "thread %d", f->tid);
	if (*f->name || f->is_main)
		fprintf(bt->out, " \"%s\"", *f->name ? f->name : "main");
	if (f->state == STATE_WAITS)
		fprintf(bt->out, ", waits: %s", waits);
	else if (f->state == STATE_NATIVE)
		fprintf(bt->out, ", native%s%s", *waits ? ", waits: " : "", waits);
	else if (kernel_tid)
		fprintf(bt->out, ", on kernel thread %d%s%s", kernel_tid, *waits ? ", waits: " : "", waits);
	putc('\n', bt->out);
}

/* ---- equal stacks --------------------------------------------------------------------- */

static bool same(const struct stack *a, const struct stack *b)
{
	return a->depth == b->depth &&
	       memcmp(a->pc, b->pc, sizeof(*a->pc) * (size_t)a->depth) == 0;
}

/* The list in the hash table for a stack; the hash is FNV-1a over 64-bit words. */
static struct group **list_of(struct bt *bt, const struct stack *s)
{
	uint64_t hash = 0xcbf29ce484222325;

	for (int i = 0; i < s->depth; i++)
		hash = (hash ^ s->pc[i]) * 0x100000001b3;
	return &bt->groups[(hash ^ hash >> 32) % GROUP_LISTS];
}

/* The group of the stack that is in the unwinder; NULL: none yet, or stacks are not grouped. */
static struct group *group_of(struct bt *bt)
{
	struct group *g = bt->groups ? *list_of(bt, &bt->unwinder.stack) : NULL;

	while (g && !same(g->stack, &bt->unwinder.stack))
		g = g->same_hash;
	return g;
}

static void add_to_group(struct bt *bt, const struct fiber *f, int kernel_tid)
{
	const struct stack *s = &bt->unwinder.stack;
	struct group **list = list_of(bt, s), *g = group_of(bt);

	if (!g) {
		g = calloc(1, sizeof(*g));
		if (!g || !(g->stack = malloc(sizeof(*s))) || !(g->waits = strdup(bt->waits.text)))
			die(EXIT_OTHER, "no memory");
		*g->stack = *s;
		g->fiber = f;
		g->kernel_tid = kernel_tid;
		g->same_hash = *list;
		*list = g;
		*bt->last = g;
		bt->last = &g->next;
	}
	g->count++;
}

static void print_groups(struct bt *bt)
{
	for (struct group *g = bt->first, *next; g; g = next) {
		next = g->next;
		if (g->count > 1)
			fprintf(bt->out, "%zu threads, one of them is ", g->count);
		print_head(bt, g->fiber, g->kernel_tid, g->waits);
		print_stack(bt->out, &bt->unwinder, g->stack);
		free(g->stack);
		free(g->waits);
		free(g);
	}
}

static void found(struct bt *bt, const struct fiber *f, int kernel_tid)
{
	bt->found[f - bt->all.list] = true;
	if (bt->groups) {
		add_to_group(bt, f, kernel_tid);
		return;
	}
	print_head(bt, f, kernel_tid, bt->waits.text);
	print_stack(bt->out, &bt->unwinder, &bt->unwinder.stack);
}

/* ---- the threads ---------------------------------------------------------------------- */

static bool is_wanted(const struct bt *bt, const struct fiber *f)
{
	if (!*bt->tids)
		return true;
	for (char **tid = bt->tids; *tid; tid++)
		if ((int)strtol(*tid, NULL, 0) == f->tid)
			return true;
	return false;
}

static void check_tids(const struct bt *bt)
{
	for (char **tid = bt->tids; *tid; tid++) {
		const char *name = bt->target->source.name;
		char *end;
		long number = strtol(*tid, &end, 0);

		if (*end || !fibers_by_tid(&bt->all, (int)number))
			die(EXIT_USAGE, "bt: %s: no such thread in %s %s; fiberize ps %s%s lists them",
			    *tid, target_is_core(bt->target) ? "core file" : "process", name,
			    target_is_core(bt->target) ? "--core " : "", name);
	}
}

/*
 * Unwind a thread from its saved context, and read what it waits for.  False if it has none or has run since
 * it was listed: the context may be at the same place again, so its wait must be the same one, too.  A queued
 * thread that yields begins no wait, so its stack must be the same one.
 */
static bool by_context(struct bt *bt, const struct fiber *f)
{
	const struct target *t = bt->target;

	if (!f->sp)
		return false;
	unwind_context(&bt->unwinder, f->sp, f->state == STATE_QUEUED);
	if (!group_of(bt))
		wait_of(t, &bt->all, f, NULL, &bt->waits);
	if (f->state == STATE_QUEUED && !unwind_is_same(&bt->unwinder))
		return false;
	if (!fiber_is_same(t, f))
		return false;
	found(bt, f, 0);
	return true;
}

static const char has_ended[] = "has ended";

/* The same for a thread that has run, by what its record says now.  Returns NULL, or why that is impossible. */
static const char *by_new_context(struct bt *bt, struct fiber *f)
{
	enum { TRIES = 64 };

	if (f->state == STATE_NATIVE)
		return task_has_left(f->kernel_tid) ? has_ended : "does not stop";
	for (int i = 0; i < TRIES; i++) {
		if (!fiber_again(bt->target, &bt->all, f))
			return has_ended;
		if (by_context(bt, f))
			return NULL;
	}
	return "has run meanwhile";
}

/* Find the thread that runs on a kernel thread: by its record, or a native one by its kernel tid. */
static struct fiber *thread_on(const struct bt *bt, uint64_t record, int kernel_tid)
{
	for (size_t i = 0; i < bt->all.count; i++) {
		struct fiber *f = &bt->all.list[i];

		if (f->state == STATE_NATIVE ? f->kernel_tid == kernel_tid : f->address == record)
			return f;
	}
	return NULL;
}

/* Is a wanted thread not found yet? Having no saved context, or having run since, it may be on a kernel thread. */
static bool is_running_one_wanted(const struct bt *bt)
{
	for (size_t i = 0; i < bt->all.count; i++)
		if (!bt->found[i] && is_wanted(bt, &bt->all.list[i]))
			return true;
	return false;
}

static bool by_kernel_thread(void *arg, int tid)
{
	struct bt *bt = arg;
	struct unwinder *u = &bt->unwinder;
	const struct target *t = bt->target;
	struct fiber *f;

	if (!unwind_stop(u, tid))
		return true;
	f = thread_on(bt, u->registers.tcb + target_root(t, ENTRY_layout_record), tid);
	if (f && !bt->found[f - bt->all.list] && is_wanted(bt, f)) {
		/* If it had a context when it was listed, its wait is over. */
		if (f->sp) {
			f->state = STATE_RUNS;
			f->waits = false;
		}
		wait_of(t, &bt->all, f, &u->registers, &bt->waits);
		unwind_stopped(u);
		found(bt, f, tid);
	}
	return is_running_one_wanted(bt);
}

/*
 * The pid of another program that keeps this tool from stopping the thread: a kernel thread has one tracer at most.
 * A fiber may be on any kernel thread by now.  0: there is none.
 */
static int tracer_of(const struct bt *bt, const struct fiber *f)
{
	const int pid = bt->target->source.pid;
	int tracer = f->kernel_tid ? task_tracer(pid, f->kernel_tid) : 0;

	for (size_t i = 0; f->state != STATE_NATIVE && !tracer && i < bt->all.tasks.count; i++)
		tracer = task_tracer(pid, bt->all.tasks.list[i].tid);
	return tracer;
}

static void each_stack(struct bt *bt)
{
	const struct source *s = &bt->target->source;

	for (size_t i = 0; i < bt->all.count; i++)
		if (is_wanted(bt, &bt->all.list[i]) && !by_context(bt, &bt->all.list[i]) && target_end(bt->target))
			return;
	if (is_running_one_wanted(bt))
		s->ops->each_thread(s, by_kernel_thread, bt);
	for (size_t i = 0; i < bt->all.count && !target_end(bt->target); i++) {
		struct fiber *f = &bt->all.list[i];
		const char *why = bt->found[i] || !is_wanted(bt, f) ? NULL : by_new_context(bt, f);
		const int tracer = why && why != has_ended && !target_is_core(bt->target) ? tracer_of(bt, f) : 0;

		if (tracer)
			bt->tracer = tracer;
		if (tracer)
			bt->traced++;
		else if (why)
			fprintf(bt->out, "thread %d %s\n", f->tid, why);
	}
}

/* Print why stacks are missing that were wanted, and end the tool, if another program traces the process. */
static void judge_traced(const struct bt *bt)
{
	char name[16];

	if (!bt->traced)
		return;
	task_line(bt->tracer, bt->tracer, "comm", name, sizeof(name));
	text_clean(name);
	die(EXIT_FORBIDDEN, "%s: %zu thread%s not shown, because another program traces the process: %s (process %d)",
	    bt->target->source.name, bt->traced, fz_plural(bt->traced), *name ? name : "?", bt->tracer);
}

const char *bt_thread(const struct target *t, int tid, FILE *out)
{
	char word[16], *tids[] = { word, NULL };
	static struct bt bt;
	const char *why;

	snprintf(word, sizeof(word), "%d", tid);
	bt = (struct bt){ .target = t, .out = out, .tids = tids };
	why = fibers_try(t, &bt.all, false);
	if (why)
		return why;
	natives_add(t, &bt.all);
	bt.found = calloc(bt.all.count + 1, sizeof(*bt.found));
	if (!bt.found)
		die(EXIT_OTHER, "no memory");
	if (!fibers_by_tid(&bt.all, tid))
		why = "the thread has ended";
	else
		why = unwinder_try(&bt.unwinder, t);
	if (!why) {
		each_stack(&bt);
		modules_say_missing(bt.unwinder.dwfl, out, "");
		unwinder_close(&bt.unwinder);
		why = bt.traced ? "another program traces the process" : NULL;
	}
	free(bt.found);
	fibers_free(&bt.all);
	return why;
}

int command_bt(char **words)
{
	static struct bt bt;
	bool group = true, is_core = false;
	enum command_option option;
	struct target t;
	char *value;

	while ((option = option_next("bt", &words, &value)) != OPTION_NONE) {
		if (option == OPTION_bt_core)
			is_core = true;
		else
			group = option == OPTION_bt_group;
	}
	if (!*words)
		wrong_usage("bt", "a process id is needed");
	bt.target = &t;
	bt.out = stdout;
	if (!fibers_open(&t, *words, is_core, &bt.all))
		return 0;
	natives_add(&t, &bt.all);
	bt.tids = words + 1;
	check_tids(&bt);
	bt.found = calloc(bt.all.count + 1, sizeof(*bt.found));
	if (group)
		bt.groups = calloc(GROUP_LISTS, sizeof(*bt.groups));
	if (!bt.found || (group && !bt.groups))
		die(EXIT_OTHER, "no memory");
	bt.last = &bt.first;
	unwinder_open(&bt.unwinder, &t);
	each_stack(&bt);
	target_check(&t);
	print_groups(&bt);
	fflush(stdout);
	modules_say_missing(bt.unwinder.dwfl, stderr, "fiberize: ");
	judge_traced(&bt);
	unwinder_close(&bt.unwinder);
	free(bt.groups);
	free(bt.found);
	fibers_free(&bt.all);
	return 0;
}
