/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_FIBER_FIBER_H
#define FZ_RUNTIME_FIBER_FIBER_H

/*
 * runtime/fiber/fiber.h - the record of one thread, and the life of a fiber.
 *
 * Every thread that libc knows has a record, in its own thread-local storage at
 * a fixed distance from its TCB: pthread_t -> record is an addition, and
 * fz_self() moves with the thread pointer, so it is right after a migration.
 * A zeroed record is that of a native thread.
 */

#include "runtime/base/base.h"
#include "runtime/base/sys.h"

struct fz_carrier;
struct fz_processor;
struct fz_signode;

enum fz_kind {
	FZ_KIND_NATIVE,		/* a kernel thread of libc's, left alone */
	FZ_KIND_FIBER,
	FZ_KIND_WIRED,		/* was a fiber, has its kernel thread for good */
	FZ_KIND_CARRIER,	/* a carrier's own context */
	FZ_KIND_HELPER,		/* the monitor, and the spawner of carriers */
};

/* The kernel's stack_t; all zero but SS_DISABLE if there is none. */
struct fz_alt_stack {
	void *sp;
	int flags;
	size_t size;
};

/* Bits of fz_fiber.thread.life; a new life starts from 0 or FZ_LIFE_DETACHED. */
enum {
	FZ_LIFE_ENDED = 1,	/* its context is quiescent, its result final */
	FZ_LIFE_DETACHED = 2,
	FZ_LIFE_JOINING = 4,	/* somebody has the right to join it */
	FZ_LIFE_FREE = 8,	/* no thread: handles to it are stale */
	FZ_LIFE_RETIRED = 16,	/* ended with its kernel thread, see retiring */
};

/*
 * What is grouped below belongs to one part of the runtime each; nothing else writes it.
 */

/* Cancellation (runtime/sched/cancel.h). */
struct fz_fiber_cancel {
	/* Somebody has called pthread_cancel: libc's word tells what of it. */
	_Atomic bool sent;
	/* libc's handler has looked where it is; calls after that look themselves. */
	_Atomic bool seen;
	/* It is in a call that sees to its cancellation itself; read by any thread. */
	_Atomic bool deferred;
};

/* The call that it is in; by the thread, and handlers on it. */
struct fz_fiber_call {
	/*
	 * It may hold locks that the runtime's own threads need as well, so it waits on
	 * its kernel thread, all signals blocked, and does not enter the runtime.
	 */
	bool blocks;
	/* In libc's fork, which holds those of malloc: the runtime's threads may wait for them. */
	bool in_fork;
	uint8_t reads;			/* counts, for fz_io_take_turns() */
};

/* Deadline of the current wait (runtime/sched/timer.h); guarded by processor's heap lock. */
struct fz_fiber_timer {
	fz_nsec deadline;
	uint64_t wait;			/* the value of fz_fiber.wait it belongs to */
	struct fz_processor *processor;
	uint32_t slot;			/* 1-based place in the heap, 0: not in it */
};

/* What the program calls a thread: birth, end and what others know it by. */
struct fz_fiber_thread {
	_Atomic uint32_t life;		/* FZ_LIFE_*; any thread; waited for by joiners */
	int tid;			/* what gettid() answers */
	void *(*start)(void *);
	void *arg;
	void *result;
	struct fz_fiber *joins;		/* whom it is joining, for EDEADLK */
	_Atomic uint32_t retiring;	/* cleared by the kernel when its thread is gone */
	bool recycled;			/* not its first life: TLS needs a reset */
	bool is_main;
	bool owns_kernel_state;		/* wired for it: what it makes must inherit it */
	char name[16];
	void *robust_list;		/* libc's list head, as the kernel had it */
};

/* Its memory (runtime/fiber/stack.h). */
struct fz_fiber_mem {
	void *stack;			/* lowest usable byte */
	size_t stack_size;		/* up to the end of TLS and TCB */
	size_t guard_size;
	size_t asked_guard;		/* what this life was to have at least */
};

