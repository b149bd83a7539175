/* SPDX-License-Identifier: MIT */
#include "events.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cycles.h"
#include "scripts/process/say.h"

/*
 * The process writes events until the cycle count trace_until, which this tool sets: that is the permission
 * to write. It is renewed each `renewal` seconds.
 */
static const double renewal = 0.1;
/* The first permission, in cycles: some seconds, which is longer than cycles_per_second() takes. */
static const uint64_t a_while = (uint64_t)1 << 33;
/* Hold back each event for so many seconds, because another thread may still be writing an earlier event. */
static const double settling = 0.002;
/* An event that was found unfinished so often counts as lost. */
enum { PATIENCE = 100 };

struct ring {
	uint64_t next;			/* number of the event to read next */
	int stuck;			/* how often it was found unfinished */
};

struct events {
	const struct target *t;
	double cycles_per_second;
	double permission;
	uint64_t begun;			/* when tracing began, in cycles */
	uint64_t until, renewed;	/* the last permission, and when it was written; cycles */
	uint64_t address;		/* of the rings in the process; 0: there are none yet */
	struct ring *rings;
	size_t ring_count;
	uint64_t lost;
	double read;			/* all events until this time (s) have been read */
	size_t size, most;		/* bytes of an event; events in a ring */
	char *first, *second;		/* two copies of a ring's new events */
	struct event *list;
	size_t count, room;
};

static bool renew(struct events *e)
{
	const uint64_t now = cycles();

	if (e->until && (double)(now - e->renewed) < renewal * e->cycles_per_second)
		return target_runs(e->t);
	e->renewed = now;
	e->until = now + (uint64_t)(e->permission * e->cycles_per_second);
	return target_write(e->t, target_value(e->t, ENTRY_trace_until), e->until);
}

static uint64_t ring_at(const struct events *e, size_t which)
{
	return e->address + which * target_value(e->t, ENTRY_trace_ring_size);
}

/* Find the rings, which the process makes at its first event.  With skip, ignore the events in them now. */
static void find_rings(struct events *e, bool skip)
{
	const uint64_t rings = target_root(e->t, ENTRY_trace_rings);

	if (e->address || !rings)
		return;
	e->address = rings;
	e->ring_count = target_root(e->t, ENTRY_processor_count) + 1;
	e->rings = calloc(e->ring_count, sizeof(*e->rings));
	if (!e->rings)
		die(EXIT_OTHER, "no memory");
	for (size_t i = 0; i < e->ring_count && skip; i++)
		e->rings[i].next = target_field_at(e->t, ENTRY_trace_ring_next, ring_at(e, i));
}

struct events *events_begin(const struct target *t, uint64_t origin, double permission)
{
	struct events *e = calloc(1, sizeof(*e));

	if (!e)
		die(EXIT_OTHER, "no memory");
	e->t = t;
	e->permission = permission;
	e->size = target_value(t, ENTRY_event_size);
	e->most = target_value(t, ENTRY_trace_ring_events);
	e->first = malloc(e->size * e->most);
	e->second = malloc(e->size * e->most);
	if (!e->first || !e->second)
		die(EXIT_OTHER, "no memory");
	find_rings(e, true);
	/* Give the first permission at once, before it is known how many cycles a second has. */
	e->begun = origin ? origin : cycles();
	if (!target_write(t, target_value(t, ENTRY_trace_until), cycles() + a_while)) {
		events_free(e);
		return NULL;
	}
	e->cycles_per_second = cycles_per_second();
	renew(e);
	return e;
}

uint64_t events_origin(const struct events *e)
{
	return e->begun;
}

double events_time(const struct events *e)
{
	return (double)(int64_t)(cycles() - e->begun) / e->cycles_per_second;
}

uint64_t events_lost(const struct events *e)
{
	return e->lost + target_root(e->t, ENTRY_trace_lost);
}

/* ---- reading -------------------------------------------------------------------------- */

