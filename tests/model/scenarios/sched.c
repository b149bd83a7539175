/* SPDX-License-Identifier: MIT */
/*
 * tests/model/scenarios/sched.c - processors change hands: yields, sleeps, announced calls.
 */
#include "tests/model/rings.h"
#include "tests/model/scenario.h"

#include "arch/arch.h"
#include "runtime/base/sys.h"
#include "runtime/base/time.h"
#include "runtime/sched/announce.h"
#include "runtime/sched/monitor.h"
#include "runtime/sched/park.h"
#include "runtime/sched/provide.h"
#include "runtime/sched/sched.h"
#include "runtime/sync/lot.h"

static _Atomic int rounds;
static _Atomic uint32_t turn;

/* A call of the program that takes some time. */
static void real_call(void)
{
	const struct __kernel_timespec ts = fz_timespec(FZ_MSEC / 2);

	fz_syscall2(__NR_nanosleep, (long)&ts, 0);
}

static void yield_twice(int i)
{
	(void)i;
	fz_sched_give_way(fz_self());
	fz_sched_give_way(fz_self());
	rounds++;
}

static void all_rounds(void)
{
	MODEL_CHECK(rounds == (int)scenario_now->fibers, "%d rounds", rounds);
}

SCENARIO(yield) = { .name = "yield", .what = "3 fibers yield", .processors = 2, .fibers = 3,
	.thread = yield_twice, .finish = all_rounds };

/* More fibers than carriers, which steal from each other. */
SCENARIO(yield_apart) = { .name = "yield_apart", .what = "4 fibers yield, on 3 processors", .processors = 3,
	.fibers = 4, .thread = yield_twice, .finish = all_rounds };

static _Atomic bool let_go;

/* The first yields to the second, which is CPU-bound and waits for it: only the other carrier can run it. */
static void yield_or_compute(int i)
{
	if (i == 0) {
		fz_sched_give_way(fz_self());
		let_go = true;
	} else {
		atomic_store_explicit(&fz_self()->cpu_bound_score, FZ_CPU_BOUND_MOST, memory_order_relaxed);
		fz_sched_give_way(fz_self());
		while (!let_go)
			fz_syscall0(__NR_sched_yield);
	}
	rounds++;
}

SCENARIO(yield_behind) = { .name = "yield_behind", .what = "a fiber yields to one that is CPU-bound and waits for it",
	.processors = 2, .fibers = 2, .thread = yield_or_compute, .finish = all_rounds };

static void announced(int i)
{
	if (i < 2) {
		fz_announce(fz_self());
		real_call();
	}
	fz_sched_give_way(fz_self());
	rounds++;
}

SCENARIO(announce) = { .name = "announce", .what = "2 fibers announce a call, a third wants the processor",
	.processors = 1, .fibers = 3, .thread = announced, .finish = all_rounds };

static void brief(int i)
{
	if (i < 2) {
		fz_announce_brief(fz_self());
		real_call();
		fz_announce_end(fz_self());
	}
	fz_sched_give_way(fz_self());
	rounds++;
}

SCENARIO(brief) = { .name = "brief", .what = "2 brief calls that take their time, a third fiber wants the processor",
	.processors = 1, .fibers = 3, .thread = brief, .finish = all_rounds };

/*
 * The native thread takes the processor as the monitor does when a call of the program lasts, and tries again until the
 * processor has a carrier: an idle one, or one that comes back from a call.  The monitor may do so at the same time: each
 * takes it by compare-and-swap.
 */
static void taken_as_user(int i)
{
	struct fz_processor *p = &fz_sched.processors[0];
	uintptr_t owner = p->owner;
	bool taken;

	if (i < 2) {
		announced(i);
		return;
	}
	if ((owner & FZ_OWNER_STATE_MASK) != FZ_OWNER_USER)
		return;
	fz_enter_runtime(fz_self());
	taken = fz_processor_take(p, owner);
	while (!taken && ((owner = p->owner) & FZ_OWNER_STATE_MASK) == FZ_OWNER_ANNOUNCED) {
		real_call();
		taken = fz_processor_take(p, owner);
	}
	fz_leave_runtime(fz_self());
}

static void two_rounds(void)
{
	MODEL_CHECK(rounds == 2, "%d rounds", rounds);
}

