/* SPDX-License-Identifier: MIT */
#include "fibers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "records.h"
#include "scripts/process/say.h"
#include "scripts/process/text.h"
#include "scripts/trace/tree.h"
#include "waits.h"

struct reader {
	const struct target *target;
	struct records records;
	struct fibers *all;
};

/* Is this the value of fiber_life of a life that is over? */
static bool is_over(const struct target *t, uint64_t life)
{
	return life & (target_value(t, ENTRY_life_ended) | target_value(t, ENTRY_life_free));
}

static int compare(const void *a, const void *b)
{
	return strcmp(a, b);
}

const char *kernel_function(int pid, int kernel_tid)
{
	static void *known;		/* a tree of names, which are few */
	char name[256], *copy;
	char **found;

	task_sleeps_in(pid, kernel_tid, name, sizeof(name));
	if (!*name)
		return "";
	text_clean(name);
	found = tfind(name, &known, compare);
	if (found)
		return *found;
	copy = strdup(name);
	if (!copy || !tsearch(copy, &known, compare))
		die(EXIT_OTHER, "no memory");
	return copy;
}

/*
 * The number of the carrier's processor, or -1.  The carrier's record may still name a processor that
 * the carrier has lost, so the processor's record must name the carrier, too.
 */
static int processor_of(const struct target *t, uint64_t carrier)
{
	const uint64_t p = target_field_at(t, ENTRY_carrier_processor, carrier);
	const uint64_t owner = p ? target_field_at(t, ENTRY_processor_owner, p) : 0;

	if (!p || (owner & ~target_value(t, ENTRY_owner_state_mask)) != carrier)
		return -1;
	return (int)((p - target_root(t, ENTRY_processors)) /
		     target_value(t, ENTRY_processor_size));
}

/*
 * Does the library know that the carrier's fiber is in a call that may wait?  A brief call is noted at the carrier,
 * an announced one at the processor, if no other carrier has taken that.
 */
static bool is_in_call(const struct target *t, uint64_t carrier)
{
	const uint64_t p = target_field_at(t, ENTRY_carrier_processor, carrier);

	return (target_field_at(t, ENTRY_carrier_calls, carrier) & target_value(t, ENTRY_call_bit)) ||
	       (p && target_field_at(t, ENTRY_processor_owner, p) ==
			     (carrier | target_value(t, ENTRY_owner_announced)));
}

static enum state state_of(const struct target *t, const void *record, const struct fiber *f,
			   uint64_t carrier)
{
	if (target_field(t, ENTRY_fiber_kind, record) == target_value(t, ENTRY_kind_wired))
		return STATE_WIRED;
	if (f->waits)
		return STATE_WAITS;
	if (f->sp)
		return STATE_QUEUED;
	return carrier && is_in_call(t, carrier) ? STATE_CALLS : STATE_RUNS;
}

/* CPU time in ns that f has used since the library last added up its CPU time. */
static uint64_t unseen_cpu(const struct target *t, const struct fiber *f, uint64_t carrier)
{
	const bool marked = target_field_at(t, ENTRY_carrier_cpu_marked, carrier) == f->address;
	const uint64_t sampled = target_field_at(t, ENTRY_carrier_cpu_sampled, carrier);
	const uint64_t seen = marked ? target_field_at(t, ENTRY_carrier_cpu_mark, carrier) :
				       target_field_at(t, ENTRY_carrier_cpu_exact, carrier) + sampled;
	const uint64_t now = task_usage(t->source.pid, f->kernel_tid).cpu_ns;

	return (marked || sampled) && now > seen ? now - seen : 0;
}

static void make_room(struct fibers *all, size_t room)
{
	all->room = room;
	all->list = realloc(all->list, room * sizeof(*all->list));
	if (!all->list)
		die(EXIT_OTHER, "no memory for %zu threads", room);
}

