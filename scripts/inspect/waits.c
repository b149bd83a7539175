/* SPDX-License-Identifier: MIT */
#include "waits.h"

#include <inttypes.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "objects.h"
#include "runtime/base/die.h"
#include "scripts/process/text.h"
#include "scripts/trace/cycles.h"

static const char *const requests[] = {
#define FZ_REQUEST(opcode, word) [opcode] = word,
#include "runtime/inspect/fields.def"
};

const char *wait_request(unsigned opcode)
{
	const bool is_known = opcode < sizeof(requests) / sizeof(*requests) && requests[opcode];

	return is_known ? requests[opcode] : "request";
}

static uint64_t nsec(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

void fibers_take_wait(const struct target *t, const void *record, struct fiber *f)
{
	const uint64_t since = target_field(t, ENTRY_fiber_since, record), now = cycles();
	const uint64_t deadline = target_field(t, ENTRY_fiber_deadline, record);

	f->waits_for = (unsigned)target_field(t, ENTRY_fiber_waits_for, record);
	f->object = target_field(t, ENTRY_fiber_object, record);
	f->signals = target_field(t, ENTRY_fiber_sigwait_set, record);
	/* now may be less than since: the cycle counters of two CPUs may differ a little. */
	if (since && !target_is_core(t) && f->state == STATE_WAITS)
		f->waits_since = (double)(now > since ? now - since : 0) / cycles_per_second();
	f->has_deadline = f->state == STATE_WAITS ? target_field(t, ENTRY_fiber_timer, record) != 0 :
						    deadline != UINT64_MAX;
	if (f->has_deadline && !target_is_core(t))
		f->deadline = ((double)deadline - (double)nsec(CLOCK_MONOTONIC)) / 1e9;
}

/* ---- reading -------------------------------------------------------------------------- */

void wait_take_children(int type, int id, struct wait_facts *w)
{
	w->is_child = true;
	switch (type) {
	case P_PID: w->child = id; break;
	case P_PGID: w->child = -id; break;
	case 3: w->fd = id; break;	/* P_PIDFD, which older headers lack */
	default: w->child = -1;
	}
}

static void requested(const struct target *t, const struct fiber *f, struct wait_facts *w)
{
	const unsigned opcode = (unsigned)target_field_at(t, ENTRY_op_opcode, f->object);
	const uint64_t pin = target_field_at(t, ENTRY_op_pin, f->object);
	int fd = (int)target_field_at(t, ENTRY_op_fd, f->object);

	w->kind = wait_request(opcode);
	/* These requests have something else where others have the descriptor. */
	if (opcode == target_value(t, ENTRY_request_child)) {
		wait_take_children((int)target_field_at(t, ENTRY_op_length, f->object), fd, w);
		return;
	}
	if (opcode == target_value(t, ENTRY_request_futex)) {
		w->address = target_field_at(t, ENTRY_op_address, f->object);
		return;
	}
	if (pin)
		fd = (int)target_field_at(t, ENTRY_pin_number, pin);
	w->fd = fd;
	w->events = (unsigned)target_field_at(t, ENTRY_op_events, f->object);
}

enum { FDS_SHOWN = sizeof(((struct wait_facts *)0)->fds) / sizeof(int) };

void wait_take_fds(const struct target *t, uint64_t fds, unsigned count, struct wait_facts *w)
{
	struct pollfd one;

	w->fd_count = count;
	for (unsigned i = 0; i < w->fd_count && i < FDS_SHOWN; i++) {
		w->fds[i] = target_read(t, fds + i * sizeof(one), &one, sizeof(one)) ? one.fd : -1;
		if (i == 0)
			w->fd = w->fds[0];
	}
}

static void lock(const struct target *t, const struct fiber *f, struct wait_facts *w,
		 enum entry key, enum entry owner)
{
	w->address = f->object - (key < ENTRY_COUNT ? target_value(t, key) : 0);
	w->owner = (int)target_field_at(t, owner, w->address);
	w->by_threads = true;
	if (owner == ENTRY_rwlock_writer && !w->owner)
		w->readers = (unsigned)target_field_at(t, ENTRY_rwlock_readers, w->address) >> 3;
}

static void joined(const struct target *t, const struct fiber *f, struct wait_facts *w)
{
	w->by_threads = true;
	w->owner = (int)target_field_at(t, ENTRY_fiber_tid,
					f->object - target_value(t, ENTRY_fiber_life));
}

/*
 * What ends a wait (FZ_WAIT in fields.def): an event; or only another thread. BY_OBJECT is BY_THREAD,
 * and the address of the object is shown.
 */
enum ended_by { BY_EVENT, BY_THREAD, BY_OBJECT };

/* All kinds of waits, but not the kinds of requests. */
static const struct plain {
	enum entry value;
	const char *kind;
	enum ended_by by;
} plain[] = {
#define FZ_WAIT(name, value, word, by) { ENTRY_##name, word, BY_##by },
#include "runtime/inspect/fields.def"
};

static const struct plain *plain_of(const struct target *t, unsigned waits_for)
{
	static const struct plain unknown = { .kind = "" };

	for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++)
		if (waits_for == target_value(t, plain[i].value))
			return &plain[i];
	return &unknown;
}

