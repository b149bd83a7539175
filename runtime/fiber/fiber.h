/* SPDX-License-Identifier: MIT */
#ifndef FZ_RUNTIME_FIBER_FIBER_H
#define FZ_RUNTIME_FIBER_FIBER_H

/*
 * runtime/fiber/fiber.h - the record of one thread, and the life of a fiber.
 *
 * Every thread that libc knows has a record, in its own thread-local storage at
 * a fixed distance from its TCB.  So an addition leads from a pthread_t to the record,
 * and fz_self(), which uses the thread pointer, stays correct when a fiber changes its
 * carrier.  A record of zeros is that of a native thread.
 */

#include "runtime/base/base.h"
#include "runtime/base/sys.h"

struct fz_siginfo;
struct fz_carrier;
struct fz_processor;
struct fz_signode;

enum fz_kind {
	FZ_KIND_NATIVE,		/* a kernel thread of libc's, left alone */
	FZ_KIND_FIBER,
	FZ_KIND_WIRED,		/* was a fiber, has its kernel thread for good */
	FZ_KIND_CARRIER,	/* a carrier's own context */
	FZ_KIND_HELPER,		/* the monitor or the carrier spawner */
};

/* The kernel's stack_t; all zero but SS_DISABLE if there is none. */
struct fz_alt_stack {
	void *sp;
	int flags;
	size_t size;
};

/* Bits of fz_fiber.thread.life; a new life starts from 0 or FZ_LIFE_DETACHED. */
enum {
	FZ_LIFE_ENDED = 1,	/* its context does not run any more, its result is final */
	FZ_LIFE_DETACHED = 2,
	FZ_LIFE_JOINING = 4,	/* one thread has the right to join it */
	FZ_LIFE_FREE = 8,	/* the record has no thread: handles to it are stale */
	FZ_LIFE_RETIRED = 16,	/* no next life: it ended by exit(2) */
};

/* The groups below are by subject.  Only the thread itself writes them, unless a comment names other writers. */

/* Cancellation (runtime/sched/cancel.h). */
struct fz_fiber_cancel {
	/* A thread has called pthread_cancel for this one; the details are in libc's word. */
	_Atomic bool sent;
	/* libc's SIGCANCEL handler has looked where the thread is; later calls look for the request themselves. */
	_Atomic bool seen;
	/* Read by any thread: the thread is in a call that acts on cancellation itself. */
	_Atomic bool deferred;
	_Atomic bool in_call;		/* between fz_cancel_begin_call() and fz_cancel_end_call() */
};

/* The call that the thread is in; written by the thread, and by handlers on it. */
struct fz_fiber_call {
	/*
	 * The call may hold locks that the library's own threads need: a wait blocks the kernel
	 * thread, outside the runtime, and so needs no processor.
	 */
	bool blocks : 1;
	bool in_fork : 1;		/* in libc's fork, which holds locks that the runtime may need */
	bool was_alone : 1;		/* alone at its last wait; see waits_alone */
	uint8_t sent_at : 5;		/* low bits of the number of the last wait before its last send */
	uint8_t reads;			/* receives so far, for fz_io_yield_sometimes() */
	uint8_t waits_for;		/* enum fz_waits_for, during a wait */
	uint8_t likely : 2;		/* next receives that likely find data (fz_io_is_likely) */
	bool bulk : 1;			/* the last receive got all that it had room for */
	int8_t likely_hits : 5;
};

/* What the thread waits for, to be shown (runtime/inspect); the thread writes it before a wait. */
struct fz_fiber_wait {
	const void *object;		/* what enum fz_waits_for says */
	/*
	 * fz_cycles() when it parked; 0: unknown.  With FZ_SINCE_SAMPLED, written by the waker: when it
	 * became runnable.
	 */
	uint64_t since;
};
enum { FZ_SINCE_SAMPLED = 1 };

