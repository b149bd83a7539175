/* SPDX-License-Identifier: MIT */
#include "fibers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "say.h"

static uint64_t nsec(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* The counter that arch.h calls fz_cycles(). */
static uint64_t cycles(void)
{
#if defined(__x86_64__)
	return __rdtsc();
#elif defined(__aarch64__)
	uint64_t n;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(n));
	return n;
#else
	return 0;
#endif
}

struct reader {
	const struct target *target;
	size_t size;			/* of a record */
	char *record, *again;
	double ns_per_cycle;		/* 0: not known */
	struct fibers *all;
	size_t room;
};

/* Read a record until it does not change.  False: it is not there. */
static bool read_record(struct reader *r, uint64_t address)
{
	enum { TRIES = 8 };
	const struct target *t = r->target;

	if (!target_read(t, address, r->record, r->size))
		return false;
	for (int i = 0; i < TRIES; i++) {
		if (!target_read(t, address, r->again, r->size))
			return false;
		if (target_field(t, ENTRY_fiber_wait, r->record) ==
			    target_field(t, ENTRY_fiber_wait, r->again) &&
		    target_field(t, ENTRY_fiber_sp, r->record) ==
			    target_field(t, ENTRY_fiber_sp, r->again))
			break;
		memcpy(r->record, r->again, r->size);
	}
	return true;
}

static enum state state_of(const struct target *t, const void *record, const struct fiber *f,
			   uint64_t carrier)
{
	const uint64_t wait = target_field(t, ENTRY_fiber_wait, record) &
			      target_value(t, ENTRY_wait_state_mask);

	if (target_field(t, ENTRY_fiber_kind, record) == target_value(t, ENTRY_kind_wired))
		return STATE_WIRED;
	if (wait == target_value(t, ENTRY_wait_parked))
		return STATE_WAITS;
	if (f->sp)
		return STATE_QUEUED;
	return carrier && target_field_at(t, ENTRY_carrier_calls, carrier) &
					  target_value(t, ENTRY_call_bit) ?
		       STATE_CALLS : STATE_RUNS;
}

/* CPU time that the kernel thread has used since the library last looked, ns. */
static uint64_t unseen_cpu(const struct target *t, const struct fiber *f, uint64_t carrier)
{
	const bool marked = f->state == STATE_WIRED || target_root(t, ENTRY_cpu_exact);
	const uint64_t seen = target_field_at(t, marked ? ENTRY_carrier_cpu_mark :
							  ENTRY_carrier_cpu_seen, carrier);
	unsigned long long now = 0;
	char path[64];
	FILE *file;

	if (target_is_core(t))
		return 0;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", t->source.pid, f->kernel_tid);
	file = fopen(path, "re");
	if (!file)
		return 0;
	if (fscanf(file, "%llu", &now) != 1)
		now = 0;
	fclose(file);
	return seen && now > seen ? now - seen : 0;
}

static void take(struct reader *r, uint64_t address)
{
	const struct target *t = r->target;
	const void *record = r->record;
	const uint64_t carrier = target_field(t, ENTRY_fiber_carrier, record);
	const uint64_t since = target_field(t, ENTRY_fiber_since, record);
	const uint64_t deadline = target_field(t, ENTRY_fiber_deadline, record);
	struct fiber f = {
		.address = address,
		.tid = (int)target_field(t, ENTRY_fiber_tid, record),
		.is_main = target_field(t, ENTRY_fiber_is_main, record),
		.sp = target_field(t, ENTRY_fiber_sp, record),
		.cpu_ns = target_field(t, ENTRY_fiber_cpu_time, record),
		.waits_since = -1,
		.deadline = -1,
	};

	f.state = state_of(t, record, &f, carrier);
	memcpy(f.name, (const char *)record + target_value(t, ENTRY_fiber_name), sizeof(f.name));
	f.name[sizeof(f.name) - 1] = '\0';
	if (f.state == STATE_RUNS || f.state == STATE_CALLS || f.state == STATE_WIRED) {
		f.kernel_tid = (int)target_field_at(t, ENTRY_carrier_tid, carrier);
		f.cpu_ns += unseen_cpu(t, &f, carrier);
	}
	if (f.state == STATE_WAITS) {
		f.waits_for = (unsigned)target_field(t, ENTRY_fiber_waits_for, record);
		f.object = target_field(t, ENTRY_fiber_object, record);
		f.signals = target_field(t, ENTRY_fiber_sigwait_set, record);
		if (since && r->ns_per_cycle > 0)
			f.waits_since = (double)(cycles() - since) * r->ns_per_cycle / 1e9;
		if (target_field(t, ENTRY_fiber_timer, record))
			f.deadline = target_is_core(t) ? 0 : ((double)deadline - (double)nsec(CLOCK_MONOTONIC)) / 1e9;
	}
	if (r->all->count == r->room) {
		r->room = r->room ? 2 * r->room : 64;
		r->all->list = realloc(r->all->list, r->room * sizeof(f));
		if (!r->all->list)
			die(EXIT_OTHER, "no memory for %zu threads", r->room);
	}
	r->all->list[r->all->count++] = f;
}

