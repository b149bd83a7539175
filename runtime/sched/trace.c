/* SPDX-License-Identifier: MIT */
#include "runtime/sched/trace.h"

#include <linux/mman.h>
#include <linux/poll.h>

#include "runtime/base/uapi.h"
#include "runtime/sched/sched_internal.h"

struct fz_trace fz_trace;

/* The rings hold no events: they are new, or their memory was given back. */
static _Atomic bool are_empty;

/* ---- where the program called the library ---------------------------------- */

extern const char __ehdr_start[] FZ_HIDDEN, etext[] FZ_HIDDEN;

/* What a frame pointer points to, on every architecture. */
struct frame {
	const struct frame *caller;
	const void *returns_to;
};

/*
 * Follow the library's own frames, which all have a frame pointer, to the first address outside the
 * library.  `frame` must be the frame of a function that stays on the stack meanwhile.
 */
static void find_caller(const struct frame *frame, struct fz_trace_event *e)
{
	enum { FRAMES_MOST = 32 };

	for (int i = 0; i < FRAMES_MOST; i++) {
		e->caller = frame->returns_to;
		if ((uintptr_t)e->caller - (uintptr_t)__ehdr_start >=
		    (uintptr_t)etext - (uintptr_t)__ehdr_start)
			return;
		e->site = e->caller;
		frame = frame->caller;
	}
	e->caller = NULL;
}

/* ---- the rings ---------------------------------------------------------------- */

static size_t rings_size(void)
{
	return (fz_sched.count + 1) * sizeof(struct fz_trace_ring);
}