/* Deadline of the current wait (runtime/sched/timer.h); guarded by processor's heap lock. */
struct fz_fiber_timer {
	fz_nsec deadline;
	uint64_t wait;			/* the number of the wait (fz_fiber.wait) it belongs to */
	struct fz_processor *processor;	/* whose heap it is in; NULL: none */
	uint32_t slot : 31;		/* 1-based place in the heap; 0: not in the heap */
	bool by_realtime : 1;		/* the wait is until the time clock.at */
	/* Not part of the heap; for runtime/io/hints.h, and here because this cache line has room.  fz_fdtab_wait(), or 0. */
	_Atomic uint32_t hinted;
};

/* What the program calls a thread: its birth, its end, and how other threads name it. */
struct fz_fiber_thread {
	_Atomic uint32_t life;		/* FZ_LIFE_*; any thread; joiners wait for a change */
	int tid;			/* what gettid() returns */
	void *(*start)(void *);
	void *arg;
	void *result;			/* of start, of pthread_exit, or PTHREAD_CANCELED */
	struct fz_fiber *joins;		/* the thread that this one is joining, for EDEADLK */
	_Atomic uint32_t being_born;	/* cleared by the kernel when the birth's thread is gone */
	bool recycled;			/* not the first life: TLS needs a reset */
	bool is_main;
	bool owns_kernel_state;		/* wired for state of the kernel's; new threads inherit that state */
	bool owns_files;		/* it has a table of descriptors of its own */
	bool spawn_begun;		/* system() has called fz_signal_before_spawn(), and made no process yet */
	bool lends_memory;		/* a child runs with this record, while the thread sleeps until the child executes */
	bool has_children;		/* it may have an entry in runtime/fiber/parent.c */
	bool counted_as_one;		/* calls that libc makes now are not counted (preload/stats.h) */
	char name[16];
	/*
	 * A policy, FZ_POLICY(), that another thread has set and that is not in force yet; 0: none.
	 * The thread itself sets it to 0, by compare-and-swap, when the kernel has the policy.
	 */
	_Atomic uint32_t policy;
	void *robust_list;		/* libc's list head, as libc had given it to the kernel */
	_Atomic int *tid_address;	/* the word that the program has named, to be cleared at the end; or NULL */
	const char *wired_why;		/* of fz_fiber_wire_for(), to be shown; NULL: not wired in this life */
	uint64_t first_wait;		/* the number of the wait before this life; to be shown */
};

/* In one word: a scheduling policy, with the kernel's SCHED_RESET_ON_FORK, and a priority. */
#define FZ_POLICY(policy, priority) \
	(1u << 31 | ((uint32_t)(policy) & 0x400000ffu) | (uint32_t)(priority) << 16)
#define FZ_POLICY_OF(word) ((int)((word) & 0x400000ffu))
#define FZ_PRIORITY_OF(word) ((int)((word) >> 16 & 0xff))

/* The thread's memory (runtime/fiber/stack.h), sizes in bytes. */
struct fz_fiber_mem {
	void *stack;			/* lowest usable byte */
	size_t stack_size;		/* up to the end of TLS and TCB */
	size_t guard_size;		/* of the stack; at least asked_guard */
	size_t asked_guard;		/* guard size that the program asked for in this life */
	_Atomic bool executable;
};

/* CPU time, ns (runtime/fiber/cputime.h); any thread. */
struct fz_fiber_cpu {
	/* time: used up to the last switch or sample; time_seen: the most that fz_cputime_of() has returned. */
	_Atomic uint64_t time, time_seen;
	uint64_t user_seen, system_seen;	/* what getrusage() has returned */
	_Atomic bool exact;			/* some thread has asked for it in this life */
};

