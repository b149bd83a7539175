/* SPDX-License-Identifier: MIT */
#include "timeline.h"

#include <linux/io_uring.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scripts/inspect/waits.h"
#include "scripts/process/say.h"
#include "scripts/process/text.h"
#include "tree.h"

const char *const rung_names[] = {
#define FZ_RUNG(rung, word, text) [RUNG_##rung] = word,
#include "preload/rungs.def"
};

enum doing { UNKNOWN, RUNS, QUEUED, WAITS, CALLS };

struct thread {
	int tid;
	char name[16];			/* empty: not known yet */
	double named;			/* when the name was read; below any time: not yet */
	enum doing doing;
	double since;
	double woken;			/* in WAITS: when it was woken; below 0: not yet */
	int processor;			/* in RUNS; -1: another thread has got its processor */
	struct call call;		/* valid in WAITS, in CALLS, and in QUEUED after one of these */
	bool has_call;
	bool has_new_name;		/* no slice with this name was reported yet */
};

struct timeline {
	const struct target *t;
	struct symbols *symbols;
	struct timeline_user user;
	void *threads;			/* a tree of struct thread, by tid */
	int *runs;			/* tid of the thread that runs on a processor, or has run there last; 0: none */
	size_t processors;		/* of `runs` */
	double now;
};

struct timeline *timeline_new(const struct target *t, struct symbols *s,
			      const struct timeline_user *user)
{
	struct timeline *l = calloc(1, sizeof(*l));

	if (!l)
		die(EXIT_OTHER, "no memory");
	*l = (struct timeline){ .t = t, .symbols = s, .user = *user };
	return l;
}

void timeline_free(struct timeline *l)
{
	tdestroy(l->threads, free);
	free(l->runs);
	free(l);
}

