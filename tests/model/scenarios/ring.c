/* SPDX-License-Identifier: MIT */
/*
 * tests/model/scenarios/ring.c - requests on rings: processors change hands while they are published, and the rings
 * are lost at any moment.
 */
#include "tests/model/scenario.h"

#include <asm/errno.h>
#include <linux/poll.h>

#include "tests/model/rings.h"

#include "arch/arch.h"
#include "runtime/backend/liburing.h"
#include "runtime/backend/ring.h"
#include "runtime/base/sys.h"
#include "runtime/base/time.h"
#include "runtime/sched/announce.h"
#include "runtime/sched/park.h"
#include "runtime/sched/sched.h"

enum { WAITERS = 2 };

static int event[WAITERS];
static _Atomic int rounds;
/* Not on a stack: a request that is completed twice shows that. */
static struct fz_request request[WAITERS];

static void make_events(void)
{
	for (int i = 0; i < WAITERS; i++)
		event[i] = (int)fz_syscall2(__NR_eventfd2, 0, 0);
}

/* Poll the eventfd of i once.  Returns the result. */
static int poll_event(int i)
{
	struct fz_fiber *self = fz_self();
	struct fz_request *r = &request[i];
	struct fz_ring *ring;
	struct io_uring_sqe *sqe;

	fz_enter_runtime(self);
	ring = &fz_processor_of(self)->backend.ring;
	*r = (struct fz_request){ .fiber = self };
	atomic_store_explicit(&r->number, fz_wait_arm(self, 0).number, memory_order_relaxed);
	sqe = fz_ring_sqe(ring);
	io_uring_prep_poll_add(sqe, event[i], POLLIN);
	fz_ring_set_request(ring, sqe, r);
	ring->in_flight++;
	fz_park(self, FZ_FOREVER);
	fz_leave_runtime(self);
	MODEL_CHECK(atomic_load_explicit(&r->number, memory_order_acquire) == FZ_REQUEST_DONE,
		    "waiter %d goes on before its request is complete", i);
	return r->result;
}

static void tell(int i)
{
	const uint64_t one = 1;

	fz_syscall3(__NR_write, event[i], (long)&one, sizeof(one));
}

/* The first fiber tells both others, which have begun to wait during a call of its. */
static void waits_or_tells(int i)
{
	const struct __kernel_timespec ts = fz_timespec(FZ_MSEC / 2);

	if (!i) {
		fz_announce(fz_self());
		fz_syscall2(__NR_nanosleep, (long)&ts, 0);
		fz_sched_give_way(fz_self());
		tell(0);
		tell(1);
	} else if (i <= WAITERS) {
		const int result = poll_event(i - 1);

		MODEL_CHECK(result == POLLIN || (result == -ECANCELED && fz_backend_kind() == FZ_BACKEND_EPOLL),
			    "waiter %d: result %d", i, result);
	} else {
		model_forbid_rings();
	}
	rounds++;
}

static void all_rounds(void)
{
	const int threads = (int)(scenario_now->fibers + scenario_now->natives);

	MODEL_CHECK(rounds == threads, "%d rounds", rounds);
}

SCENARIO(ring) = { .name = "ring", .what = "a fiber announces a call, 2 begin to poll meanwhile, and it ends both polls",
	.processors = 1, .fibers = 3, .prepare = make_events, .thread = waits_or_tells, .finish = all_rounds,
	.rings = true };

SCENARIO(ring_lost) = { .name = "ring_lost", .what = "the same, and a filter forbids the ring at any moment",
	.processors = 1, .fibers = 3, .natives = 1, .prepare = make_events, .thread = waits_or_tells,
	.finish = all_rounds, .rings = true };

/* ---- a carrier that has lost its processor in its wait, by itself ---------- */

/* When the request is published: before or after the processor is lost; before, and the loser is in the kernel. */
enum when { BEFORE, AFTER, LOSER_IS_IN_KERNEL };

static _Atomic uint32_t lost_processor;
static uint32_t published;

static void lose_processor(struct fz_backend *b)
{
	fz_backend_note_loser(b);
	fz_backend_kick(b);
	atomic_store_explicit(&lost_processor, 1, memory_order_release);
}

/* The native thread is that carrier: it enters the kernel at any moment from then on. */
static void loser(struct fz_backend *b, enum when when)
{
	while (!atomic_load_explicit(&lost_processor, memory_order_acquire))
		fz_cpu_relax();
	fz_ring_wait(&b->ring, when == AFTER ? 0 : published, FZ_FOREVER);
	fz_backend_note_left(b);
}

