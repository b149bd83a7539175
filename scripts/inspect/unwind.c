/* SPDX-License-Identifier: MIT */
#include "unwind.h"

#include <dwarf.h>
#include <string.h>
#include <unistd.h>

#include "scripts/process/modules.h"
#include "scripts/process/say.h"

enum {
	ONLY_THREAD = 1,	/* libdwfl is told of one thread, which stands for the one to unwind */
	CONTEXT_COPIED = 4096,	/* bytes of the stack at a saved context; there may be a million of them */
};

static pid_t next_thread(Dwfl *dwfl, void *arg, void **thread)
{
	(void)dwfl;
	if (*thread)
		return 0;
	*thread = arg;
	return ONLY_THREAD;
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *arg, void **thread)
{
	(void)dwfl;
	*thread = arg;
	return tid == ONLY_THREAD;
}

static bool read_word(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *word, void *arg)
{
	const struct unwinder *u = arg;

	(void)dwfl;
	if (u->copied >= sizeof(*word) && address >= u->copied_from &&
	    address - u->copied_from <= u->copied - sizeof(*word)) {
		memcpy(word, u->copy + (address - u->copied_from), sizeof(*word));
		return true;
	}
	return target_read(u->target, address, word, sizeof(*word));
}

static bool set_registers(Dwfl_Thread *thread, void *arg)
{
	const struct unwinder *u = arg;
	const struct registers *r = &u->registers;

	dwfl_thread_state_register_pc(thread, r->pc);
	if (!u->is_call)
		return dwfl_thread_state_registers(thread, 0, (unsigned)r->count, r->values);
	/* A saved context has only the registers that a function call preserves. */
	for (size_t i = 0; i < u->target->register_count; i++) {
		const unsigned number = u->target->registers[i].number;

		if (!dwfl_thread_state_registers(thread, (int)number, 1, &r->values[number]))
			return false;
	}
	return dwfl_thread_state_registers(thread, (int)target_value(u->target, ENTRY_frame_sp), 1,
					   &r->sp);
}

static int one_frame(Dwfl_Frame *frame, void *arg)
{
	struct unwinder *u = arg;
	struct stack *s = &u->stack;
	bool is_activation;

	if (s->depth == FRAMES_MOST ||
	    !dwfl_frame_pc(frame, &s->pc[s->depth], &is_activation))
		return DWARF_CB_ABORT;
	s->is_call[s->depth] = s->depth == 0 ? u->is_call : !is_activation;
	s->depth++;
	return DWARF_CB_OK;
}

void unwind_context(struct unwinder *u, uint64_t sp, bool whole)
{
	const struct target *t = u->target;
	struct registers *r = &u->registers;

	u->stack.depth = 0;
	u->is_call = true;
	u->copied_from = sp;
	u->copied = source_read_up_to(&t->source, sp, u->copy, whole ? sizeof(u->copy) : CONTEXT_COPIED);
	r->sp = sp + target_value(t, ENTRY_frame_size);
	for (size_t i = 0; i < t->register_count; i++) {
		const struct saved_register *saved = &t->registers[i];

		if (saved->number >= sizeof(r->values) / sizeof(*r->values) ||
		    !read_word(u->dwfl, sp + saved->offset, &r->values[saved->number], u))
			return;
		if (saved->number == target_value(t, ENTRY_frame_pc))
			r->pc = r->values[saved->number];
	}
	dwfl_getthread_frames(u->dwfl, ONLY_THREAD, one_frame, u);
}

bool unwind_is_same(const struct unwinder *u)
{
	static char again[sizeof(u->copy)];

	return source_read_up_to(&u->target->source, u->copied_from, again, u->copied) == u->copied &&
	       memcmp(again, u->copy, u->copied) == 0;
}

bool unwind_stop(struct unwinder *u, int kernel_tid)
{
	const struct source *s = &u->target->source;

	u->stack.depth = 0;
	u->is_call = false;
	u->copied = sizeof(u->copy);
	if (!s->ops->stop(s, kernel_tid, &u->registers, u->copy, &u->copied))
		return false;
	u->copied_from = u->registers.sp;
	return true;
}

void unwind_stopped(struct unwinder *u)
{
	dwfl_getthread_frames(u->dwfl, ONLY_THREAD, one_frame, u);
}

/*
 * An ELF object of this CPU: only libdwfl's tables for the CPU are taken from it.  Without it, libdwfl takes them from
 * the first object of the process that was not removed, and there may be none.
 */
static Elf *of_this_cpu(void)
{
	static Elf *elf;
	const int fd = elf ? -1 : source_open_file("/proc/self/exe");

	if (fd < 0)
		return elf;
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	if (elf)
		elf_cntl(elf, ELF_C_FDDONE);
	close(fd);
	return elf;
}

const char *unwinder_try(struct unwinder *u, const struct target *t)
{
	static const Dwfl_Thread_Callbacks thread_callbacks = {
		.next_thread = next_thread,
		.get_thread = get_thread,
		.memory_read = read_word,
		.set_initial_registers = set_registers,
	};
	const char *why;

	u->target = t;
	why = modules_open(&t->source, &u->dwfl);
	if (why)
		return why;
	if (dwfl_attach_state(u->dwfl, of_this_cpu(), target_is_core(t) ? t->source.pid : target_reader(t), &thread_callbacks,
			      u))
		return NULL;
	why = dwfl_errmsg(-1);
	dwfl_end(u->dwfl);
	return why ? why : "they are gone";
}

void unwinder_open(struct unwinder *u, const struct target *t)
{
	const char *why = unwinder_try(u, t);

	if (why)
		target_die(t, EXIT_OTHER, "%s: its files cannot be read: %s", t->source.name, why);
}

void unwinder_close(struct unwinder *u)
{
	dwfl_end(u->dwfl);
}
