/* SPDX-License-Identifier: MIT */
/*
 * scripts/inspect/bt.c - fiberize bt: backtraces of the threads.
 *
 * The process goes on meanwhile.  A thread that does not run is unwound from its saved context; if it
 * has run before it was unwound completely, a line says so instead.  A thread that runs, and a native
 * one, is unwound from the registers of its kernel thread.  The thread pointer (TCB) of a kernel
 * thread leads to the record of the thread that runs on it.
 */
#include "bt.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "frames.h"
#include "scripts/process/say.h"
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
	struct wait waits;		/* of a thread on a kernel thread, as that has stopped */
};

enum { GROUP_LISTS = 1 << 16 };

struct group {
	struct stack *stack;
	const struct fiber *fiber;	/* the first thread with this stack */
	int kernel_tid;
	char *waits;			/* what it waits for; NULL: not read yet */
	size_t count;
	struct group *same_hash, *next;
};

/* ---- output --------------------------------------------------------------------------- */

/* waits: what the thread waits for, or NULL if that is to be read. */
static void print_head(const struct bt *bt, const struct fiber *f, int kernel_tid, const char *waits)
{
	struct wait w;

	if (!waits) {
		wait_of(bt->target, &bt->all, f, NULL, &w);
		waits = w.text;
	}
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

static void add_to_group(struct bt *bt, const struct fiber *f, int kernel_tid)
{
	const struct stack *s = &bt->unwinder.stack;
	struct group **list = list_of(bt, s), *g = *list;

	while (g && !same(g->stack, s))
		g = g->same_hash;
	if (!g) {
		g = calloc(1, sizeof(*g));
		if (!g || !(g->stack = malloc(sizeof(*s))))
			die(EXIT_OTHER, "no memory");
		*g->stack = *s;
		g->fiber = f;
		g->kernel_tid = kernel_tid;
		if (kernel_tid && !(g->waits = strdup(bt->waits.text)))
			die(EXIT_OTHER, "no memory");
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
	print_head(bt, f, kernel_tid, kernel_tid ? bt->waits.text : NULL);
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

/* Unwind a thread from its context at sp. False if sp is 0 or the thread has run meanwhile. */
static bool by_context(struct bt *bt, const struct fiber *f, uint64_t sp)
{
	if (!sp)
		return false;
	unwind_context(&bt->unwinder, sp);
	if (target_field_at(bt->target, ENTRY_fiber_sp, f->address) != sp)
		return false;
	found(bt, f, 0);
	return true;
}

/* Find the thread that runs on a kernel thread: by its record, or a native one by its kernel tid. */
static const struct fiber *thread_on(const struct bt *bt, uint64_t record, int kernel_tid)
{
	for (size_t i = 0; i < bt->all.count; i++) {
		const struct fiber *f = &bt->all.list[i];

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
	const struct fiber *f;

	if (!unwind_stop(u, tid))
		return true;
	f = thread_on(bt, u->registers.tcb + target_root(t, ENTRY_layout_record), tid);
	if (f && !bt->found[f - bt->all.list] && is_wanted(bt, f)) {
		wait_of(t, &bt->all, f, &u->registers, &bt->waits);
		unwind_stopped(u);
		found(bt, f, tid);
	}
	return is_running_one_wanted(bt);
}

static void each_stack(struct bt *bt)
{
	const struct source *s = &bt->target->source;

	for (size_t i = 0; i < bt->all.count; i++)
		if (is_wanted(bt, &bt->all.list[i]))
			by_context(bt, &bt->all.list[i], bt->all.list[i].sp);
	if (is_running_one_wanted(bt))
		s->ops->each_thread(s, by_kernel_thread, bt);
	for (size_t i = 0; i < bt->all.count; i++) {
		const struct fiber *f = &bt->all.list[i];

		if (!bt->found[i] && is_wanted(bt, f) &&
		    !by_context(bt, f, target_field_at(bt->target, ENTRY_fiber_sp, f->address)))
			fprintf(bt->out, "thread %d has run meanwhile\n", f->tid);
	}
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
		unwinder_close(&bt.unwinder);
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
	unwinder_close(&bt.unwinder);
	free(bt.groups);
	free(bt.found);
	fibers_free(&bt.all);
	return 0;
}