static void take(struct events *e, int processor, const char *record)
{
	const struct target *t = e->t;
	struct event *event;

	if (e->count == e->room) {
		e->room = e->room ? 2 * e->room : 4096;
		e->list = realloc(e->list, e->room * sizeof(*e->list));
		if (!e->list)
			die(EXIT_OTHER, "no memory for %zu events", e->room);
	}
	event = &e->list[e->count++];
	*event = (struct event){
		.time = (double)(int64_t)(target_field(t, ENTRY_event_time, record) - e->begun) /
			e->cycles_per_second,
		.processor = processor,
		.tid = (int)target_field(t, ENTRY_event_tid, record),
		.other = (int)target_field(t, ENTRY_event_other, record),
		.fd = (int)target_field(t, ENTRY_event_fd, record),
		.kind = (unsigned)target_field(t, ENTRY_event_kind, record),
		.what = (unsigned)target_field(t, ENTRY_event_what, record),
		.how = (unsigned)target_field(t, ENTRY_event_how, record),
		.opcode = (unsigned)target_field(t, ENTRY_event_opcode, record),
		.caller = target_field(t, ENTRY_event_caller, record),
		.site = target_field(t, ENTRY_event_site, record),
		.fiber = target_field(t, ENTRY_event_fiber, record),
	};
}

/* Copy events [from, to) of the ring at address into copy, each to the place that it has in the ring. */
static bool copy_events(const struct events *e, uint64_t address, uint64_t from, uint64_t to,
			char *copy)
{
	address += target_value(e->t, ENTRY_trace_ring_first);
	while (from < to) {
		const uint64_t place = from % e->most;
		const uint64_t n = to - from < e->most - place ? to - from : e->most - place;

		if (!target_read(e->t, address + place * e->size, copy + place * e->size,
				 n * e->size))
			return false;
		from += n;
	}
	return true;
}

/*
 * Read the new events of a ring, in the order that runtime/sched/trace.h requires: first the numbers (in the
 * first copy), then the events (in the second copy), and last `next` again, which tells what was overwritten.
 */
static bool read_ring(struct events *e, size_t which, uint64_t address)
{
	struct ring *r = &e->rings[which];
	const uint64_t next = target_field_at(e->t, ENTRY_trace_ring_next, address);
	uint64_t after;

	if (next < r->next)
		return false;
	if (next - r->next > e->most) {
		e->lost += next - r->next - e->most;
		r->next = next - e->most;
		r->stuck = 0;
	}
	if (!copy_events(e, address, r->next, next, e->first) ||
	    !copy_events(e, address, r->next, next, e->second))
		return false;
	after = target_field_at(e->t, ENTRY_trace_ring_next, address);
	for (; r->next < next; r->next++, r->stuck = 0) {
		const size_t place = (r->next % e->most) * e->size;

		if (after > r->next + e->most) {
			e->lost++;
		} else if (target_field(e->t, ENTRY_event_number, e->first + place) == r->next + 1) {
			take(e, (int)which - 1, e->second + place);
		} else if (++r->stuck > PATIENCE) {
			e->lost++;
		} else {
			break;
		}
	}
	return true;
}

static int by_time(const void *a, const void *b)
{
	const struct event *x = a, *y = b;

	return x->time < y->time ? -1 : x->time > y->time;
}

bool events_read(struct events *e, bool all, void (*each)(const struct event *, void *), void *arg)
{
	const double horizon = events_time(e) - settling;
	const bool lives = all || renew(e);
	size_t done;

	find_rings(e, false);
	for (size_t i = 0; i < e->ring_count; i++)
		if (!read_ring(e, i, ring_at(e, i)))
			break;
	if (target_runs(e->t))
		e->read = horizon + settling;
	if (!e->count)
		return lives;
	qsort(e->list, e->count, sizeof(*e->list), by_time);
	for (done = 0; done < e->count && (all || e->list[done].time <= horizon); done++)
		if (e->list[done].time >= 0)
			each(&e->list[done], arg);
	memmove(e->list, e->list + done, (e->count - done) * sizeof(*e->list));
	e->count -= done;
	return lives;
}

double events_unread(const struct events *e)
{
	return e->address && !target_runs(e->t) ? events_time(e) - e->read : 0;
}

void events_stop(struct events *e)
{
	/* If another tool has set the permission since, leave it. */
	if (target_root(e->t, ENTRY_trace_until) == e->until)
		target_write(e->t, target_value(e->t, ENTRY_trace_until), 0);
}

void events_free(struct events *e)
{
	free(e->rings);
	free(e->first);
	free(e->second);
	free(e->list);
	free(e);
}