/* CPU time, ns (runtime/fiber/cputime.h); any thread. */
struct fz_fiber_cpu {
	_Atomic uint64_t time, time_seen;
	uint64_t user_seen, system_seen;	/* what getrusage() has told it */
};

/* Signals (runtime/signal/signal.h); by the thread, and handlers on it, unless it says else. */
struct fz_fiber_sig {
	/* fz_fiber.mask without that of a handler; written under the registry's lock. */
	uint64_t mask_counted;
	uint8_t injecting;		/* the signal that it is sending to itself */
	uint8_t owed;			/* likewise, when the handler returns that runs now */
	/* Before its first instruction or after its last: no handler may run. */
	bool between_lives;
	bool handler_ends;		/* about to return, by a mask that is not yet true */
	uint32_t handlers_run;		/* counts; whoever cares resets it */
	bool suspended;			/* in a call that a handler ends, even now */
	bool restores_mask;		/* the first handler's end puts back ... */
	uint64_t mask_to_restore;	/* ... what was in force before that call */
	struct __kernel_timespec limit;	/* of a real call that a handler ends: it makes it 0 */
	_Atomic uint64_t timer_signals;	/* of timers for this thread, if the kernel knows it */
	uint64_t sigwait_set;		/* it is in sigwait for these */
	_Atomic(struct fz_signode *) arrivals;	/* runtime/signal/queue.h; any thread */
	struct fz_signode *queue;		/* the first of each signal */
	struct fz_alt_stack alt_stack;	/* what sigaltstack set */
};

/*
 * Owner: the carrier that runs the fiber, or the queue it is in; parked, whoever
 * wins fz_wake().  Exceptions are named at the field.  Never unmapped, so a
 * stale pointer to a fiber may be followed; what it finds may be the next life.
 */
struct fz_fiber {
	/*
	 * The first cache line: what a request, a switch and a wake-up touch, whosever it
	 * is, and therefore in no group.  With a thousand connections each further line is
	 * a miss each time.
	 */
	_Alignas(FZ_CACHE_LINE)
	void *sp;			/* saved context; NULL while it runs */
	uintptr_t tcb;
	struct fz_carrier *carrier;	/* valid while running */
	_Atomic uint64_t wait;		/* runtime/sched/park.h; any thread */
	struct fz_fiber *next;		/* run queue, free list */
	_Atomic uint64_t pending;	/* signals (runtime/signal/signal.h); any thread */
	uint64_t mask;			/* what pthread_sigmask set */
	/* Set and cleared by this thread, read by signal handlers on it. */
	_Atomic uint32_t in_runtime;
	uint8_t kind;			/* enum fz_kind */
	bool has_alt_stack;		/* sig.alt_stack is in force */
	bool must_return_eintr;		/* a handler without SA_RESTART has run */
	_Atomic uint8_t cpu_bound_score;	/* see fz_fiber_is_cpu_bound() */

	/* The second: what a call looks at besides, and a wait with a deadline. */
	struct fz_fiber_cancel cancel;
	struct fz_fiber_call call;
	struct fz_fiber_timer timer;

	struct fz_fiber_thread thread;
	struct fz_fiber_mem mem;
	struct fz_fiber_cpu cpu;
	struct fz_fiber_sig sig;

	/* All fibers, guarded by the registry lock (runtime/fiber/registry.c). */
	struct {
		struct fz_fiber *next, *prev;
	} all;
};

_Static_assert(offsetof(struct fz_fiber, cancel) == FZ_CACHE_LINE,
	       "a request, a switch and a wake-up touch one line of the record");
_Static_assert(offsetof(struct fz_fiber, thread.tid) + sizeof(int) <= 2 * FZ_CACHE_LINE,
	       "what each call looks at besides is in the next line");