void fibers_add(struct fibers *all, const struct fiber *f)
{
	if (all->count == all->room)
		make_room(all, all->room ? 2 * all->room : 64);
	all->list[all->count++] = *f;
}

static int by_tid(const void *a, const void *b)
{
	const struct fiber *x = a, *y = b;

	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

/* Do the tids rise (1) or fall (-1) from each thread of the list to the next? */
static bool is_ordered(const struct fibers *all, int direction)
{
	for (size_t i = 1; i < all->count; i++)
		if (by_tid(&all->list[i], &all->list[i - 1]) != direction)
			return false;
	return true;
}

static void reverse(struct fibers *all)
{
	for (size_t i = 0; i < all->count / 2; i++) {
		const struct fiber f = all->list[i];

		all->list[i] = all->list[all->count - 1 - i];
		all->list[all->count - 1 - i] = f;
	}
}

/* Sort by tid. The library's list begins with the newest thread, so it mostly needs only to be reversed. */
void fibers_sort(struct fibers *all)
{
	size_t kept = 0;

	if (!all->count || is_ordered(all, 1))
		return;
	if (is_ordered(all, -1))
		reverse(all);
	else
		qsort(all->list, all->count, sizeof(*all->list), by_tid);
	for (size_t i = 0; i < all->count; i++)
		if (!kept || all->list[kept - 1].tid != all->list[i].tid)
			all->list[kept++] = all->list[i];
	all->count = kept;
}

static void take(struct reader *r, uint64_t address, const void *record)
{
	const struct target *t = r->target;
	const uint64_t carrier = target_field(t, ENTRY_fiber_carrier, record);
	struct fiber f = {
		.address = address,
		.wait = target_field(t, ENTRY_fiber_wait, record),
		.tid = (int)target_field(t, ENTRY_fiber_tid, record),
		.is_main = target_field(t, ENTRY_fiber_is_main, record),
		.sp = target_field(t, ENTRY_fiber_sp, record),
		.cpu_ns = target_field(t, ENTRY_fiber_cpu_time, record),
		.waits_since = -1,
		.waits_at_least = -1,
		.processor = -1,
		.in_kernel = "",
	};
	const uint64_t wait = f.wait & target_value(t, ENTRY_wait_state_mask);

	f.waits = wait == target_value(t, ENTRY_wait_parked);
	f.state = state_of(t, record, &f, carrier);
	f.waits |= f.state == STATE_WIRED && wait == target_value(t, ENTRY_wait_armed);
	f.switches = (f.wait >> target_value(t, ENTRY_wait_number_shift)) -
		     target_field(t, ENTRY_fiber_first_wait, record);
	memcpy(f.name, (const char *)record + target_value(t, ENTRY_fiber_name), sizeof(f.name));
	f.name[sizeof(f.name) - 1] = '\0';
	text_clean(f.name);
	if (f.state == STATE_RUNS || f.state == STATE_CALLS || f.state == STATE_WIRED) {
		f.kernel_tid = tasks_outer(&r->all->tasks,
					   (int)target_field_at(t, ENTRY_carrier_tid, carrier));
		/* The first thread has ended by an exit system call that the library did not see. */
		if (f.kernel_tid == t->source.pid && !target_is_core(t) && task_has_left(f.kernel_tid))
			return;
		if (!target_is_core(t))
			f.cpu_ns += unseen_cpu(t, &f, carrier);
	}
	r->all->wired += f.state == STATE_WIRED;
	if (f.state == STATE_WIRED)
		f.why = target_text(t, target_field(t, ENTRY_fiber_wired_why, record));
	else if (f.kernel_tid)
		f.processor = processor_of(t, carrier);
	if (f.waits)
		fibers_take_wait(t, record, &f);
	else if (f.kernel_tid && !target_is_core(t))
		f.in_kernel = kernel_function(t->source.pid, f.kernel_tid);
	if (f.state == STATE_RUNS && (*f.in_kernel || (target_is_core(t) && wait_is_in_call(t, &f))))
		f.state = STATE_CALLS;
	fibers_add(r->all, &f);
}

/*
 * Can the record's pointer to the next record be trusted?  The kernel may have zeroed the memory of a thread
 * that has ended.  A record without a next one is the last of the list, or it is not linked yet: it is
 * linked if the record before it leads to it.
 */
static bool leads_on(const struct reader *r, uint64_t address, const void *record)
{
	const struct target *t = r->target;
	const uint64_t before = target_field(t, ENTRY_fiber_prev, record);

	if (!target_field(t, ENTRY_fiber_tid, record))
		return false;
	if (target_field(t, ENTRY_fiber_next, record))
		return true;
	return (before ? target_field_at(t, ENTRY_fiber_next, before) :
			 target_root(t, ENTRY_registry)) == address;
}

/*
 * Read several records at once, at address and at guessed places, and take those that follow each other in
 * the list.  Returns the address of the next record, or 0 at the end of the list.
 */
static uint64_t take_run(struct reader *r, uint64_t address, size_t *ret_taken)
{
	const struct target *t = r->target;
	const size_t got = records_read(&r->records, address);
	uint64_t next = address;
	size_t i = 0;

	for (; i < got && next == r->records.at[i]; i++) {
		const char *record = records_settled(&r->records, i);

		if (!record)
			break;
		if (target_is_core(t) && !target_field(t, ENTRY_fiber_tid, record))
			die(EXIT_CORE, "%s: the core file lacks the memory of the threads, which gdb's "
			    "gcore leaves out; let the kernel write it: kill -ABRT PID, which ends the process",
			    t->source.name);
		if (!leads_on(r, next, record))
			break;
		if (!is_over(t, target_field(t, ENTRY_fiber_life, record)))
			take(r, next, record);
		next = target_field(t, ENTRY_fiber_next, record);
		records_leads(&r->records, i, next);
	}
	*ret_taken = i;
	records_taken(&r->records, i);
	return next;
}

/*
 * Where to go on when the way through the list is lost: at the last thread taken that is still in the list,
 * or else at the beginning.  The thread returned is removed from all->list, and will be taken again.
 */
static uint64_t resume(struct reader *r)
{
	const struct target *t = r->target;
	struct fibers *all = r->all;

	while (all->count) {
		const struct fiber *f = &all->list[--all->count];

		if ((int)target_field_at(t, ENTRY_fiber_tid, f->address) == f->tid &&
		    !is_over(t, target_field_at(t, ENTRY_fiber_life, f->address)))
			return f->address;
	}
	return target_root(t, ENTRY_registry);
}

/*
 * Walk through the list of threads while it changes, and miss no thread that stays in it.
 * - A new thread joins only at the beginning of the list.
 * - A record that has left the list still leads to the records after it, until its memory is used again.
 *   If such a record leads nowhere, the walk goes on at the last thread that is still in the list.
 * - If such a record is in the list again, near the beginning, the walk takes threads twice;
 *   fibers_sort() keeps each once.
 * Returns false if threads came and went so fast that the walk found no end.
 */
static bool walk(struct reader *r)
{
	const struct target *t = r->target;
	struct fibers *all = r->all;
	uint64_t address = target_root(t, ENTRY_registry), steps = 0, most;
	size_t taken;

	all->alive = target_root(t, ENTRY_alive);
	all->processors = target_root(t, ENTRY_processor_count);
	all->open = target_root(t, ENTRY_processors_open);
	/* 0 open processors means that the library follows no CPU limit: all are open. */
	if (!all->open || all->open > all->processors)
		all->open = all->processors;
	/* In a damaged core file the number of threads may be huge, so it is limited. */
	most = 4 * (all->alive < 1 << 24 ? all->alive : 1 << 24) + 4096;
	while (address && steps < most) {
		address = take_run(r, address, &taken);
		steps += taken ? taken : 1;
		if (taken)
			continue;
		if (target_is_core(t) || target_end(t))
			break;
		address = resume(r);
	}
	fibers_sort(all);
	return !address;
}

static bool add_task(void *tasks, int tid)
{
	tasks_add(tasks, (struct task){ tid, tid });
	return true;
}

static void tasks_of(const struct target *t, struct tasks *tasks)
{
	if (!target_is_core(t)) {
		tasks_read(tasks, t->source.pid);
		return;
	}
	t->source.ops->each_thread(&t->source, add_task, tasks);
	tasks_sort(tasks);
}

const char *fibers_try(const struct target *t, struct fibers *all, bool once)
{
	struct reader r = {
		.target = t,
		.all = all,
	};

	memset(all, 0, sizeof(*all));
	tasks_of(t, &all->tasks);
	records_open(&r.records, t, RUN_MOST, once);
	all->is_cut = !walk(&r);
	records_close(&r.records);
	return target_end(t);
}

void fibers_read(const struct target *t, struct fibers *all, bool once)
{
	const char *end = fibers_try(t, all, once);

	if (end)
		die(EXIT_NO_PROCESS, "%s: %s", t->source.name, end);
	if (all->is_cut)
		fprintf(stderr, target_is_core(t) ?
			"fiberize: %s: the list of threads is damaged: some are missing\n" :
			"fiberize: %s: threads come and go too fast: some may be missing\n",
			t->source.name);
}

bool fiber_is_same(const struct target *t, const struct fiber *f)
{
	uint64_t wait, sp;
	const struct piece pieces[] = {
		{ f->address + target_value(t, ENTRY_fiber_wait), &wait, sizeof(wait) },
		{ f->address + target_value(t, ENTRY_fiber_sp), &sp, sizeof(sp) },
	};

	return target_read_pieces(t, pieces, 2) == 2 && wait == f->wait && sp == f->sp;
}

bool fiber_again(const struct target *t, const struct fibers *all, struct fiber *f)
{
	struct fiber again;
	struct fibers one = { .list = &again, .room = 1, .tasks = all->tasks };
	struct reader r = { .target = t, .all = &one };
	const char *record = NULL;

	if (!f->address)
		return false;
	records_open(&r.records, t, 1, false);
	if (records_read(&r.records, f->address))
		record = records_settled(&r.records, 0);
	if (record && (int)target_field(t, ENTRY_fiber_tid, record) == f->tid &&
	    !is_over(t, target_field(t, ENTRY_fiber_life, record)))
		take(&r, f->address, record);
	if (one.count)
		*f = again;
	records_close(&r.records);
	return one.count;
}

bool fibers_dormant(const struct target *t)
{
	char why[DORMANT_MOST];

	if (!target_dormant(t, why))
		return false;
	target_check(t);
	fprintf(stderr, "fiberize: %s: %s, so the library is dormant\n", t->source.name, why);
	return true;
}

bool fibers_open(struct target *t, const char *name, bool is_core, struct fibers *all)
{
	target_open(t, name, is_core);
	if (fibers_dormant(t))
		return false;
	fibers_read(t, all, false);
	return true;
}

void fibers_free(struct fibers *all)
{
	tasks_free(&all->tasks);
	free(all->list);
	free(all->library);
	memset(all, 0, sizeof(*all));
}

struct fiber *fibers_by_tid(const struct fibers *all, int tid)
{
	const struct fiber key = { .tid = tid };

	struct fiber *found = all->count ? bsearch(&key, all->list, all->count, sizeof(key), by_tid) :
					   NULL;

	/* libc's own locks hold the tid of a wired thread's kernel thread. */
	for (size_t i = 0; tid && !found && all->wired && i < all->count; i++)
		if (all->list[i].state == STATE_WIRED &&
		    tasks_outer(&all->tasks, tid) == all->list[i].kernel_tid)
			found = &all->list[i];
	return found;
}