static int by_tid(const void *a, const void *b)
{
	const struct fiber *x = a, *y = b;

	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

/*
 * A record that leaves the list while it is read may lead back to the beginning: no more records
 * than threads live are taken, and each once.
 */
static void walk(struct reader *r)
{
	const struct target *t = r->target;
	const uint64_t ended = target_value(t, ENTRY_life_ended) | target_value(t, ENTRY_life_free);
	struct fibers *all = r->all;
	uint64_t address = target_root(t, ENTRY_registry), seen = 0;
	size_t kept = 0;

	all->alive = target_root(t, ENTRY_alive);
	all->processors = target_root(t, ENTRY_processor_count);
	while (address && seen++ < all->alive + all->alive / 4 + 64 && read_record(r, address)) {
		if (target_is_core(t) && !target_field(t, ENTRY_fiber_tid, r->record))
			die(EXIT_CORE, "%s: the memory of the threads is not in the core file; gdb's "
			    "gcore leaves out what follows a guard page, the kernel does not",
			    t->source.name);
		if (!(target_field(t, ENTRY_fiber_life, r->record) & ended))
			take(r, address);
		address = target_field(t, ENTRY_fiber_next, r->record);
	}
	qsort(all->list, all->count, sizeof(*all->list), by_tid);
	for (size_t i = 0; i < all->count; i++)
		if (!kept || all->list[kept - 1].tid != all->list[i].tid)
			all->list[kept++] = all->list[i];
	all->count = kept;
}

static void read_all(const struct target *t, struct fibers *all)
{
	const uint64_t pause = target_root(t, ENTRY_poll_cycles);
	const size_t size = target_value(t, ENTRY_fiber_size);
	struct reader r = { .target = t, .size = size, .all = all };

	memset(all, 0, sizeof(*all));
	r.record = malloc(size);
	r.again = malloc(size);
	if (!r.record || !r.again)
		die(EXIT_OTHER, "no memory");
	if (pause && !target_is_core(t))
		r.ns_per_cycle = (double)target_value(t, ENTRY_poll_ns) / (double)pause;
	walk(&r);
	free(r.record);
	free(r.again);
	if (!all->count && !target_is_there(t))
		die(EXIT_NO_PROCESS, "%s: the process has ended", t->source.name);
}

bool fibers_open(struct target *t, const char *name, bool is_core, struct fibers *all)
{
	target_open(t, name, is_core);
	if (!target_root(t, ENTRY_started)) {
		fprintf(stderr, "fiberize: %s: no thread was made yet, so the library is dormant\n",
			name);
		return false;
	}
	read_all(t, all);
	return true;
}

void fibers_free(struct fibers *all)
{
	free(all->list);
	memset(all, 0, sizeof(*all));
}

struct fiber *fibers_by_tid(const struct fibers *all, int tid)
{
	const struct fiber key = { .tid = tid };

	return all->count ? bsearch(&key, all->list, all->count, sizeof(key), by_tid) : NULL;
}
