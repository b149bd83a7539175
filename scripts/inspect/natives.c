/* SPDX-License-Identifier: MIT */
/*
 * scripts/inspect/natives.c - the kernel threads that run no fiber: native threads of the program, and
 * threads of the library.
 */
#include "fibers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scripts/process/say.h"
#include "scripts/process/text.h"

/* The library's table that tells what each kernel thread is for (runtime/base/role.h). */
struct roles {
	char *entries;
	size_t size, count;
};

static void read_roles(const struct target *t, struct roles *roles)
{
	roles->size = target_value(t, ENTRY_role_size);
	roles->count = target_value(t, ENTRY_role_count);
	roles->entries = malloc(roles->size * roles->count + 1);
	if (!roles->entries)
		die(EXIT_OTHER, "no memory");
	if (!target_read(t, target_value(t, ENTRY_roles), roles->entries, roles->size * roles->count))
		roles->count = 0;
}

static const void *role_of(const struct target *t, const struct roles *roles, int inner)
{
	for (size_t i = 0; i < roles->count; i++)
		if ((int)target_field(t, ENTRY_role_tid, roles->entries + i * roles->size) == inner)
			return roles->entries + i * roles->size;
	return NULL;
}

static void take_wait(const struct target *t, uint64_t address, struct fiber *f)
{
	const size_t size = target_value(t, ENTRY_fiber_size);
	char *record = malloc(size);
	uint64_t state;

	if (!record)
		die(EXIT_OTHER, "no memory");
	if (target_read(t, address, record, size)) {
		f->wait = target_field(t, ENTRY_fiber_wait, record);
		state = f->wait & target_value(t, ENTRY_wait_state_mask);
		f->address = address;
		f->waits = state == target_value(t, ENTRY_wait_armed);
		if (f->waits)
			fibers_take_wait(t, record, f);
	}
	free(record);
}

static void add_task(const struct target *t, struct fibers *all, const struct roles *roles,
		     const struct task *task)
{
	const void *role = role_of(t, roles, task->inner);
	const int pid = t->source.pid;
	const bool lives = !target_is_core(t);
	const struct task_usage usage = lives ? task_usage(pid, task->tid) :
						(struct task_usage){ 0, 0 };
	struct fiber f = {
		.tid = task->inner,
		.kernel_tid = task->tid,
		.state = STATE_NATIVE,
		.is_main = task->tid == pid,
		.cpu_ns = usage.cpu_ns,
		.switches = usage.switches,
		.waits_since = -1,
		.waits_at_least = -1,
		.processor = -1,
		.in_kernel = "",
	};

	if (lives)
		task_line(pid, task->tid, "comm", f.name, sizeof(f.name));
	/* Leave out a thread that has ended, and the kernel's own threads for io_uring ("iou-..."). */
	if (lives && (!*f.name || strncmp(f.name, "iou-", 4) == 0 || (f.is_main && task_has_left(pid))))
		return;
	text_clean(f.name);
	if (role) {
		f.why = target_text(t, target_field(t, ENTRY_role_why, role));
		if (target_field(t, ENTRY_role_kind, role) != target_value(t, ENTRY_role_native))
			f.state = STATE_LIBRARY;
		else
			take_wait(t, target_field(t, ENTRY_role_record, role), &f);
	}
	if (lives && !f.waits)
		f.in_kernel = kernel_function(pid, task->tid);
	if (f.state == STATE_LIBRARY)
		all->library[all->library_count++] = f;
	else
		fibers_add(all, &f);
}

static int by_number(const void *a, const void *b)
{
	const int x = *(const int *)a, y = *(const int *)b;

	return x < y ? -1 : x > y;
}

void natives_add(const struct target *t, struct fibers *all)
{
	int *taken = malloc((all->count + 1) * sizeof(*taken));
	struct roles roles;
	size_t count = 0;

	all->library = calloc(all->tasks.count + 1, sizeof(*all->library));
	if (!taken || !all->library)
		die(EXIT_OTHER, "no memory for %zu threads", all->count);
	read_roles(t, &roles);
	for (size_t i = 0; i < all->count; i++)
		if (all->list[i].kernel_tid)
			taken[count++] = all->list[i].kernel_tid;
	qsort(taken, count, sizeof(*taken), by_number);
	for (size_t i = 0; i < all->tasks.count; i++)
		if (!bsearch(&all->tasks.list[i].tid, taken, count, sizeof(*taken), by_number))
			add_task(t, all, &roles, &all->tasks.list[i]);
	free(roles.entries);
	free(taken);
	fibers_sort(all);
	all->has_natives = true;
}

int monitor_of(const struct target *t, const struct tasks *tasks)
{
	struct roles roles;
	int tid = 0;

	read_roles(t, &roles);
	for (size_t i = 0; i < roles.count; i++) {
		const void *role = roles.entries + i * roles.size;

		if (target_field(t, ENTRY_role_kind, role) == target_value(t, ENTRY_role_monitor))
			tid = tasks_outer(tasks, (int)target_field(t, ENTRY_role_tid, role));
	}
	free(roles.entries);
	return tid;
}
