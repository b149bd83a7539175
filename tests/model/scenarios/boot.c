/* SPDX-License-Identifier: MIT */
/*
 * tests/model/scenarios/boot.c - the way of a scenario: start the runtime, make its threads, let
 * everything come to rest; then the exploring begins.
 */
#include "tests/model/model.h"
#include "tests/model/reduce/reduce.h"
#include "tests/model/scenario.h"

#include "runtime/base/time.h"
#include "runtime/fiber/fiber.h"
#include "runtime/sched/park.h"
#include "runtime/sched/sched.h"
#include "runtime/sync/lot.h"

const struct scenario *scenario_now;

static _Atomic uint32_t gate, natives_left;

uint64_t model_now(void)
{
	reduce_use(OBJECT_CLOCK, false);
	return M.now;
}

void model_nap(uint64_t ns)
{
	fz_sleep(fz_self(), FZ_FOR_TIME, fz_now() + ns, 0);
}

void announce(_Atomic uint32_t *word)
{
	atomic_fetch_add_explicit(word, 1, memory_order_release);
	fz_lot_wake(word, UINT32_MAX);
}

void await(_Atomic uint32_t *word, uint32_t count)
{
	uint32_t now;

	while ((now = atomic_load_explicit(word, memory_order_acquire)) < count)
		fz_lot_wait(word, now, FZ_FOREVER, 0);
}

static void pass_gate(void)
{
	while (!atomic_load_explicit(&gate, memory_order_acquire))
		fz_lot_wait(&gate, 0, FZ_FOREVER, 0);
}

static void *fiber_thread(void *arg)
{
	pass_gate();
	scenario_now->thread((int)(intptr_t)arg);
	return NULL;
}

static void *native_thread(void *arg)
{
	pass_gate();
	scenario_now->thread((int)(intptr_t)arg);
	atomic_fetch_sub_explicit(&natives_left, 1, memory_order_acq_rel);
	fz_lot_wake(&natives_left, 1);
	return NULL;
}

static struct fz_fiber *spawn(int i)
{
	struct fz_birth birth = { .start = fiber_thread, .arg = (void *)(intptr_t)i,
				  .stack_size = 64 * 1024, .guard_size = 4096, .mask = fz_self()->mask };
	unsigned long handle = 0;
	int err = fz_fiber_create(&birth, &handle);

	if (err)
		model_outside("fz_fiber_create while the scenario is set up");
	return fz_fiber_of_handle(handle);
}

/* The point that each run begins at: everything is at rest, and the gate has been opened. */
static void begin(void)
{
	struct kthread *kt = &M.kt[M.current];

	kt->tcb = fz_tcb_get();
	fz_switch_fsgsbase(&kt->sp, explorer_sp, explorer_tcb);
}

void scenario_boot(void *arg)
{
	const struct scenario *s = arg;
	struct fz_fiber *fibers[8];
	const char *why = "";
	uint32_t left;

	scenario_now = s;
	host_lay_out();
	if (fz_sched_start(s->processors, s->rings ? FZ_BACKEND_RING : FZ_BACKEND_EPOLL, &why))
		model_outside(why);
	if (s->prepare)
		s->prepare();
	for (unsigned i = 0; i < s->fibers; i++)
		fibers[i] = spawn((int)i);
	atomic_store_explicit(&natives_left, s->natives, memory_order_relaxed);
	for (unsigned i = 0; i < s->natives; i++)
		host_thread_create(NULL, 0, native_thread, (void *)(intptr_t)(s->fibers + i), NULL);
	model_nap(100 * FZ_MSEC);
	atomic_store_explicit(&gate, 1, memory_order_release);
	fz_lot_wake(&gate, UINT32_MAX);
	begin();
	/* What the gate has woken may go first, which no system call of this thread need allow. */
	schedule_point();
	for (unsigned i = 0; i < s->fibers; i++)
		fz_fiber_join(fibers[i], FZ_FOREVER, NULL);
	while ((left = atomic_load_explicit(&natives_left, memory_order_acquire)))
		fz_lot_wait(&natives_left, left, FZ_FOREVER, 0);
	if (s->finish)
		s->finish();
	check_end();
	if (s->apply)
		check_linear(s);
	run_over(RUN_PASSED);
}
