/* SPDX-License-Identifier: MIT */
#ifndef FZ_MODEL_MODEL_H
#define FZ_MODEL_MODEL_H

/*
 * tests/model/model.h - what the parts of the explorer share.
 *
 * One real thread runs everything.  A *kthread* is a kernel thread of the model: a stack pointer and
 * a thread pointer.  It goes on until it blocks, or until the scheduler (schedule.c) takes another
 * one at a *point*: an access to memory that two kthreads use, or a system call.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/model/signals.h"

enum { KTHREADS = 16, STACKS = 40, FDS = 1024, FILES = 24, DECISIONS = 1 << 14, RINGS = 4,
       POLLS = 16, PLACES = 1 << 17 };

#define FOREVER UINT64_MAX

enum kthread_state { KT_NONE, KT_RUNNABLE, KT_BLOCKED, KT_ENDED };

struct kthread {
	void *sp;			/* valid while it does not run */
	uintptr_t tcb;
	enum kthread_state state;
	int tid;
	uint64_t mask;
	bool signalled;			/* it looks for signals when it returns to the program; ends its sleeps */
	bool in_kernel;			/* in a system call */
	uint64_t deadline;		/* of what it blocks in; FOREVER: none */
	const void *futex;		/* it waits for this word, */
	uint32_t futex_bits;		/* for a wake-up that has one of these, or */
	int fd;				/* for this epoll instance or polled descriptor; -1: none */
	int ring;			/* for completions of this ring, plus 1; 0: none */
	long result;			/* of the system call that it blocks in */
	uint32_t *clear_tid;		/* set_tid_address */
	bool refused;			/* io_uring_enter had no memory for it: it asks again */
	bool yielded;			/* in a spin, or sched_yield: let others go first */
	uint32_t streak;		/* accesses since it last blocked or gave way */
	uint32_t relaxed;		/* pauses of a spin since it last blocked */
	const char *name;
	void *(*fn)(void *);
	void *arg;
};

static inline void kthread_waits_no_more(struct kthread *kt)
{
	kt->futex = NULL;
	kt->fd = -1;
	kt->ring = 0;
}

struct file {
	enum { FILE_NONE, FILE_EPOLL, FILE_EVENT, FILE_RING } kind;
	uint64_t count;			/* of an eventfd */
	struct { int file; uint32_t events; uint64_t data; } watched[4];	/* of an epoll instance */
	int watches;
	int ring;			/* of a ring: its number */
};

/* A poll on a ring (rings.h). */
struct poll {
	uint64_t user_data;		/* 0: a free place */
	int ring, file;
	int kt;				/* that has submitted it */
	bool multishot;
	bool reported;			/* it became ready: kt is to see that; */
	bool cancelled;			/* or that it has been cancelled */
};

/* All that a run changes and that no hook sees: copied at the start, and back before each run. */
struct machine {
	struct kthread kt[KTHREADS];
	int kthreads, current;
	uint64_t now;			/* ns */
	int fd_of[FDS];			/* index of a file plus 1; 0: not open */
	struct file file[FILES];
	uintptr_t map_next;
	int next_tid;
	uint32_t contexts;		/* that have been made */
	/* Of a kthread: frames up to tls, thread-local storage of the program up to tcb, libc's record up to high. */
	struct { uintptr_t low, tls, tcb, high; } stack[STACKS];
	int stacks;
	void *reaper_sp;
	uint32_t *reap_flag;		/* what the kthread that ends by fz_adopt() announces */
	struct poll poll[POLLS];
	bool rings_forbidden, ring_lock_held, ring_lock_awaited, multishot_ends;
	uint32_t fires;			/* times that only the clock went on */
	uint64_t fiber_switches, seen_switches;
	const void *yielded[16];	/* fibers that wait since they have yielded */
	uint32_t yielders;
	uint32_t operations;		/* of the history (linear.c) */
	struct signals signals;
	/* buffered stores: tso.c */
	struct { uintptr_t addr; uint32_t size, kt; uint64_t before, value; } store[256];
	uint32_t stores, store_count[KTHREADS];	/* of all, and of each */
};

extern struct machine M;

/* What is known of 8 bytes of memory, or of an object of the kernel (reduce.h). */
struct place {
	uintptr_t key;			/* address / 8, or the object */
	uint32_t saved_in;		/* the run in which its value was put into the log */
	uint32_t contexts;		/* that have used it since exploring began, a bit for each */
	uint16_t kthreads;		/* the same */
	bool written;
	bool shared;			/* as of the beginning of this pass: an access is a point */
	/* reduce.c: */
	bool segment_writes;
	uint8_t asleep_read, asleep_written;	/* by the next segments of these sleepers, */
	uint32_t asleep_in;		/* in this run */
	uint32_t segment;		/* the last segment that has used it */
};

/* Those that were used, from 1 on. */
extern struct place places[PLACES];
struct place *memory_place(uintptr_t key);
extern uint32_t run_number;