SCENARIO(taken_as_user) = { .name = "taken_as_user",
	.what = "a processor is taken from the program while its carrier comes back", .processors = 1, .fibers = 2,
	.natives = 1, .thread = taken_as_user, .finish = two_rounds };

static void nap(int i)
{
	model_nap(i ? FZ_MSEC : 2 * FZ_MSEC);
	rounds++;
}

SCENARIO(nap) = { .name = "nap", .what = "2 fibers sleep", .processors = 2, .fibers = 2, .thread = nap,
	.finish = all_rounds };

/* Each waits for its turn: a wake-up goes to and fro, between processors that fall asleep. */
static void ping_pong(int i)
{
	for (uint32_t n = (uint32_t)i; n < 4; n += 2) {
		uint32_t now;

		while ((now = atomic_load_explicit(&turn, memory_order_acquire)) != n)
			fz_lot_wait(&turn, now, FZ_FOREVER, 0);
		atomic_store_explicit(&turn, n + 1, memory_order_release);
		fz_lot_wake(&turn, UINT32_MAX);
	}
	rounds++;
}

SCENARIO(ping_pong) = { .name = "ping_pong", .what = "2 fibers wait for each other in turn",
	.processors = 2, .fibers = 2, .thread = ping_pong, .finish = all_rounds };

static void close_but(uint32_t open)
{
	struct fz_fiber *self = fz_self();

	fz_enter_runtime(self);
	fz_provide_open(open);
	fz_leave_runtime(self);
}

/* The last one closes a processor and opens it again, wherever the others are; and closes it for good. */
static void ping_pong_or_close(int i)
{
	if (i < 2) {
		ping_pong(i);
		return;
	}
	close_but(1);
	close_but(2);
	fz_sched_give_way(fz_self());
	close_but(1);
	rounds++;
}

SCENARIO(closing) = { .name = "closing", .what = "2 fibers wait for each other in turn, a third closes and opens a processor",
	.processors = 2, .fibers = 3, .thread = ping_pong_or_close, .finish = all_rounds };

static void nap_or_close(int i)
{
	if (i < 2)
		nap(i);
	else
		ping_pong_or_close(i);
}

SCENARIO(closing_nap) = { .name = "closing_nap", .what = "2 fibers sleep, a third closes and opens a processor",
	.processors = 2, .fibers = 3, .thread = nap_or_close, .finish = all_rounds };

/* The last one uses its processor until the others have run: on the one that it has opened again. */
static void open_and_spin(int i)
{
	if (i < 2) {
		fz_sched_give_way(fz_self());
		rounds++;
		return;
	}
	close_but(1);
	close_but(2);
	while (rounds < 2)
		fz_cpu_relax();
	rounds++;
}

SCENARIO(closing_spin) = { .name = "closing_spin", .what = "2 fibers yield, a third closes and opens a processor, and spins",
	.processors = 2, .fibers = 3, .thread = open_and_spin, .finish = all_rounds };

/* To the other processor, which may be closed by then, and from one that may be closed. */
static void move_or_close(int i)
{
	struct fz_fiber *self = fz_self();

	if (i == 2) {
		ping_pong_or_close(i);
		return;
	}
	fz_enter_runtime(self);
	fz_sched_yield_to(self, &fz_sched.processors[fz_processor_of(self) == fz_sched.processors]);
	fz_leave_runtime(self);
	fz_sched_give_way(self);
	rounds++;
}

SCENARIO(closing_move) = { .name = "closing_move", .what = "2 fibers move to the other processor, a third closes and opens it",
	.processors = 2, .fibers = 3, .thread = move_or_close, .finish = all_rounds };

/* The first uses its CPU until one of the others has run, which it wakes: its processor is busy. */
static void spin(int i)
{
	if (i == 0) {
		atomic_store_explicit(&turn, 1, memory_order_release);
		fz_lot_wake(&turn, UINT32_MAX);
		while (!rounds)
			fz_cpu_relax();
		rounds++;
		return;
	}
	while (!atomic_load_explicit(&turn, memory_order_acquire))
		fz_lot_wait(&turn, 0, FZ_FOREVER, 0);
	rounds++;
}

SCENARIO(spin) = { .name = "spin", .what = "a fiber spins until one of 2 that it wakes has run",
	.processors = 2, .fibers = 3, .thread = spin, .finish = all_rounds };