/* The owner loses the ring. */
static void owner(struct fz_backend *b, enum when when)
{
	struct fz_fiber *self = fz_self();
	struct fz_request *r = &request[0];
	struct io_uring_sqe *sqe;
	bool kicked;

	fz_enter_runtime(self);
	if (when == AFTER) {
		lose_processor(b);
		fz_ring_reap(&b->ring, UINT32_MAX, &kicked);
	}
	*r = (struct fz_request){ .fiber = self };
	atomic_store_explicit(&r->number, fz_wait_arm(self, 0).number, memory_order_relaxed);
	sqe = fz_ring_sqe(&b->ring);
	io_uring_prep_nop(sqe);
	fz_ring_set_request(&b->ring, sqe, r);
	b->ring.in_flight++;
	published = fz_ring_publish(&b->ring);
	if (when == LOSER_IS_IN_KERNEL)
		model_hold_ring_lock();
	if (when != AFTER)
		lose_processor(b);
	while (when == LOSER_IS_IN_KERNEL && !model_ring_lock_is_awaited())
		fz_cpu_relax();
	model_forbid_rings();
	fz_ring_submit(&b->ring);
	while (atomic_load_explicit(&r->number, memory_order_acquire) != FZ_REQUEST_DONE) {
		fz_ring_reap(&b->ring, UINT32_MAX, &kicked);
		fz_cpu_relax();
	}
	fz_wait_disarm(self);
	MODEL_CHECK(r->result == 0 || r->result == -ECANCELED, "result %d", r->result);
	MODEL_CHECK(!fz_ring_queued(&b->ring), "%d requests are queued", (int)fz_ring_queued(&b->ring));
	MODEL_CHECK(!b->ring.in_flight, "%d requests are in flight", (int)b->ring.in_flight);
	fz_leave_runtime(self);
}

static void loses(int i, enum when when)
{
	struct fz_backend *b = &fz_sched.processors[0].backend;

	if (i)
		loser(b, when);
	else
		owner(b, when);
	rounds++;
}

static void publishes_before(int i)
{
	loses(i, BEFORE);
}

static void publishes_after(int i)
{
	loses(i, AFTER);
}

static void loser_is_in_kernel(int i)
{
	loses(i, LOSER_IS_IN_KERNEL);
}

SCENARIO(ring_loser) = { .name = "ring_loser", .what = "a carrier has published a request, lost its processor, and the ring is lost",
	.processors = 1, .fibers = 1, .natives = 1, .thread = publishes_before, .finish = all_rounds, .rings = true };

SCENARIO(ring_asleep) = { .name = "ring_asleep", .what = "the same, but its successor publishes the request, and may reap the kick",
	.processors = 1, .fibers = 1, .natives = 1, .thread = publishes_after, .finish = all_rounds, .rings = true };

SCENARIO(ring_entered) = { .name = "ring_entered", .what = "as ring_loser, but the carrier waits for the ring's lock in the kernel",
	.processors = 1, .fibers = 1, .natives = 1, .thread = loser_is_in_kernel, .finish = all_rounds, .rings = true };

/* ---- another thread asks the owner to cancel ------------------------------- */

/* Each request is complete, but the owner has it in its list: it exists until the owner has taken it off. */
static void ask_owner(int i)
{
	struct fz_processor *p = &fz_sched.processors[0];
	const struct __kernel_timespec ts = fz_timespec(FZ_MSEC / 16);
	struct fz_request *r = &request[i];

	atomic_store_explicit(&r->number, FZ_REQUEST_DONE, memory_order_relaxed);
	fz_ring_ask_cancel(&p->backend.ring, r);
	do {
		fz_sched_hasten(p);
		fz_syscall2(__NR_nanosleep, (long)&ts, 0);
	} while (fz_ring_is_asked(r));
	/* Other things are there now. */
	*r = (struct fz_request){ .any = true, .number = FZ_REQUEST_DONE + 1 };
	rounds++;
}

static void left_alone(void)
{
	all_rounds();
	for (int i = 0; i < WAITERS; i++)
		MODEL_CHECK(request[i].any, "what is no request any more is cancelled");
}

SCENARIO(ring_asked) = { .name = "ring_asked", .what = "2 ask the owner of a ring to cancel what is complete by then",
	.processors = 1, .natives = 2, .thread = ask_owner, .finish = left_alone, .rings = true };