extern __thread struct fz_fiber fz_self_record
	__attribute__((tls_model("initial-exec"))) FZ_HIDDEN;

/* The calling thread's record.  Any thread, any context. */
static inline struct fz_fiber *fz_self(void)
{
	return &fz_self_record;
}

/* Distances from the thread pointer, fixed at start-up; all 0 if unknown. */
struct fz_layout {
	intptr_t handle;		/* to what pthread_t is */
	intptr_t record;		/* to struct fz_fiber */
	intptr_t tid;			/* to libc's int tid */
	intptr_t cancelhandling;	/* to libc's int cancelhandling */
};
extern struct fz_layout fz_layout FZ_HIDDEN;

static inline struct fz_fiber *fz_fiber_of_tcb(uintptr_t tcb)
{
	return (struct fz_fiber *)(tcb + (uintptr_t)fz_layout.record);
}

/* The same backwards: for native threads too, whose record does not say. */
static inline uintptr_t fz_tcb_of(const struct fz_fiber *f)
{
	return (uintptr_t)f - (uintptr_t)fz_layout.record;
}

static inline struct fz_fiber *fz_fiber_of_handle(unsigned long handle)
{
	return fz_fiber_of_tcb(handle - (uintptr_t)fz_layout.handle);
}

/* libc's own word for a thread's tid; what its mutexes compare. */
static inline _Atomic int *fz_tcb_tid(uintptr_t tcb)
{
	return (_Atomic int *)(tcb + (uintptr_t)fz_layout.tid);
}

static inline _Atomic int *fz_tcb_cancelhandling(uintptr_t tcb)
{
	return (_Atomic int *)(tcb + (uintptr_t)fz_layout.cancelhandling);
}

/* What locks know their owner by: a fiber's own does not change when it is wired. */
static inline int fz_self_tid(void)
{
	int tid = fz_self()->thread.tid;

	if (FZ_LIKELY(tid))
		return tid;
	/* relaxed: our own. */
	return fz_layout.tid ? atomic_load_explicit(fz_tcb_tid(fz_tcb_get()),
						    memory_order_relaxed) :
			       (int)fz_sys_gettid();
}

/*
 * Does it run for long at a time, a quarter of a millisecond or more?  Counted by the monitor,
 * each millisecond, in the fiber that it finds running, and back by each switch.  relaxed, and
 * counts may be lost: only who is to wait for whom depends on it.
 */
enum { FZ_CPU_BOUND_TICK = 4, FZ_CPU_BOUND_FROM = 6, FZ_CPU_BOUND_MOST = 12 };

static inline bool fz_fiber_is_cpu_bound(const struct fz_fiber *f)
{
	return atomic_load_explicit(&f->cpu_bound_score, memory_order_relaxed) >= FZ_CPU_BOUND_FROM;
}

static inline void fz_fiber_found_running(struct fz_fiber *f)
{
	uint8_t n = atomic_load_explicit(&f->cpu_bound_score, memory_order_relaxed);

	if (n < FZ_CPU_BOUND_MOST)
		atomic_store_explicit(&f->cpu_bound_score, (uint8_t)(n + FZ_CPU_BOUND_TICK),
				      memory_order_relaxed);
}

static inline void fz_fiber_has_run(struct fz_fiber *self)
{
	uint8_t n = atomic_load_explicit(&self->cpu_bound_score, memory_order_relaxed);

	if (FZ_UNLIKELY(n))
		atomic_store_explicit(&self->cpu_bound_score, (uint8_t)(n - 1), memory_order_relaxed);
}

/* What a new thread is to be. */
struct fz_birth {
	void *(*start)(void *);
	void *arg;
	size_t stack_size;
	bool any_stack_size;		/* the program has not asked for one */
	size_t guard_size;
	uint64_t mask;
	bool detached;
};