static void others(const struct target *t, const struct fiber *f, struct wait_facts *w)
{
	const struct plain *p = plain_of(t, f->waits_for);

	w->kind = p->kind;
	w->address = p->by == BY_OBJECT ? f->object : 0;
	w->by_threads = p->by != BY_EVENT;
}

static void read_facts(const struct target *t, const struct fibers *all, const struct fiber *f,
		       const struct registers *stopped, struct wait_facts *w)
{
	const uint64_t kind = f->waits_for;

	*w = (struct wait_facts){ .kind = "", .fd = -1, .has_deadline = f->has_deadline };
	if (!f->waits) {
		if (*f->in_kernel || target_is_core(t))
			wait_read_call(t, all, f, stopped, w);
		return;
	}
	others(t, f, w);
	if (kind == target_value(t, ENTRY_for_request))
		requested(t, f, w);
	else if (kind == target_value(t, ENTRY_for_ready))
		wait_take_fds(t, target_field_at(t, ENTRY_ready_fds, f->object),
			      (unsigned)target_field_at(t, ENTRY_ready_count, f->object), w);
	else if (kind == target_value(t, ENTRY_for_thread))
		joined(t, f, w);
	else if (kind == target_value(t, ENTRY_for_mutex))
		lock(t, f, w, ENTRY_COUNT, ENTRY_mutex_owner);
	else if (kind == target_value(t, ENTRY_for_read_lock))
		lock(t, f, w, ENTRY_rwlock_read_key, ENTRY_rwlock_writer);
	else if (kind == target_value(t, ENTRY_for_write_lock))
		lock(t, f, w, ENTRY_rwlock_write_key, ENTRY_rwlock_writer);
	if (w->has_deadline)
		w->by_threads = false;
}

void wait_read(const struct target *t, const struct fibers *all, const struct fiber *f, struct wait_facts *w)
{
	read_facts(t, all, f, NULL, w);
}

bool wait_goes_on(const struct target *t, const struct fiber *f, const struct wait_facts *w)
{
	if (target_is_core(t))
		return true;
	if (f->address && target_field_at(t, ENTRY_fiber_wait, f->address) != f->wait)
		return false;
	/* A thread that has not run since is in the same call. */
	return !w->is_in_call || (wait_is_in_call(t, f) &&
				  task_usage(t->source.pid, f->kernel_tid).switches == w->times_run);
}

const char *wait_kind(const struct target *t, unsigned waits_for)
{
	return plain_of(t, waits_for)->kind;
}

const char *wait_plain_kind(size_t i)
{
	return i < sizeof(plain) / sizeof(*plain) ? plain[i].kind : NULL;
}

/* Read the opcodes of requests. Skip those that cannot be read: the request and its stack may be gone. */
static void read_opcodes(const struct target *t, const struct piece *pieces, size_t count)
{
	for (size_t done = 0; done < count; done++)
		done += target_read_pieces(t, pieces + done, count - done);
}

void wait_kinds(const struct target *t, const struct fiber *list, size_t count, const char **kinds)
{
	uint8_t opcodes[PIECES_MOST];
	struct piece pieces[PIECES_MOST];
	size_t at[PIECES_MOST], asked = 0;

	for (size_t i = 0; i <= count; i++) {
		if (asked == PIECES_MOST || i == count) {
			memset(opcodes, UINT8_MAX, sizeof(opcodes));
			read_opcodes(t, pieces, asked);
			while (asked--)
				kinds[at[asked]] = wait_request(opcodes[asked]);
			asked = 0;
		}
		if (i == count)
			break;
		kinds[i] = list[i].waits ? wait_kind(t, list[i].waits_for) : "";
		if (!list[i].waits || list[i].waits_for != target_value(t, ENTRY_for_request))
			continue;
		pieces[asked] = (struct piece){
			list[i].object + target_value(t, ENTRY_op_opcode), &opcodes[asked], 1,
		};
		at[asked++] = i;
	}
}