static int by_tid(const void *a, const void *b)
{
	const struct thread *x = a, *y = b;

	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

/* Read the name of each thread again after so many seconds: it may have got another one. */
static const double renaming = 0.1;

/*
 * Read the thread's name, unless that was done a moment ago. If the record has another tid, the thread has
 * ended, and a later life has the record: then the name stays.
 */
static void learn_name(const struct timeline *l, struct thread *thread, uint64_t record)
{
	char name[sizeof(thread->name)];

	if (l->now - thread->named < renaming)
		return;
	if ((int)target_field_at(l->t, ENTRY_fiber_tid, record) != thread->tid ||
	    !target_read(l->t, record + target_value(l->t, ENTRY_fiber_name), name, sizeof(name)))
		return;
	thread->named = l->now;
	name[sizeof(name) - 1] = '\0';
	text_clean(name);
	if (strcmp(name, thread->name) == 0)
		return;
	memcpy(thread->name, name, sizeof(name));
	thread->has_new_name = true;
}

/* Find or add the thread. record: its record in the process, or 0 if the event does not tell it. */
static struct thread *thread_of(struct timeline *l, int tid, uint64_t record)
{
	struct thread key = { .tid = tid }, **found = tfind(&key, &l->threads, by_tid);
	struct thread *thread = found ? *found : calloc(1, sizeof(*thread));

	if (!thread)
		die(EXIT_OTHER, "no memory");
	if (!found) {
		thread->tid = tid;
		thread->named = -INFINITY;
		thread->woken = -1;
		thread->has_new_name = true;
		if (!tsearch(thread, &l->threads, by_tid))
			die(EXIT_OTHER, "no memory");
	}
	if (record)
		learn_name(l, thread, record);
	return thread;
}

/* The thread has stopped doing what it did since thread->since: report that slice. */
static void end_slice(struct timeline *l, struct thread *thread, double until)
{
	struct slice slice = {
		.kind = thread->doing == RUNS ? SLICE_RUNS :
			thread->doing == QUEUED ? SLICE_QUEUED : SLICE_WAITS,
		.tid = thread->tid, .thread = thread->name, .begun = thread->since,
		.ended = until, .call = thread->has_call ? &thread->call : NULL,
		.processor = thread->doing == RUNS ? thread->processor : -1,
	};

	if (thread->doing != UNKNOWN && until > thread->since && l->user.slice) {
		slice.has_new_name = thread->has_new_name;
		thread->has_new_name = false;
		l->user.slice(&slice, l->user.arg);
	}
	thread->since = until;
}

static bool is_in_user_space(const struct timeline *l, const struct event *e)
{
	return e->what != target_value(l->t, ENTRY_for_request) &&
	       e->what != target_value(l->t, ENTRY_for_ready);
}

static const char *name_of(const struct timeline *l, const struct event *e, bool parks)
{
	const struct symbol *function = symbols_find(l->symbols, e->site);

	/* An interposer's body may have jumped to a local function of the library, whose name says nothing. */
	if (parks && !function->is_global && is_in_user_space(l, e) &&
	    e->what != target_value(l->t, ENTRY_for_signal))
		return wait_kind(l->t, e->what);
	/* Without a name, the library's file has been deleted or replaced: use the name of the wait. */
	if (parks && strcmp(function->function, "?") == 0)
		return e->what == target_value(l->t, ENTRY_for_ready) ? "poll" : wait_request(e->opcode);
	return function->function;
}

static void begin_call(struct timeline *l, struct thread *thread, const struct event *e,
		       enum rung rung)
{
	thread->has_call = true;
	thread->call = (struct call){
		.tid = thread->tid, .thread = thread->name, .fd = e->fd, .rung = rung,
		.name = name_of(l, e, thread->doing == WAITS), .caller_address = e->caller,
		.caller = symbols_find(l->symbols, e->caller), .begun = e->time,
	};
}

static enum rung rung_of(const struct timeline *l, const struct event *e)
{
	if (is_in_user_space(l, e))
		return RUNG_USER;
	return e->what == target_value(l->t, ENTRY_for_ready) || e->opcode == IORING_OP_POLL_ADD ||
	       target_root(l->t, ENTRY_backend_kind) == target_value(l->t, ENTRY_backend_epoll) ?
		       RUNG_READY : RUNG_RING;
}

static void end_call(struct timeline *l, struct thread *thread, double now)
{
	struct call *c = &thread->call;

	if (!thread->has_call)
		return;
	if (thread->doing == CALLS) {
		c->waited = now - c->begun;
	} else {
		c->waited = (thread->woken >= 0 ? thread->woken : now) - c->begun;
		c->queued = now - c->begun - c->waited;
	}
	l->user.call(c, l->user.arg);
	thread->has_call = false;
}

/* If the monitor found the thread in a call, name and caller are not known: take them when the call ends. */
static void learn_place(struct timeline *l, struct thread *thread, const struct event *e)
{
	if (thread->call.caller_address)
		return;
	thread->call.name = name_of(l, e, false);
	thread->call.caller = symbols_find(l->symbols, e->caller);
}

static void leaves(struct timeline *l, const struct event *e)
{
	struct thread *thread = thread_of(l, e->tid, e->fiber);

	if (thread->doing == CALLS) {
		learn_place(l, thread, e);
		end_call(l, thread, e->time);
	}
	end_slice(l, thread, e->time);
	thread->woken = -1;
	if (e->how == target_value(l->t, ENTRY_left_ended)) {
		if (thread->processor >= 0 && (size_t)thread->processor < l->processors &&
		    l->runs[thread->processor] == thread->tid)
			l->runs[thread->processor] = 0;
		tdelete(thread, &l->threads, by_tid);
		free(thread);
		return;
	}
	if (e->how == target_value(l->t, ENTRY_left_parked)) {
		thread->doing = WAITS;
		begin_call(l, thread, e, rung_of(l, e));
	} else {
		thread->doing = QUEUED;
	}
}

/*
 * The thread has got the processor. The event that takes it from the thread before may come later: the monitor
 * writes that event, after the processor was handed off.
 */
static void run_on(struct timeline *l, struct thread *thread, int processor)
{
	struct thread key, **before;

	thread->doing = RUNS;
	thread->processor = processor;
	if (processor < 0)
		return;
	if ((size_t)processor >= l->processors) {
		const size_t more = (size_t)processor + 1;

		l->runs = realloc(l->runs, more * sizeof(*l->runs));
		if (!l->runs)
			die(EXIT_OTHER, "no memory");
		memset(l->runs + l->processors, 0, (more - l->processors) * sizeof(*l->runs));
		l->processors = more;
	}
	key.tid = l->runs[processor];
	before = key.tid && key.tid != thread->tid ? tfind(&key, &l->threads, by_tid) : NULL;
	if (before && (*before)->doing == RUNS && (*before)->processor == processor) {
		end_slice(l, *before, l->now);
		(*before)->processor = -1;
	}
	l->runs[processor] = thread->tid;
}

static void enters(struct timeline *l, const struct event *e)
{
	struct thread *thread = thread_of(l, e->other, e->tid ? 0 : e->fiber);

	if (thread->doing == WAITS && thread->woken >= 0) {
		end_slice(l, thread, thread->woken);
		thread->doing = QUEUED;
	}
	end_slice(l, thread, e->time);
	end_call(l, thread, e->time);
	run_on(l, thread, e->processor);
}

static void announces(struct timeline *l, const struct event *e, enum rung rung)
{
	struct thread *thread = thread_of(l, e->tid, e->fiber);

	end_slice(l, thread, e->time);
	thread->doing = CALLS;
	begin_call(l, thread, e, rung);
}

static void comes_back(struct timeline *l, const struct event *e)
{
	struct thread *thread = thread_of(l, e->tid, e->fiber);

	if (thread->doing == CALLS)
		learn_place(l, thread, e);
	end_slice(l, thread, e->time);
	if (thread->doing == CALLS)
		end_call(l, thread, e->time);
	run_on(l, thread, e->processor);
}

void timeline_event(const struct event *e, void *timeline)
{
	struct timeline *l = timeline;
	const uint64_t kind = e->kind;

	l->now = e->time;
	if (kind == target_value(l->t, ENTRY_event_is_switch)) {
		if (e->tid)
			leaves(l, e);
		if (e->other)
			enters(l, e);
	} else if (kind == target_value(l->t, ENTRY_event_is_wake)) {
		thread_of(l, e->tid, e->fiber)->woken = e->time;
	} else if (kind == target_value(l->t, ENTRY_event_is_announce)) {
		announces(l, e, RUNG_ANNOUNCED);
	} else if (kind == target_value(l->t, ENTRY_event_is_back)) {
		comes_back(l, e);
	} else if (kind == target_value(l->t, ENTRY_event_is_preempt) && e->tid) {
		/* Ignore it if the thread has just left its processor by itself. */
		if (thread_of(l, e->tid, e->fiber)->doing == RUNS)
			announces(l, e, e->what ? RUNG_BRIEF : RUNG_LATE);
	} else if (kind == target_value(l->t, ENTRY_event_is_wire)) {
		struct thread *thread = thread_of(l, e->tid, e->fiber);

		end_slice(l, thread, e->time);
		thread->doing = UNKNOWN;
	}
}

static __thread struct timeline *ending;

static void end_one(const void *node, VISIT visit, int depth)
{
	struct thread *thread = *(struct thread *const *)node;

	(void)depth;
	if (visit == postorder || visit == leaf)
		end_slice(ending, thread, ending->now);
}

void timeline_end(struct timeline *l, double now)
{
	l->now = now;
	ending = l;
	twalk(l->threads, end_one);
}
