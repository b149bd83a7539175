/* SPDX-License-Identifier: MIT */
/*
 * scripts/inspect/bt.c - fiberize bt: backtraces of threads that do not run.
 *
 * libdwfl unwinds.  It gets each thread's registers from the saved context, and memory from the
 * process, which goes on meanwhile: a thread that has run since is said to have.
 */
#include "commands.h"

#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fibers.h"
#include "say.h"
#include "waits.h"

enum { FRAMES_MOST = 256 };

struct stack {
	uint64_t pc[FRAMES_MOST];	/* of a caller: the address before it is the call */
	bool is_call[FRAMES_MOST];
	int depth;
};

struct bt {
	const struct target *target;
	struct fibers all;
	const struct fiber *now;	/* the thread that libdwfl unwinds */
	struct stack stack;
	Dwfl *dwfl;
	bool group;
};

/* ---- what libdwfl asks for ------------------------------------------------------------ */

static pid_t next_thread(Dwfl *dwfl, void *arg, void **thread)
{
	struct bt *bt = arg;

	(void)dwfl;
	if (*thread)
		return 0;
	*thread = bt;
	return bt->now->tid;
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *arg, void **thread)
{
	struct bt *bt = arg;

	(void)dwfl;
	*thread = bt;
	return tid == bt->now->tid;
}

static bool read_word(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *word, void *arg)
{
	struct bt *bt = arg;

	(void)dwfl;
	return target_read(bt->target, address, word, sizeof(*word));
}

static bool set_registers(Dwfl_Thread *thread, void *arg)
{
	struct bt *bt = arg;
	const struct target *t = bt->target;
	Dwarf_Word sp = bt->now->sp + target_value(t, ENTRY_frame_size), value;

	for (size_t i = 0; i < t->register_count; i++) {
		const struct saved_register *r = &t->registers[i];

		if (!target_read(t, bt->now->sp + r->offset, &value, sizeof(value)))
			return false;
		if (r->number == target_value(t, ENTRY_frame_pc))
			dwfl_thread_state_register_pc(thread, value);
		if (!dwfl_thread_state_registers(thread, (int)r->number, 1, &value))
			return false;
	}
	return dwfl_thread_state_registers(thread, (int)target_value(t, ENTRY_frame_sp), 1, &sp);
}

static const Dwfl_Thread_Callbacks thread_callbacks = {
	.next_thread = next_thread,
	.get_thread = get_thread,
	.memory_read = read_word,
	.set_initial_registers = set_registers,
};

static int one_frame(Dwfl_Frame *frame, void *arg)
{
	struct stack *s = arg;
	bool is_activation;

	if (s->depth == FRAMES_MOST ||
	    !dwfl_frame_pc(frame, &s->pc[s->depth], &is_activation))
		return DWARF_CB_ABORT;
	/* The first frame is a saved context: its address is where a call returns to. */
	s->is_call[s->depth] = s->depth == 0 || !is_activation;
	s->depth++;
	return DWARF_CB_OK;
}

static void open_process(struct bt *bt)
{
	static char *debug_path;
	static const Dwfl_Callbacks callbacks = {
		.find_elf = dwfl_linux_proc_find_elf,
		.find_debuginfo = dwfl_standard_find_debuginfo,
		.debuginfo_path = &debug_path,
	};

	bt->dwfl = dwfl_begin(&callbacks);
	if (!bt->dwfl || dwfl_linux_proc_report(bt->dwfl, bt->target->pid) != 0 ||
	    dwfl_report_end(bt->dwfl, NULL, NULL) != 0)
		die(EXIT_OTHER, "%d: its files cannot be read: %s", bt->target->pid,
		    dwfl_errmsg(-1));
	if (!dwfl_attach_state(bt->dwfl, NULL, bt->target->pid, &thread_callbacks, bt))
		die(EXIT_OTHER, "%d: %s", bt->target->pid, dwfl_errmsg(-1));
}

/* ---- output --------------------------------------------------------------------------- */

/* A place in the source, as far as debug information tells. */
struct place {
	const char *file;
	int line;
};

static void print_place(int number, const char *address, const char *name, struct place at,
			const char *object)
{
	printf("  #%-3d %s%s", number, address, name ? name : "??");
	if (at.file)
		printf(" at %s:%d", at.file, at.line);
	else if (object)
		printf(" in %s", object);
	putchar('\n');
}

static Dwarf_Word number_of(Dwarf_Die *die, unsigned name)
{
	Dwarf_Attribute attribute;
	Dwarf_Word value;

	return dwarf_formudata(dwarf_attr(die, name, &attribute), &value) ? 0 : value;
}

/* Print the functions inlined at pc, innermost first; *at becomes the place in their caller. */
static void print_inlined(Dwfl_Module *module, Dwarf_Addr pc, int number, struct place *at)
{
	Dwarf_Addr bias;
	Dwarf_Die *unit = dwfl_module_addrdie(module, pc, &bias);
	Dwarf_Die *innermost = NULL, *scopes = NULL, function;
	const int count = unit ? dwarf_getscopes(unit, pc - bias, &innermost) : 0;
	/* What contains the innermost scope in the code, and not where it was written. */
	const int inlined = count > 0 ? dwarf_getscopes_die(innermost, &scopes) : 0;
	Dwarf_Files *files = NULL;
	size_t file_count = 0;

	if (unit)
		dwarf_getsrcfiles(unit, &files, &file_count);
	for (int i = 0; i < inlined; i++) {
		const size_t file = number_of(&scopes[i], DW_AT_call_file);

		function = scopes[i];
		if (dwarf_tag(&function) != DW_TAG_inlined_subroutine)
			continue;
		print_place(number, "(inlined) ", dwarf_diename(&function), *at, NULL);
		at->line = (int)number_of(&function, DW_AT_call_line);
		at->file = file && file < file_count ? dwarf_filesrc(files, file, NULL, NULL) : NULL;
	}
	free(innermost);
	free(scopes);
}

