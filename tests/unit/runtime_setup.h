/* SPDX-License-Identifier: MIT */
#ifndef FZ_TESTS_UNIT_RUNTIME_SETUP_H
#define FZ_TESTS_UNIT_RUNTIME_SETUP_H

/*
 * tests/unit/runtime_setup.h - the runtime in a test's own process, without
 * being preloaded: struct fz_host is filled with plain pthread functions.
 *
 * Criterion runs each test in a process of its own, so start inside the test.
 * Fibers must not use cr_assert (it would jump to another stack): they count,
 * and the test's own thread looks.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "runtime/fiber/fiber.h"
#include "runtime/sched/park.h"
#include "runtime/sched/sched.h"

/* Layout, host and arch only: enough for native threads. */
void setup_layout(void);

/* All of it; the caller becomes the main fiber.  Aborts with a reason on failure. */
void setup_start(unsigned processors);

/* setup_start() takes what FIBERIZE_BACKEND says, or io_uring. */
void setup_start_on(unsigned processors, enum fz_backend_kind backend);

/* How often the runtime asked for them. */
extern _Atomic unsigned setup_resets, setup_destructor_runs, setup_cancels;

/* A joinable fiber, from a fiber.  Aborts if that fails. */
struct fz_fiber *spawn(void *(*fn)(void *), void *arg);
struct fz_fiber *spawn_with(void *(*fn)(void *), void *arg, size_t stack, bool detached);
void *join(struct fz_fiber *fiber);

/* A kernel thread, which the runtime knows nothing of; all signals blocked. */
pthread_t native(void *(*fn)(void *), void *arg);

/* Give way for a moment: any thread outside the runtime. */
void nap(fz_nsec ns);
void yield_fiber(void);

/* xorshift64*; the state is the caller's, never 0. */
uint64_t random_next(uint64_t *state);

fz_nsec now_ns(void);

/*
 * Wait for something that will be true soon.  It gives up after many looks, however long
 * they take: 40 s on an idle machine.
 */
#define EVENTUALLY(cond)						\
	({								\
		unsigned looks_ = 400000;				\
		bool true_;						\
		while (!(true_ = (cond)) && --looks_)			\
			nap(100 * FZ_USEC);				\
		true_;							\
	})

/* relaxed is enough for counts that are looked at after a join. */
#define COUNT(a) atomic_fetch_add_explicit(&(a), 1, memory_order_relaxed)
#define GET(a) atomic_load_explicit(&(a), memory_order_seq_cst)
#define SET(a, v) atomic_store_explicit(&(a), (v), memory_order_seq_cst)

#endif