static struct fz_trace_ring *make_rings(void)
{
	const long mem = fz_sys_mmap(rings_size(), PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
	struct fz_trace_ring *rings = NULL, *made = (struct fz_trace_ring *)mem;

	if (fz_sys_failed(mem))
		return NULL;
	/* release: pairs with the acquire in write_event(); another thread may be first. */
	if (atomic_compare_exchange_strong_explicit(&fz_trace.rings, &rings, made,
						    memory_order_acq_rel, memory_order_acquire))
		return made;
	fz_syscall2(__NR_munmap, mem, (long)rings_size());
	return rings;
}

/* Returns the number of the ring of the calling thread's processor, if the thread has it in RUNTIME, or else 0. */
static uint32_t own_ring(const struct fz_fiber *self)
{
	const struct fz_carrier *c = self->carrier;
	struct fz_processor *p = c ? c->processor : NULL;

	/* relaxed: a match can only be what the calling thread wrote. */
	return p && atomic_load_explicit(&p->owner, memory_order_relaxed) ==
				((uintptr_t)c | FZ_OWNER_RUNTIME) ?
		       (uint32_t)(p - fz_sched.processors) + 1 : 0;
}

/* The unlikely cases: tracing is over, or the rings do not exist yet.  Returns ring 0; NULL: write no event. */
__attribute__((cold, noinline)) static struct fz_trace_ring *first_ring(uint64_t time, uint64_t until)
{
	struct fz_trace_ring *rings;

	if (time > until) {
		/* relaxed: a tool that sets it anew at this moment sets it again soon. */
		atomic_compare_exchange_strong_explicit(&fz_trace.until, &until, 0,
							memory_order_relaxed, memory_order_relaxed);
		return NULL;
	}
	rings = make_rings();
	if (!rings)
		atomic_fetch_add_explicit(&fz_trace.lost, 1, memory_order_relaxed);
	return rings;
}

/*
 * Write an event.  Inlined, so that fields that the caller knows go straight to their place in the
 * ring.  picked_at: when the processor's next fiber was picked, or 0; if no event was written
 * since, it is the event's time, and the cycle counter is not read.
 */
__attribute__((always_inline)) static inline void write_event(uint32_t which, uint64_t picked_at,
							      const struct fz_trace_event *e)
{
	/* acquire: pairs with make_rings(). */
	struct fz_trace_ring *ring = atomic_load_explicit(&fz_trace.rings, memory_order_acquire);
	const uint64_t until = atomic_load_explicit(&fz_trace.until, memory_order_relaxed);
	const uint64_t time = ring && which && picked_at > ring[which].last ? picked_at : fz_cycles();
	struct fz_trace_event *slot;
	uint64_t n;

	if (FZ_UNLIKELY(time > until || !ring) && !(ring = first_ring(time, until)))
		return;
	ring += which;
	/* relaxed: the owner of a processor alone writes its ring. */
	if (FZ_LIKELY(which != 0)) {
		n = atomic_load_explicit(&ring->next, memory_order_relaxed);
		atomic_store_explicit(&ring->next, n + 1, memory_order_relaxed);
		ring->last = time;
	} else {
		n = atomic_fetch_add_explicit(&ring->next, 1, memory_order_relaxed);
	}
	/* release, here and at `number`: a reader that finds the old event complete finds the old `next`, too. */
	atomic_thread_fence(memory_order_release);
	slot = &ring->events[n % FZ_TRACE_EVENTS];
	slot->time = time;
	slot->tid = e->tid;
	slot->other = e->other;
	slot->kind = e->kind;
	slot->what = e->what;
	slot->how = e->how;
	slot->opcode = e->opcode;
	slot->fd = e->fd;
	slot->caller = e->caller;
	slot->site = e->site;
	slot->fiber = e->fiber;
	atomic_store_explicit(&slot->number, n + 1, memory_order_release);
}

void fz_trace_shrink(void)
{
	struct fz_trace_ring *rings = atomic_load_explicit(&fz_trace.rings, memory_order_relaxed);

	if (FZ_LIKELY(!rings))
		return;
	/* relaxed: a thread that still writes an event gets a fresh page. */
	if (fz_trace_on())
		atomic_store_explicit(&are_empty, false, memory_order_relaxed);
	else if (!atomic_exchange_explicit(&are_empty, true, memory_order_relaxed))
		for (uint32_t i = 0; i <= fz_sched.count; i++)
			fz_syscall3(__NR_madvise, (long)FZ_ROUND_UP((uintptr_t)rings[i].events, 4096),
				    (long)(sizeof(rings[i].events) & ~(size_t)4095) - 4096,
				    MADV_DONTNEED);
}

/* Call while the processors still exist.  A child made while a tool traced the parent is not traced. */
void fz_trace_after_fork(void)
{
	struct fz_trace_ring *rings = atomic_load_explicit(&fz_trace.rings, memory_order_relaxed);

	if (rings)
		fz_syscall2(__NR_munmap, (long)rings, (long)rings_size());
	__builtin_memset(&fz_trace, 0, sizeof(fz_trace));
}

/* ---- events -------------------------------------------------------------------- */

/* What a fiber that parks waits for. */
static void describe_wait(const struct fz_fiber *f, struct fz_trace_event *e)
{
	e->what = f->call.waits_for;
	if (e->what == FZ_FOR_REQUEST) {
		const struct fz_asked *asked = f->waits.object;

		e->opcode = asked->opcode;
		/* These opcodes name no descriptor. */
		if (e->opcode != FZ_UAPI_OP_WAITID && e->opcode != FZ_UAPI_OP_FUTEX_WAIT)
			e->fd = asked->fd;
	} else if (e->what == FZ_FOR_READY) {
		const struct fz_ready *ready = f->waits.object;

		if (ready->count == 1)
			e->fd = ready->fds[0].fd;
	}
}

void fz_trace_switch(const struct fz_carrier *c, const struct fz_fiber *from,
		     const struct fz_fiber *to, enum fz_left how)
{
	struct fz_trace_event e = {
		.kind = FZ_TRACE_SWITCH, .tid = from->thread.tid, .other = to->thread.tid,
		.how = (uint8_t)how, .fd = -1, .fiber = from->thread.tid ? from : to,
	};

	if (how == FZ_LEFT_PARKED)
		describe_wait(from, &e);
	/* Note the caller also if the processor was lost: a brief call that took long may end here. */
	if (how == FZ_LEFT_PARKED || how == FZ_LEFT_NO_PROCESSOR)
		find_caller(__builtin_frame_address(0), &e);
	if (c->processor)
		write_event((uint32_t)(c->processor - fz_sched.processors) + 1, c->processor->picked_at,
			    &e);
	else
		write_event(0, 0, &e);
}

void fz_trace_wake(const struct fz_fiber *woken, int why)
{
	const struct fz_fiber *self = fz_self();
	struct fz_trace_event e = {
		.kind = FZ_TRACE_WAKE, .tid = woken->thread.tid, .other = self->thread.tid,
		.what = (uint8_t)why, .fd = -1, .fiber = woken,
	};

	/* fz_cycles() faults in a thread that has asked for that (PR_SET_TSC); such a thread is native or wired. */
	if (self->kind != FZ_KIND_NATIVE && self->kind != FZ_KIND_WIRED)
		write_event(own_ring(self), 0, &e);
}

/*
 * Inlined: find_caller() starts at the frame of the function that calls this one, and a tail call
 * would have removed that frame.
 */
__attribute__((always_inline)) static inline void write_call(const struct fz_fiber *self,
							     enum fz_trace_kind kind)
{
	struct fz_trace_event e = {
		.kind = (uint8_t)kind, .tid = self->thread.tid, .fd = -1, .fiber = self,
	};

	find_caller(__builtin_frame_address(0), &e);
	write_event(own_ring(self), 0, &e);
}

void fz_trace_announce(const struct fz_fiber *self)
{
	write_call(self, FZ_TRACE_ANNOUNCE);
}

void fz_trace_back(const struct fz_fiber *self)
{
	write_call(self, FZ_TRACE_BACK);
}

void fz_trace_wire(const struct fz_fiber *self)
{
	struct fz_trace_event e = {
		.kind = FZ_TRACE_WIRE, .tid = self->thread.tid, .other = self->carrier->tid,
		.fd = -1, .fiber = self,
	};

	find_caller(__builtin_frame_address(0), &e);
	write_event(0, 0, &e);
}

void fz_trace_preempt(const struct fz_carrier *c)
{
	/* relaxed: if the carrier switches meanwhile, either fiber will do. */
	const struct fz_fiber *f = atomic_load_explicit(&c->running, memory_order_relaxed);
	const uint32_t calls = atomic_load_explicit(&c->calls, memory_order_relaxed);
	struct fz_trace_event e = {
		.kind = FZ_TRACE_PREEMPT, .tid = f->thread.tid, .other = c->tid,
		.what = calls & FZ_CARRIER_IN_CALL, .fd = -1, .fiber = f,
	};

	write_event(0, 0, &e);
}
