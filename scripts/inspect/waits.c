/* SPDX-License-Identifier: MIT */
#include "waits.h"

#include <linux/io_uring.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *call_of(unsigned opcode)
{
	switch (opcode) {
	case IORING_OP_READ: case IORING_OP_READV: case IORING_OP_READ_FIXED: return "read";
	case IORING_OP_WRITE: case IORING_OP_WRITEV: case IORING_OP_WRITE_FIXED: return "write";
	case IORING_OP_RECV: return "recv";
	case IORING_OP_RECVMSG: return "recvmsg";
	case IORING_OP_SEND: return "send";
	case IORING_OP_SENDMSG: return "sendmsg";
	case IORING_OP_ACCEPT: return "accept";
	case IORING_OP_CONNECT: return "connect";
	case IORING_OP_POLL_ADD: return "poll";
	case IORING_OP_FSYNC: return "fsync";
	case IORING_OP_SPLICE: return "splice";
	case IORING_OP_TEE: return "tee";
	case IORING_OP_OPENAT: return "open";
	case IORING_OP_CLOSE: return "close";
	default: return "request";
	}
}

static void add(struct wait *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct wait *w, const char *format, ...)
{
	const size_t used = strlen(w->text);
	va_list args;

	va_start(args, format);
	vsnprintf(w->text + used, sizeof(w->text) - used, format, args);
	va_end(args);
}

static void add_file(const struct target *t, struct wait *w, int fd)
{
	char file[160];

	file_of(t, fd, file, sizeof(file));
	add(w, "(%d%s%s)", fd, *file ? ": " : "", file);
}

static void add_events(struct wait *w, unsigned events)
{
	if (events & (POLLIN | POLLRDNORM))
		add(w, " to read");
	if (events & (POLLOUT | POLLWRNORM))
		add(w, " to write");
}

static void one_descriptor(const struct target *t, const struct fiber *f, struct wait *w)
{
	const uint64_t pin = target_field_at(t, ENTRY_op_pin, f->object);

	w->fd = (int)target_field_at(t, ENTRY_op_fd, f->object);
	if (pin)
		w->fd = (int)target_field_at(t, ENTRY_pin_number, pin);
	w->kind = call_of((unsigned)target_field_at(t, ENTRY_op_opcode, f->object));
	add(w, "%s", w->kind);
	add_file(t, w, w->fd);
	if (strcmp(w->kind, "poll") == 0)
		add_events(w, (unsigned)target_field_at(t, ENTRY_op_events, f->object));
}

static void several_descriptors(const struct target *t, const struct fiber *f, struct wait *w)
{
	enum { SHOWN = 3 };
	const uint64_t fds = target_field_at(t, ENTRY_ready_fds, f->object);
	const unsigned count = (unsigned)target_field_at(t, ENTRY_ready_count, f->object);

	w->kind = "poll";
	add(w, "poll of %u:", count);
	for (unsigned i = 0; i < count && i < SHOWN; i++) {
		struct pollfd one;

		if (!target_read(t, fds + i * sizeof(one), &one, sizeof(one)))
			break;
		if (i == 0)
			w->fd = one.fd;
		add(w, " ");
		add_file(t, w, one.fd);
	}
	if (count > SHOWN)
		add(w, " ...");
}

static void signals(const struct fiber *f, struct wait *w)
{
	w->kind = "signal";
	add(w, "signal");
	for (int n = 1; n <= 64; n++)
		if (f->signals >> (n - 1) & 1) {
			const char *name = sigabbrev_np(n);

			if (name)
				add(w, " %s", name);
			else
				add(w, " %d", n);
		}
}

static void add_owner(const struct fibers *all, struct wait *w, int tid, const char *what)
{
	const struct fiber *owner = fibers_by_tid(all, tid);

	if (!tid)
		return;
	w->owner = tid;
	add(w, ", %s %d", what, tid);
	if (owner && *owner->name)
		add(w, " \"%s\"", owner->name);
}

static void lock(const struct target *t, const struct fibers *all, const struct fiber *f,
		 struct wait *w, const char *kind, enum entry key, enum entry owner)
{
	const uint64_t at = f->object - (key < ENTRY_COUNT ? target_value(t, key) : 0);

	w->kind = kind;
	add(w, "%s %#lx", kind, (unsigned long)at);
	add_owner(all, w, (int)target_field_at(t, owner, at), "held by");
}

static void joined(const struct target *t, const struct fibers *all, const struct fiber *f,
		   struct wait *w)
{
	const uint64_t other = f->object - target_value(t, ENTRY_fiber_life);

	w->kind = "join";
	add(w, "join");
	add_owner(all, w, (int)target_field_at(t, ENTRY_fiber_tid, other), "of");
}

/* The kinds that have an address and no more. */
static const struct {
	enum entry value;
	const char *kind;
	bool has_address;
} plain[] = {
	{ ENTRY_for_time, "sleep", false },
	{ ENTRY_for_cond, "condition variable", true },
	{ ENTRY_for_sem, "semaphore", true },
	{ ENTRY_for_barrier, "barrier", true },
	{ ENTRY_for_once, "once", true },
	{ ENTRY_for_libc_lock, "lock inside libc", true },
	{ ENTRY_for_futex, "futex", true },
	{ ENTRY_for_runtime, "the library", false },
	{ ENTRY_for_end, "the end of the process", false },
};

static void others(const struct target *t, const struct fiber *f, struct wait *w)
{
	for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++)
		if (f->waits_for == target_value(t, plain[i].value)) {
			w->kind = plain[i].kind;
			add(w, "%s", w->kind);
			if (plain[i].has_address)
				add(w, " %#lx", (unsigned long)f->object);
		}
}

void wait_of(const struct target *t, const struct fibers *all, const struct fiber *f,
	     struct wait *w)
{
	const uint64_t kind = f->waits_for;

	*w = (struct wait){ .kind = "", .fd = -1 };
	if (f->state != STATE_WAITS)
		return;
	if (kind == target_value(t, ENTRY_for_request))
		one_descriptor(t, f, w);
	else if (kind == target_value(t, ENTRY_for_ready))
		several_descriptors(t, f, w);
	else if (kind == target_value(t, ENTRY_for_signal))
		signals(f, w);
	else if (kind == target_value(t, ENTRY_for_thread))
		joined(t, all, f, w);
	else if (kind == target_value(t, ENTRY_for_mutex))
		lock(t, all, f, w, "mutex", ENTRY_COUNT, ENTRY_mutex_owner);
	else if (kind == target_value(t, ENTRY_for_read_lock))
		lock(t, all, f, w, "rwlock to read", ENTRY_rwlock_read_key, ENTRY_rwlock_writer);
	else if (kind == target_value(t, ENTRY_for_write_lock))
		lock(t, all, f, w, "rwlock to write", ENTRY_rwlock_write_key, ENTRY_rwlock_writer);
	else
		others(t, f, w);
	if (f->deadline >= 0 && target_is_core(t))
		add(w, ", with a deadline");
	else if (f->deadline >= 0)
		add(w, ", for %.3f s more", f->deadline);
}