/* ---- words ---------------------------------------------------------------------------- */

struct words {
	char *text;
	size_t size;
};

static void add(struct words *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct words *w, const char *format, ...)
{
	const size_t used = strlen(w->text);
	va_list args;

	va_start(args, format);
	vsnprintf(w->text + used, w->size - used, format, args);
	va_end(args);
}

static void add_file(const struct target *t, struct words *w, int fd)
{
	char file[160];

	file_of(t, fd, file, sizeof(file));
	add(w, "(%d%s%s)", fd, *file ? ": " : "", file);
}

static void add_descriptors(const struct target *t, struct words *w,
			    const struct wait_facts *facts)
{
	if (!facts->fd_count) {
		add_file(t, w, facts->fd);
		if (strcmp(facts->kind, "poll") != 0)
			return;
		if (facts->events & (POLLIN | POLLRDNORM))
			add(w, " to read");
		if (facts->events & (POLLOUT | POLLWRNORM))
			add(w, " to write");
		return;
	}
	add(w, " of %u:", facts->fd_count);
	for (unsigned i = 0; i < facts->fd_count && i < FDS_SHOWN; i++) {
		add(w, " ");
		add_file(t, w, facts->fds[i]);
	}
	if (facts->fd_count > FDS_SHOWN)
		add(w, " ...");
}

static void add_signals(const struct fiber *f, struct words *w)
{
	for (int n = 1; n <= 64; n++)
		if (f->signals >> (n - 1) & 1) {
			const char *name = sigabbrev_np(n);

			if (name)
				add(w, " %s", name);
			else
				add(w, " %d", n);
		}
}

static void add_address(const struct target *t, struct words *w, uint64_t address)
{
	const char *name = object_name(t, address);

	add(w, " %#lx", (unsigned long)address);
	if (name)
		add(w, " (%s)", name);
}

static void add_child(struct words *w, const struct wait_facts *facts)
{
	if (facts->fd >= 0)
		add(w, "%s", facts->kind);
	else if (facts->child > 0)
		add(w, "%s %d", facts->kind, facts->child);
	else if (facts->child == -1)
		add(w, "any %s", facts->kind);
	else if (facts->child)
		add(w, "%s of process group %d", facts->kind, -facts->child);
	else
		add(w, "%s of its own process group", facts->kind);
}

static void add_owner(const struct fibers *all, struct words *w, const struct wait_facts *facts)
{
	const struct fiber *owner = fibers_by_tid(all, facts->owner);

	add(w, ", %s ", strcmp(facts->kind, "join") == 0 ? "of" : "held by");
	add(w, all->hex ? "%#x" : "%d", (unsigned)facts->owner);
	if (owner && *owner->name)
		add(w, " \"%s\"", owner->name);
	if (!owner && all->has_natives && !facts->is_elsewhere)
		add(w, ", which has ended");
}

/* A thread may wait for longer than until its deadline: it may be stopped, or not have got a CPU yet. */
static void add_deadline(const struct target *t, struct words *w, const struct fiber *f)
{
	if (!f->waits || target_is_core(t))
		add(w, ", with a deadline");
	else if (f->deadline < 0)
		add(w, ", until %.3f s ago", -f->deadline);
	else
		add(w, ", for %.3f s more", f->deadline);
}

void wait_tell(const struct target *t, const struct fibers *all, const struct fiber *f,
	       const struct wait_facts *facts, char *text, size_t size)
{
	struct words w = { text, size };

	*text = '\0';
	if (facts->is_child)
		add_child(&w, facts);
	else
		add(&w, "%s", facts->kind);
	if (facts->call)
		add(&w, " %d", facts->call);
	if (facts->address)
		add_address(t, &w, facts->address);
	if (facts->fd >= 0 || facts->fd_count)
		add_descriptors(t, &w, facts);
	if (f->waits && f->waits_for == target_value(t, ENTRY_for_signal))
		add_signals(f, &w);
	if (facts->owner)
		add_owner(all, &w, facts);
	if (facts->readers)
		add(&w, ", held by %u reader%s", facts->readers, fz_plural(facts->readers));
	if (facts->has_deadline)
		add_deadline(t, &w, f);
	text_clean(text);
}

void wait_of(const struct target *t, const struct fibers *all, const struct fiber *f,
	     const struct registers *stopped, struct wait *w)
{
	read_facts(t, all, f, stopped, &w->facts);
	wait_tell(t, all, f, &w->facts, w->text, sizeof(w->text));
}