/* Signals (runtime/signal/signal.h).  Written by the thread and handlers on it, unless noted. */
struct fz_fiber_sig {
	/* fz_fiber.mask without what a handler adds; written with the registry's lock held. */
	uint64_t mask_counted;
	uint8_t injecting;		/* the signal that the thread is sending itself; 0: none */
	/* siginfo for the handler of `injecting`, if a filter forbids to send it with the signal; or NULL */
	const struct fz_siginfo *injected;
	/* The signal that the thread has sent to itself, to come when the running handler returns; 0: none. */
	uint8_t owed;
	/* Before the first instruction of a life or after its last: no handler may run. */
	bool between_lives;
	uint16_t barred;		/* how many fz_signal_bar() have no fz_signal_allow() yet */
	bool handler_ends;		/* a handler is about to return; `mask` is in force then */
	uint32_t handlers_run;		/* a count; a call that needs it resets it first */
	bool suspended;			/* in a call that a handler ends, even before it waits */
	bool restores_mask;		/* the end of the first handler restores mask_to_restore */
	uint64_t mask_to_restore;	/* the mask that was in force before that call */
	struct __kernel_timespec limit;	/* of a real call that a handler ends by setting it to 0 */
	_Atomic uint64_t timer_signals;	/* of timers that the kernel directs to this thread */
	uint64_t sigwait_set;		/* the signals that the thread waits for in sigwait */
	/* drains << 32 | index + 1 of the last node that arrived (runtime/signal/queue.h); any thread */
	_Atomic uint64_t arrivals;
	struct fz_signode *queue;		/* the first node of each signal */
	struct fz_alt_stack alt_stack;	/* what sigaltstack set */
};

/* Which handlers of the program have run since fz_signal_mark() (runtime/signal/signal.h). */
enum {
	FZ_HANDLED_ANY = 1,
	FZ_HANDLED_EINTR = 2,	/* one without SA_RESTART */
};

/*
 * The owner of a record is the carrier that runs the fiber, or the queue that the fiber is in,
 * or for a parked fiber the thread whose fz_wake() succeeds; exceptions are named at the field.
 * Records of fibers are never unmapped, so a stale pointer to one may be followed; it may lead
 * to the next life, or to zeros.
 */
struct fz_fiber {
	/*
	 * The first cache line: the fields that a request, a switch and a wake-up touch.  They belong
	 * to different subjects, so they are in none of the groups above.  With a thousand connections
	 * each further line costs one more cache miss.
	 */
	_Alignas(FZ_CACHE_LINE)
	void *sp;			/* saved context; NULL while the fiber runs */
	uintptr_t tcb;
	struct fz_carrier *carrier;	/* the carrier that runs it, or ran it last */
	_Atomic uint64_t wait;		/* runtime/sched/park.h; any thread */
	struct fz_fiber *next;		/* in a run queue or a list of free fibers */
	_Atomic uint64_t pending;	/* signals (runtime/signal/signal.h); any thread */
	uint64_t mask;			/* what pthread_sigmask set */
	/* 1 in the runtime.  Set and cleared by this thread, read by signal handlers on it. */
	_Atomic uint32_t in_runtime;
	uint8_t kind;			/* enum fz_kind */
	bool has_alt_stack;		/* sig.alt_stack is in force */
	uint8_t handled;		/* FZ_HANDLED_*; what has run during the present call */
	_Atomic uint8_t cpu_bound_score;	/* see fz_fiber_is_cpu_bound() */

	/* The second cache line: what a call reads as well, and a wait with a deadline. */
	struct fz_fiber_cancel cancel;
	struct fz_fiber_call call;
	struct fz_fiber_wait waits;
	struct fz_fiber_timer timer;

	struct fz_fiber_thread thread;
	struct fz_fiber_mem mem;
	struct fz_fiber_cpu cpu;
	struct fz_fiber_sig sig;
	int16_t waits_alone;		/* consecutive waits alone; below 0: see FZ_ALONE_AGAIN */
	/* What fz_follow_peer() has seen last, for this thread. */
	struct {
		int16_t cpu;
		int fd;
	} peer;
	/* Of the last wait until a time of CLOCK_REALTIME (runtime/sched/timer.h). */
	struct fz_fiber_clock {
		fz_nsec at, deadline;	/* that time, and the deadline that came of it */
		int64_t seen;		/* what fz_clock_ahead was before */
	} clock;

