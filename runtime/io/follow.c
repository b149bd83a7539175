/* SPDX-License-Identifier: MIT */
#include "runtime/io/follow.h"

#include "runtime/base/sys.h"
#include "runtime/sched/carrier.h"

enum {
	OPTION_INCOMING_CPU = 49,	/* SO_INCOMING_CPU */
	ALL = 1024,			/* fz_processor.strangers if all peers are on other CPUs */
	WEIGHT = 16,			/* a new sample counts as 1/WEIGHT of the average */
	SLACK = 4,			/* fibers that a processor may have more than another */
};

static uint32_t strangers_of(const struct fz_processor *p)
{
	/* relaxed: a hint. */
	return atomic_load_explicit(&p->strangers, memory_order_relaxed);
}

static void note_peer(struct fz_processor *p, bool is_stranger)
{
	const int before = (int)strangers_of(p), sample = is_stranger ? ALL : 0;

	atomic_store_explicit(&p->strangers, (uint32_t)(before + (sample - before) / WEIGHT),
			      memory_order_relaxed);
}

/* How many fibers wait on p: for its backend to report an event, or in its queue.  A hint. */
static uint32_t load_of(struct fz_processor *p)
{
	return p->backend.ring.in_flight + fz_runq_length(&p->runq) +
	       (uint32_t)atomic_load_explicit(&p->backend.epoll.watching, memory_order_relaxed);
}

/*
 * Returns the processor that runs on CPU number cpu, if a fiber of p should move there; or NULL.  An idle processor is
 * left out, because its carrier may be woken on any CPU.  So is a processor with few peers on other CPUs (strangers):
 * the whole load may then come from that CPU, and all fibers would gather on one processor.
 */
static struct fz_processor *near(struct fz_processor *p, uint32_t cpu)
{
	for (uint32_t i = 0; i < fz_sched.count; i++) {
		struct fz_processor *q = &fz_sched.processors[i];
		/* relaxed, both: hints. */
		const enum fz_owner_state state =
			atomic_load_explicit(&q->owner, memory_order_relaxed) & FZ_OWNER_STATE_MASK;

		if (q != p && atomic_load_explicit(&q->cpu, memory_order_relaxed) == cpu + 1 &&
		    (state == FZ_OWNER_USER || state == FZ_OWNER_RUNTIME) &&
		    !fz_processor_is_closed(q) && strangers_of(q) >= strangers_of(p) / 2 &&
		    load_of(q) <= load_of(p) + load_of(p) / 4 + SLACK)
			return q;
	}
	return NULL;
}

static bool move_near(struct fz_fiber *self, uint32_t cpu)
{
	struct fz_processor *to;

	fz_enter_runtime(self);
	to = near(fz_processor_of(self), cpu);
	if (to)
		fz_sched_yield_to(self, to);
	fz_leave_runtime(self);
	return to != NULL;
}

bool fz_follow_peer(struct fz_fiber *self, int fd)
{
	/* A hint: outside the runtime the carrier may lose its processor at any time, and p may be NULL. */
	struct fz_processor *p = self->kind == FZ_KIND_FIBER ? self->carrier->processor : NULL;
	const int cpu = fz_sched.count > 1 && p ? fz_cpu_number() : -1;
	int from;
	bool is_same;

	if (cpu < 0 || self->call.blocks)
		return false;
	/* relaxed: a hint. */
	atomic_store_explicit(&p->cpu, (uint32_t)cpu + 1, memory_order_relaxed);
	from = fz_sys_socket_option(fd, OPTION_INCOMING_CPU);
	/* Two calls must find the same descriptor and CPU, because the peers of an event loop are on all CPUs. */
	is_same = self->peer.fd == fd && self->peer.cpu == from;
	self->peer.fd = fd;
	self->peer.cpu = (int16_t)from;
	if (!is_same || from < 0)
		return false;
	note_peer(p, from != cpu);
	return from != cpu && near(p, (uint32_t)from) && move_near(self, (uint32_t)from);
}
