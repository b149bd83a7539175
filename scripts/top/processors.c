/* SPDX-License-Identifier: MIT */
#include "processors.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <unistd.h>

void processors_begin(struct processors *all)
{
	memset(all, 0, sizeof(*all));
}

struct look {
	uint64_t owner, slot;
	uint32_t queue, calls;
	int tid;			/* of the carrier, in the process's PID namespace; 0: unknown */
};

/* Read the pieces. The buffer of a piece that cannot be read stays as it is. */
static void read_all(const struct target *t, const struct piece *pieces, size_t count)
{
	for (size_t done = 0; done < count; done++)
		done += target_read_pieces(t, pieces + done, MIN(count - done, (size_t)PIECES_MOST));
}

static struct piece field(const struct target *t, enum entry name, uint64_t record, void *to, size_t size)
{
	return (struct piece){ record + target_value(t, name), to, MIN(size, t->entries[name].size) };
}

/* Read for each carrier whether it is in a call, and its tid. */
static void read_carriers(const struct target *t, struct look *looks, size_t count)
{
	const uint64_t mask = target_value(t, ENTRY_owner_state_mask);
	struct piece pieces[2 * FZ_PROCESSORS_MOST];
	size_t n = 0;

	for (size_t i = 0; i < count; i++) {
		const uint64_t carrier = looks[i].owner & ~mask;

		if (!carrier)
			continue;
		pieces[n++] = field(t, ENTRY_carrier_calls, carrier, &looks[i].calls, sizeof(looks->calls));
		pieces[n++] = field(t, ENTRY_carrier_tid, carrier, &looks[i].tid, sizeof(looks->tid));
	}
	read_all(t, pieces, n);
}

/* ---- CPU time ----------------------------------------------------------------------- */

struct times {
	uint64_t cpu_ns;
	uint64_t delayed_ns;		/* runnable, but not on a CPU */
};

/* The carriers that have been seen; fd is their schedstat, which was read at the last look. */
static struct carrier {
	int tid, fd;
	struct times times;
} carriers[FZ_PROCESSORS_MOST];
static size_t carrier_count;

/* The times in a schedstat file; 0 if it cannot be read. */
static struct times read_times(int fd)
{
	char line[128], *end;
	const ssize_t n = pread(fd, line, sizeof(line) - 1, 0);
	struct times times;

	line[n > 0 ? n : 0] = '\0';
	times.cpu_ns = strtoull(line, &end, 10);
	times.delayed_ns = strtoull(end, NULL, 10);
	return times;
}

/* Find a carrier by its tid in our PID namespace, or add it; the times of a new one count from now on. */
static struct carrier *carrier_of(int pid, int tid)
{
	struct carrier *c = carriers;
	char path[64];

	while (c < carriers + carrier_count && c->tid != tid)
		c++;
	if (c < carriers + carrier_count)
		return c;
	/* The list is full, so most carriers in it have ended: begin a new list. */
	if (carrier_count == FZ_PROCESSORS_MOST)
		while (carrier_count > 0)
			close(carriers[--carrier_count].fd);
	snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", pid, tid);
	c = &carriers[carrier_count];
	*c = (struct carrier){ .tid = tid, .fd = open(path, O_RDONLY | O_CLOEXEC) };
	if (c->fd < 0)
		return NULL;
	c->times = read_times(c->fd);
	carrier_count++;
	return c;
}

/* Add the times of the carrier since the last look to those of the processor that it has. */
static void add_times(struct processor *p, int pid, int tid)
{
	struct carrier *c = tid ? carrier_of(pid, tid) : NULL;
	struct times before;

	if (!c)
		return;
	before = c->times;
	c->times = read_times(c->fd);
	if (c->times.cpu_ns >= before.cpu_ns) {
		p->cpu_ns += c->times.cpu_ns - before.cpu_ns;
		p->delayed_ns += c->times.delayed_ns - before.delayed_ns;
		return;
	}
	/* The carrier has ended, so its file cannot be read. Forget it, as a new carrier may get its tid. */
	close(c->fd);
	*c = carriers[--carrier_count];
}

/* ---- looking ------------------------------------------------------------------------ */

static enum doing doing_of(const struct target *t, const struct look *look)
{
	const uint64_t state = look->owner & target_value(t, ENTRY_owner_state_mask);

	if (state == target_value(t, ENTRY_owner_runtime))
		return DOING_LIBRARY;
	if (state == target_value(t, ENTRY_owner_announced))
		return DOING_CALL;
	if (state != target_value(t, ENTRY_owner_user))
		return DOING_IDLE;
	return look->calls & target_value(t, ENTRY_call_bit) ? DOING_CALL : DOING_BUSY;
}

void processors_look(struct processors *all, const struct target *t, const struct tasks *tasks)
{
	const uint64_t base = target_root(t, ENTRY_processors);
	const uint64_t size = target_value(t, ENTRY_processor_size);
	struct look looks[FZ_PROCESSORS_MOST];
	struct piece pieces[3 * FZ_PROCESSORS_MOST];
	size_t n = 0;

	memset(looks, 0, sizeof(looks));
	all->count = MIN(target_root(t, ENTRY_processor_count), FZ_PROCESSORS_MOST);
	for (size_t i = 0; i < all->count; i++) {
		const uint64_t record = base + i * size;
		struct look *look = &looks[i];

		pieces[n++] = field(t, ENTRY_processor_owner, record, &look->owner, sizeof(look->owner));
		pieces[n++] = field(t, ENTRY_processor_queue, record, &look->queue, sizeof(look->queue));
		pieces[n++] = field(t, ENTRY_processor_slot, record, &look->slot, sizeof(look->slot));
	}
	read_all(t, pieces, n);
	read_carriers(t, looks, all->count);
	all->looks++;
	all->queued = target_root(t, ENTRY_queue_global) + target_root(t, ENTRY_queue_births);
	for (size_t i = 0; i < all->count; i++) {
		struct processor *p = &all->list[i];

		p->doing = doing_of(t, &looks[i]);
		p->seen[p->doing]++;
		p->queued = looks[i].queue + (looks[i].slot != 0);
		p->queued_sum += p->queued;
		all->queued += p->queued;
		add_times(p, t->source.pid, tasks_outer(tasks, looks[i].tid));
	}
}

double processor_share(const struct processors *all, size_t number, enum doing what)
{
	return all->looks ? 100.0 * all->list[number].seen[what] / all->looks : 0;
}

double processor_library(const struct processors *all, size_t number)
{
	const unsigned *seen = all->list[number].seen;
	const unsigned at_work = seen[DOING_BUSY] + seen[DOING_LIBRARY];

	return at_work ? 100.0 * seen[DOING_LIBRARY] / at_work : 0;
}

double processors_pause(const struct processors *all)
{
	enum { LIGHT = 4 };		/* so many processors are looked at every 10 ms; more take longer */

	return 0.01 * (double)MAX(all->count, (size_t)LIGHT) / LIGHT;
}