static _Atomic uint32_t there, returns;

static void announce_there(void)
{
	atomic_fetch_add_explicit(&there, 1, memory_order_release);
	fz_lot_wake(&there, UINT32_MAX);
}

/*
 * The first comes back from a call, takes a processor whose carrier sleeps, and uses it until the second has run, which a
 * native thread wakes meanwhile: the other processor sleeps, too.
 */
static void take_or_wake(int i)
{
	uint32_t now;

	switch (i) {
	case 0:
		announce_there();
		fz_announce(fz_self());
		while (!atomic_load_explicit(&returns, memory_order_acquire))
			fz_sys_futex_wait(&returns, 0, NULL);
		fz_announce_end(fz_self());
		while (!rounds)
			fz_cpu_relax();
		break;
	case 1:
		announce_there();
		while (!atomic_load_explicit(&turn, memory_order_acquire))
			fz_lot_wait(&turn, 0, FZ_FOREVER, 0);
		break;
	default:
		while ((now = atomic_load_explicit(&there, memory_order_acquire)) < 2)
			fz_lot_wait(&there, now, FZ_FOREVER, 0);
		atomic_store_explicit(&returns, 1, memory_order_release);
		fz_sys_futex_wake(&returns, 1);
		atomic_store_explicit(&turn, 1, memory_order_release);
		fz_lot_wake(&turn, UINT32_MAX);
		return;
	}
	rounds++;
}

SCENARIO(ping_native) = { .name = "ping_native", .what = "a fiber and a native thread, the same",
	.processors = 2, .fibers = 1, .natives = 1, .thread = ping_pong, .finish = two_rounds };

SCENARIO(ping_ring) = { .name = "ping_ring", .what = "a fiber and a native thread, the same, on io_uring",
	.processors = 2, .fibers = 1, .natives = 1, .thread = ping_pong, .finish = two_rounds, .rings = true };

SCENARIO(kick_taken) = { .name = "kick_taken", .what = "a fiber spins on a processor that it takes while another thread kicks it",
	.processors = 2, .fibers = 2, .natives = 1, .thread = take_or_wake, .finish = two_rounds };

static struct fz_fiber *taker;

static void *take_and_spin(void *arg)
{
	fz_announce(fz_self());
	while (!atomic_load_explicit(&returns, memory_order_acquire))
		fz_sys_futex_wait(&returns, 0, NULL);
	fz_announce_end(fz_self());
	while (!rounds)
		fz_cpu_relax();
	rounds++;
	return arg;
}

/* Before the exploring begins the taker has lost its processor in its call, and both processors sleep. */
static void lose_processor(void)
{
	struct fz_birth birth = { .start = take_and_spin, .stack_size = 64 * 1024, .guard_size = 4096 };
	unsigned long handle = 0;

	MODEL_CHECK(fz_fiber_create(&birth, &handle) == 0, "no thread is made");
	taker = fz_fiber_of_handle(handle);
	model_nap(FZ_MSEC);
}

static void be_woken_or_wake(int i)
{
	if (i == 0) {
		await(&turn, 1);
		rounds++;
		return;
	}
	/* The monitor, which would find the fiber, looks now, and not again before its next tick. */
	fz_monitor_poke();
	real_call();
	atomic_store_explicit(&returns, 1, memory_order_release);
	fz_sys_futex_wake(&returns, 1);
	announce(&turn);
}

static void two_rounds_joined(void)
{
	fz_fiber_join(taker, FZ_FOREVER, NULL);
	two_rounds();
}

SCENARIO(kick_of_lost) = { .name = "kick_of_lost", .what = "the same, by a fiber that has lost its own before",
	.processors = 2, .fibers = 1, .natives = 1, .prepare = lose_processor, .thread = be_woken_or_wake,
	.finish = two_rounds_joined };

static void ping_or_end(int i)
{
	if (i)
		model_end_multishot();
	ping_pong(i);
}

SCENARIO(ping_ring_ends) = { .name = "ping_ring_ends", .what = "the same, and the kernel ends a poll that goes on",
	.processors = 2, .fibers = 1, .natives = 1, .thread = ping_or_end,
	.finish = two_rounds, .rings = true };