enum access { READ = 0, WRITE = 1, ATOMIC = 2, ORDERED = 4 };

/* memory.c.  model_note_write(), model_note_read(): somebody is about to write or read there without a hook. */
void model_access(const void *p, size_t size, unsigned what);
void model_after_write(const volatile void *p);	/* an atomic one */
void model_note_read(const void *p, size_t size);
void model_note_write(const void *p, size_t size);
void model_put(void *to, const void *from, size_t size);
void model_put_zeros(uintptr_t at, size_t size);
void memory_start(void);			/* first of all */
void memory_begin_run(void);
void memory_undo(void);
uint64_t memory_end(void);			/* a sum of all that the run has written, before it is put back */
uint32_t memory_freeze_shared(void);		/* returns how many places are shared */
extern bool sharing_is_known;			/* these runs need not find out which places are */

/* tso.c: each kthread has a store buffer, which drains in order, whenever the scheduler likes. */
extern bool tso;
void tso_store(const void *p, size_t size);
void tso_flush(int kt);
void tso_commit_one(int kt);
void tso_hide(int kt);
void tso_show(int kt);

/* kernel.c */
void kernel_start(void);
int kthread_start(void *stack, size_t size, void *(*fn)(void *), void *arg, const char *name);
void kthread_goto(int next);
_Noreturn void kthread_exit(void);
void kthread_fire(int kt);			/* its deadline has come */
uintptr_t stack_prepare(void *stack, size_t size, void **ret_sp, void (*fn)(void *), void *arg);
uintptr_t stack_end(void);
bool stack_has(uintptr_t addr);			/* in a frame, or in libc's record of a thread */
void stack_register(void *stack, size_t size, const char *name);
void *model_map(size_t size);

/* host.c: libc's part.  The calling kthread is the process's first. */
void host_lay_out(void);
int host_thread_create(void *stack, size_t size, void *(*fn)(void *), void *arg,
		       unsigned long *ret_handle);

/* The bit of the running context, in the copy of the thread-local storage that it has. */
extern __thread uint32_t model_context __attribute__((tls_model("initial-exec")));

/* schedule.c: who goes on */
void schedule_point(void);			/* the running kthread may be preempted here */
void schedule_give_way(void);
/*
 * Of n things that the kernel may do: 0 is what it does by default.  Random and PCT runs take another one in 1 of
 * `odds` cases.
 */
enum { EVEN = 2, OFTEN = 4, RARE = 32 };
int schedule_choose(int n, unsigned odds);
extern bool listed;				/* this run repeats a list of decisions */
void schedule_block(void);			/* it cannot go on: another one must */
extern bool exploring;				/* false while the scenario sets up */
extern bool plain_points;			/* accesses that are not atomic are points, too */
extern bool since_point;			/* shared memory was used since the last point */
extern uint64_t step;				/* accesses and system calls of this run */
extern uint64_t points;

enum how { HOW_FIRST, HOW_EXHAUSTIVE, HOW_PCT, HOW_RANDOM, HOW_LISTED };
struct decision {
	uint32_t step;
	uint16_t n, pick;
	/* reduce.c: */
	int left;			/* deviations that may be made from here on */
	int kt;				/* the default; -1: this is no choice of a kthread */
	int current;			/* who runs; picked, it goes on without a switch */
	uint8_t kts[2 * KTHREADS];	/* of each pick */
	uint32_t skipped;		/* picks that need not be tried, a bit for each */
	uint32_t first_use, uses;	/* the default's next segment */
	bool whole;			/* it is known, and does nothing but use places */
	bool follows;			/* the segment of the decision before has ended here, and is whole */
};
extern struct decision decided[DECISIONS];
extern uint32_t decisions;
extern int budget;				/* picks of a run that are not the default */
extern uint64_t seed, run_length;	/* the latter: points of a run, for PCT */
void schedule_begin_run(enum how how);
bool schedule_backtrack(void);			/* false: everything has been tried */
bool schedule_has_used_all(void);		/* of a list: did the run that is over make each of its picks? */
extern uint64_t longest, most_points;

/* run.c: runs of one scenario */
extern void *explorer_sp;
extern uintptr_t explorer_tcb;
enum outcome { RUN_PASSED, RUN_FAILED, RUN_CUT };
extern char failure[2048];
_Noreturn void model_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void model_outside(const char *what);	/* beyond what is modelled: no verdict at all */
_Noreturn void run_over(enum outcome outcome);
enum outcome run_once(enum how how);

/* statics.c: statics_check() ends the exploration if a run has left anything in the explored files' variables. */
void statics_keep(void);
void statics_check(void);

/* report.c */
extern bool tracing;
void trace_switch(int from, int to, const char *why, bool late);	/* late: the other's deadline has come */
void trace_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
void report_stack(int kt);

/* invariants.c */
void check_at_switch(void **save_sp, void *load_sp, uintptr_t tcb);
void check_quiet(void);				/* no kthread can run */
void check_spin(void);
bool only_clock_helps(void);
void check_end(void);

#endif