static void print_frame(const struct bt *bt, int number, Dwarf_Addr pc, bool is_call)
{
	const Dwarf_Addr look = pc - is_call;
	Dwfl_Module *module = dwfl_addrmodule(bt->dwfl, look);
	Dwfl_Line *line = module ? dwfl_module_getsrc(module, look) : NULL;
	const char *object = NULL, *name = NULL;
	struct place at = { NULL, 0 };
	char address[24];

	if (line)
		at.file = dwfl_lineinfo(line, NULL, &at.line, NULL, NULL, NULL);
	if (module) {
		print_inlined(module, look, number, &at);
		object = dwfl_module_info(module, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
		name = dwfl_module_addrname(module, look);
	}
	snprintf(address, sizeof(address), "%#" PRIx64 " ", (uint64_t)pc);
	print_place(number, address, name, at, object);
}

static void print_stack(const struct bt *bt, const struct stack *s)
{
	for (int i = 0; i < s->depth; i++)
		print_frame(bt, i, s->pc[i], s->is_call[i]);
	if (s->depth == FRAMES_MOST)
		printf("  ... cut after %d frames\n", FRAMES_MOST);
}

static void print_head(const struct bt *bt, const struct fiber *f)
{
	struct wait w;

	wait_of(bt->target, &bt->all, f, &w);
	printf("thread %d", f->tid);
	if (*f->name || f->is_main)
		printf(" \"%s\"", *f->name ? f->name : "main");
	if (f->state == STATE_WAITS)
		printf(", waits: %s", w.text);
	else if (f->kernel_tid)
		printf(", on kernel thread %d (gdb -p %d shows it)", f->kernel_tid,
		       bt->target->pid);
	printf("\n");
}

/* ---- the threads ---------------------------------------------------------------------- */

static bool is_still_there(const struct bt *bt, const struct fiber *f)
{
	return target_field_at(bt->target, ENTRY_fiber_sp, f->address) == f->sp;
}

static void unwind(struct bt *bt, const struct fiber *f)
{
	bt->stack.depth = 0;
	bt->now = f;
	dwfl_getthread_frames(bt->dwfl, f->tid, one_frame, &bt->stack);
}

struct group {
	struct stack stack;
	const struct fiber *first;
	size_t count;
	struct group *next;
};

static bool same(const struct stack *a, const struct stack *b)
{
	return a->depth == b->depth &&
	       memcmp(a->pc, b->pc, sizeof(*a->pc) * (size_t)a->depth) == 0;
}

static void add_to_group(struct bt *bt, struct group **groups, const struct fiber *f)
{
	struct group *g = *groups;

	while (g && !same(&g->stack, &bt->stack))
		g = g->next;
	if (!g) {
		g = calloc(1, sizeof(*g));
		if (!g)
			die(EXIT_OTHER, "no memory");
		g->stack = bt->stack;
		g->first = f;
		g->next = *groups;
		*groups = g;
	}
	g->count++;
}

static void print_groups(struct bt *bt, struct group *groups)
{
	for (struct group *g = groups, *next; g; g = next) {
		next = g->next;
		if (g->count > 1)
			printf("%zu threads, one of them is ", g->count);
		print_head(bt, g->first);
		print_stack(bt, &g->stack);
		free(g);
	}
}

static bool is_wanted(char **tids, const struct fiber *f)
{
	if (!*tids)
		return true;
	for (; *tids; tids++)
		if ((int)strtol(*tids, NULL, 0) == f->tid)
			return true;
	return false;
}

static void check_tids(const struct bt *bt, char **tids)
{
	for (; *tids; tids++) {
		char *end;
		long tid = strtol(*tids, &end, 0);

		if (*end || !fibers_by_tid(&bt->all, (int)tid))
			die(EXIT_USAGE, "bt: %s: no such thread in process %d; fiberize ps %d lists them",
			    *tids, bt->target->pid, bt->target->pid);
	}
}

int command_bt(char **words)
{
	struct group *groups = NULL;
	struct bt bt = { .group = true };
	struct target t;

	if (*words && strcmp(*words, "--each") == 0) {
		bt.group = false;
		words++;
	}
	if (!*words || **words == '-')
		die(EXIT_USAGE, "bt: %s; fiberize bt [--each] PID [TID...]",
		    *words ? "no such option" : "a process id is needed");
	bt.target = &t;
	if (!fibers_open(&t, *words++, &bt.all))
		return 0;
	check_tids(&bt, words);
	open_process(&bt);
	for (size_t i = 0; i < bt.all.count; i++) {
		const struct fiber *f = &bt.all.list[i];

		if (!is_wanted(words, f))
			continue;
		bt.stack.depth = 0;
		if (f->sp)
			unwind(&bt, f);
		if (f->sp && !is_still_there(&bt, f))
			printf("thread %d has run meanwhile\n", f->tid);
		else if (f->sp && bt.group) {
			add_to_group(&bt, &groups, f);
		} else {
			print_head(&bt, f);
			print_stack(&bt, &bt.stack);
		}
	}
	print_groups(&bt, groups);
	dwfl_end(bt.dwfl);
	fibers_free(&bt.all);
	return 0;
}