/* Is the record that of a thread of ours, wired or not? */
static inline bool fz_is_fiber(const struct fz_fiber *f)
{
	return f->kind == FZ_KIND_FIBER || f->kind == FZ_KIND_WIRED;
}

/*
 * Make a thread that is a fiber and let it run.  From any thread outside the
 * runtime.  May block the carrier for the 20-100 us that it takes to manufacture one if none is free.
 * Its handle is in *ret_handle before it runs.  Returns 0 or -errno.
 */
int fz_fiber_create(const struct fz_birth *birth, unsigned long *ret_handle);

/*
 * From now on the calling fiber is a kernel thread like any other: for what the
 * kernel must know by thread, such as the owner of a robust or a priority-
 * inheriting mutex.  Outside the runtime.  Idempotent; nothing for others.
 */
void fz_fiber_wire(struct fz_fiber *self);

/*
 * End the calling fiber as the exit system call ends a kernel thread: nothing is
 * unwound, no destructor runs, and its stack is not used again.
 */
_Noreturn void fz_fiber_vanish(struct fz_fiber *self, int status);

/* ---- ends (runtime/fiber/join.c) --------------------------------------------- */

/*
 * Wait until the fiber has ended and take its result.  deadline 0 only tries
 * (-EBUSY).  From fibers and native threads; a cancellation point, which leaves
 * the fiber joinable.  Returns 0, -ESRCH, -EINVAL, -EDEADLK, -EBUSY, -ETIMEDOUT.
 */
int fz_fiber_join(struct fz_fiber *fiber, fz_nsec deadline, void **ret_result);

/* Returns 0, -ESRCH, -EINVAL.  Any thread. */
int fz_fiber_detach(struct fz_fiber *fiber);

/*
 * Who sleeps until self has ended, for self to switch to, or NULL: that saves going by a
 * carrier's own context, with its other signal mask.
 */
struct fz_fiber *fz_fiber_take_joiner(struct fz_fiber *self);

/*
 * After a switch away from an ended fiber, in the next context: nobody uses its
 * stack any more.
 */
void fz_fiber_buried(struct fz_fiber *fiber);

/* ---- the main thread (runtime/fiber/main.c) ---------------------------------- */

/*
 * Make the calling (single) thread a fiber, the main one, in two steps: what may fail,
 * with -errno, and what does not.
 */
int fz_fiber_prepare_main(struct fz_fiber **ret_context);
void fz_fiber_adopt_main(struct fz_fiber *context);

/* The main thread, once it has left its last frame.  Does not return. */
_Noreturn void fz_fiber_main_ended(void);

/* ---- who is there (runtime/fiber/registry.c) --------------------------------- */

/* Call visit for every fiber alive until it returns true.  Registry locked. */
bool fz_fiber_each(bool (*visit)(struct fz_fiber *, void *), void *arg);

/* The living fiber, wired or not, that has this tid, or NULL.  Any thread. */
struct fz_fiber *fz_fiber_by_tid(int tid);

/* The same by the bits of the tid that the mask has: all that fit a clock id. */
struct fz_fiber *fz_fiber_by_clock_tid(int tid, int mask);

/* The main thread's fiber, or NULL once it has ended.  Signal handlers too. */
struct fz_fiber *fz_fiber_main(void);

/* The kernel thread that runs it, or ran it last. */
int fz_fiber_kernel_tid(const struct fz_fiber *fiber);

/* Threads alive: fibers, the main one included, and native ones. */
uint32_t fz_fiber_alive(void);

/*
 * Native threads count too when the last thread's leaving ends the process, and those
 * that were there before the first fiber: libc counts them, but takes each fiber for a
 * thread that is still running.
 */
void fz_fiber_native_started(void);
void fz_fiber_native_ended(void);

/* In the child of a fork, even if there are no fibers: no other thread counts. */
void fz_fiber_alone(void);

/* The same where there were fibers: the caller is the only thread, and native. */
void fz_fiber_after_fork(void);

#endif