	/* Links of the list of all fibers, guarded by the registry lock (registry.c). */
	struct {
		struct fz_fiber *next, *prev;
		/* For fz_monitor_check_waits(): numbers of the waits that it met last, and checked last. */
		uint64_t wait_seen, wait_checked;
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

/* Distances in bytes from the thread pointer, fixed at start-up; all 0 if unknown. */
struct fz_layout {
	intptr_t handle;		/* to the address that pthread_t is */
	intptr_t record;		/* to struct fz_fiber */
	intptr_t tid;			/* to libc's int tid */
	intptr_t cancelhandling;	/* to libc's int cancelhandling */
};
extern struct fz_layout fz_layout FZ_HIDDEN;

static inline struct fz_fiber *fz_fiber_of_tcb(uintptr_t tcb)
{
	return (struct fz_fiber *)(tcb + (uintptr_t)fz_layout.record);
}

/* The TCB of a record.  Works for native threads, too, whose fz_fiber.tcb is not set. */
static inline uintptr_t fz_tcb_of(const struct fz_fiber *f)
{
	return (uintptr_t)f - (uintptr_t)fz_layout.record;
}

static inline struct fz_fiber *fz_fiber_of_handle(unsigned long handle)
{
	return fz_fiber_of_tcb(handle - (uintptr_t)fz_layout.handle);
}

/* libc's own word for a thread's tid, which libc's mutexes compare. */
static inline _Atomic int *fz_tcb_tid(uintptr_t tcb)
{
	return (_Atomic int *)(tcb + (uintptr_t)fz_layout.tid);
}

static inline _Atomic int *fz_tcb_cancelhandling(uintptr_t tcb)
{
	return (_Atomic int *)(tcb + (uintptr_t)fz_layout.cancelhandling);
}

/* The tid that locks store for their owner.  It does not change when a fiber is wired. */
static inline int fz_self_tid(void)
{
	int tid = fz_self()->thread.tid;

	if (FZ_LIKELY(tid))
		return tid;
	/* relaxed: it is the calling thread's own tid. */
	return fz_layout.tid ? atomic_load_explicit(fz_tcb_tid(fz_tcb_get()),
						    memory_order_relaxed) :
			       (int)fz_sys_gettid();
}

/*
 * Is the fiber CPU-bound: does it run for about 0.25 ms or more at a time, while the monitor looks
 * each ms?  At a look the monitor adds FZ_CPU_BOUND_TICK to the score of a fiber that runs the
 * program's code and has used the CPU; each wait and each yield of the fiber subtracts 1.  From
 * FZ_CPU_BOUND_MOST on nothing is added, so that the fiber is soon brief again if it waits.
 * relaxed, and changes may be lost: only the order in which fibers run depends on the score.
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

/* What the program has asked of a new thread. */
struct fz_birth {
	void *(*start)(void *);
	void *arg;
	size_t stack_size;
	bool any_stack_size;		/* the program has not asked for one */
	size_t guard_size;
	uint64_t mask;
	bool detached;
};

/* Is the record a fiber's, wired or not? */
static inline bool fz_is_fiber(const struct fz_fiber *f)
{
	return f->kind == FZ_KIND_FIBER || f->kind == FZ_KIND_WIRED;
}

/*
 * Make a thread that is a fiber and let it run.  Any thread, outside the runtime.  If
 * no ended fiber can be reused, the call keeps the carrier for 20-100 us, or some
 * milliseconds near a limit of the system.  *ret_handle is set before the fiber runs.
 * Returns 0 or -errno.
 */
int fz_fiber_create(const struct fz_birth *birth, unsigned long *ret_handle);

/*
 * End the calling fiber as the exit system call ends a kernel thread: nothing is
 * unwound, no destructor runs, and its stack is not used again.
 */
_Noreturn void fz_fiber_vanish(struct fz_fiber *self, int status);

/* ---- ends (runtime/fiber/join.c) --------------------------------------------- */

/*
 * Wait until the fiber has ended and take its result.  With deadline 0 it does not wait
 * (-EBUSY).  From fibers and native threads; a cancellation point (-ECANCELED), which leaves
 * the fiber joinable.  Returns 0, -ESRCH, -EINVAL, -EDEADLK, -EBUSY, -ETIMEDOUT, -ECANCELED.
 */
int fz_fiber_join(struct fz_fiber *fiber, fz_nsec deadline, void **ret_result);

/* Returns 0, -ESRCH, -EINVAL.  Any thread. */
int fz_fiber_detach(struct fz_fiber *fiber);

/*
 * Take the fiber that is parked until self has ended, for self to switch to; or NULL.  A direct
 * switch avoids the carrier's own context, which has another signal mask.
 */
struct fz_fiber *fz_fiber_take_joiner(struct fz_fiber *self);

/*
 * Called in the next context after the switch away from an ended fiber: its stack is not in
 * use any more.  Frees the fiber, or wakes its joiner.
 */
void fz_fiber_buried(struct fz_fiber *fiber);

/* ---- the main thread (runtime/fiber/main.c) ---------------------------------- */

/*
 * Make the calling thread, which is the only one, the main fiber, in two steps: prepare may
 * fail with -errno, adopt does not fail.
 */
int fz_fiber_prepare_main(struct fz_fiber **ret_context);
void fz_fiber_adopt_main(struct fz_fiber *context);

/* End the main thread, after it has left its last frame.  Does not return. */
_Noreturn void fz_fiber_main_ended(void);

/* The last part of fz_fiber_main_ended(), after fz_registry_remove(): the main thread parks for ever.  In the runtime. */
_Noreturn void fz_fiber_main_stays(struct fz_fiber *self);

/* ---- all fibers (runtime/fiber/registry.c) ----------------------------------- */

/* Call visit for every living fiber until visit returns true, with the registry locked. */
bool fz_fiber_each(bool (*visit)(struct fz_fiber *, void *), void *arg);

/*
 * Call visit for the next living fibers, at most `most`, with the registry locked.  first: begin a
 * new round.  Returns false when the round is over: it has visited each fiber that was alive when
 * the round began and has not ended since.  By the monitor.
 */
bool fz_fiber_each_of(void (*visit)(struct fz_fiber *), uint32_t most, bool first);

/* The living fiber, wired or not, that has this tid, or NULL.  Any thread. */
struct fz_fiber *fz_fiber_by_tid(int tid);

/* Find a living fiber by the bits of its tid in mask; a clock id has room for no more. */
struct fz_fiber *fz_fiber_by_clock_tid(int tid, int mask);

/* The main thread's fiber, or NULL once it has ended.  Any context, signal handlers too. */
struct fz_fiber *fz_fiber_main(void);

/* The tid of the kernel thread that runs the fiber, or ran it last. */
int fz_fiber_kernel_tid(const struct fz_fiber *fiber);

/*
 * From now on the stacks of all fibers are executable, for code of the program or of a library that
 * puts functions on its stack.  Any thread outside the runtime.
 */
void fz_fiber_stacks_executable(void);

/* How many threads live: fibers, the main one included, and native threads. */
uint32_t fz_fiber_alive(void);

/*
 * Count a native thread that starts or ends; those started before the first fiber count, too.  The
 * end of the last thread ends the process.  libc cannot decide that: it takes each fiber for a
 * thread that still runs.
 */
void fz_fiber_native_started(void);
void fz_fiber_native_ended(void);

/* In the child of a fork, also without fibers: the caller is the only thread that counts. */
void fz_fiber_alone(void);

/* In the child of a fork, if the parent had fibers: the caller becomes a native thread. */
void fz_fiber_after_fork(void);

#endif
