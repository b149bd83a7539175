/* SPDX-License-Identifier: MIT */
/* tests/unit/trace/test_events.c - the reader of events (scripts/trace), on a ring in this process. */
#include <criterion/criterion.h>
#include <stddef.h>
#include <string.h>

#include "scripts/trace/events.c"

TestSuite(events, .timeout = 120);

enum { MOST = 8 };

static struct {
	uint64_t next;
	struct {
		uint64_t number;	/* 0: the event is unfinished */
		uint64_t tid;
	} events[MOST];
} image;

uint64_t target_root(const struct target *t, enum entry root)
{
	(void)t;
	return root == ENTRY_trace_rings ? (uintptr_t)&image : 0;
}

uint64_t target_field(const struct target *t, enum entry field, const void *record)
{
	const uint64_t *words = record;

	(void)t;
	switch (field) {
	case ENTRY_event_number:
		return words[0];
	case ENTRY_event_tid:
		return words[1];
	case ENTRY_event_time:
		return cycles();
	default:
		return 0;
	}
}

uint64_t target_field_at(const struct target *t, enum entry field, uint64_t address)
{
	(void)t;
	(void)field;
	(void)address;
	return image.next;
}

bool target_read(const struct target *t, uint64_t address, void *buffer, size_t size)
{
	(void)t;
	memcpy(buffer, (const void *)(uintptr_t)address, size);
	return true;
}

bool target_write(const struct target *t, uint64_t address, uint64_t word)
{
	(void)t;
	(void)address;
	(void)word;
	return true;
}

bool target_runs(const struct target *t)
{
	(void)t;
	return true;
}

double cycles_per_second(void)
{
	return 1e9;
}

void die(int code, const char *format, ...)
{
	(void)format;
	exit(code);
}

static uint64_t tids;

static void add_tid(const struct event *event, void *unused)
{
	(void)unused;
	tids += (uint64_t)event->tid;
}

static void finish(uint64_t n)
{
	image.events[n % MOST].tid = 10 * (n + 1);
	image.events[n % MOST].number = n + 1;
}

Test(events, patience_with_each)
{
	static struct target t;
	struct events *e;

	t.entries[ENTRY_event_size].value = sizeof(image.events[0]);
	t.entries[ENTRY_trace_ring_events].value = MOST;
	t.entries[ENTRY_trace_ring_size].value = sizeof(image);
	t.entries[ENTRY_trace_ring_first].value = offsetof(__typeof__(image), events);
	e = events_begin(&t, 0, 1);
	cr_assert(e);
	e->ring_count = 1;
	/* The first is never finished; the second is, after some more looks. */
	image.next = 2;
	for (int i = 0; i <= PATIENCE + PATIENCE / 2; i++) {
		cr_assert(events_read(e, true, add_tid, NULL));
		cr_assert(events_lost(e) <= 1);
	}
	cr_assert(events_lost(e) == 1);
	finish(1);
	events_read(e, true, add_tid, NULL);
	cr_assert(tids == 20);
	/* Patience begins anew also after events that were overwritten. */
	image.next = 3;
	for (int i = 0; i < PATIENCE; i++)
		events_read(e, true, add_tid, NULL);
	cr_assert(events_lost(e) == 1);
	image.next = 2 * MOST;
	for (int i = 0; i < PATIENCE; i++)
		events_read(e, true, add_tid, NULL);
	cr_assert(events_lost(e) == 1 + (MOST - 2));
	events_free(e);
}
