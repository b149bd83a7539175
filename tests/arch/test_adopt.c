/* SPDX-License-Identifier: MIT */
/*
 * tests/arch/test_adopt.c - threads that become contexts, and contexts that
 * become threads again; the thread pointer; raw system calls.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/rseq.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/plain/harness.h"
#include "tests/arch/probe.h"

enum {
	THREAD_FLAGS = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND |
		       CLONE_THREAD | CLONE_SYSVSEM,
	WAIT_MS = 10000,
};

/* A pthread of libc's that is run as a context. */
struct adopted {
	pthread_t thread;
	void *sp;		/* its frame while it is parked */
	_Atomic uint32_t parked;	/* fz_adopt's flag */
	uintptr_t tcb;
	pid_t tid;		/* of the kernel thread it was born on */
	int *tid_word;		/* where libc keeps that, for pthread_join */
	void (*body)(struct adopted *);
	unsigned long wrong;
	unsigned id, runs;
	pid_t last_tid;
	_Atomic uint32_t progress;
};

static fz_switch_fn *switch_fn;
static void *carrier_sp;	/* of the thread that runs the contexts */
static uintptr_t carrier_tcb;

static __thread unsigned tls_value = 7;
static __thread char tls_zero[100];

static pid_t kernel_tid(void)
{
	return (pid_t)fz_syscall0(SYS_gettid);
}

static bool wait_for(_Atomic uint32_t *word, uint32_t value)
{
	for (unsigned i = 0; i < WAIT_MS; i++) {
		if (atomic_load_explicit(word, memory_order_acquire) == value)
			return true;
		usleep(1000);
	}
	return false;
}

static bool kernel_thread_ends(pid_t tid)
{
	for (unsigned i = 0; i < WAIT_MS; i++) {
		if (syscall(SYS_tgkill, getpid(), tid, 0) == -1 &&
		    errno == ESRCH)
			return true;
		usleep(1000);
	}
	return false;
}

/* There is no portable way to ask for it, and qemu has no prctl for it. */
static int *find_tid_word(pthread_t thread, pid_t tid)
{
	int *word = (int *)thread;

	for (unsigned i = 0; i < 1024 / sizeof(int); i++)
		if (word[i] == tid)
			return &word[i];
	return NULL;
}

/* Nothing may write to the TCB or the stack once the kernel thread is going. */
static void cut_ties(void)
{
	sigset_t all;

	memset(&all, 0xff, sizeof(all));
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, 8);
	syscall(SYS_set_tid_address, NULL);
	syscall(SYS_set_robust_list, NULL, 3 * sizeof(long));
	if (__rseq_size)
		syscall(SYS_rseq,
			(char *)__builtin_thread_pointer() + __rseq_offset,
			__rseq_size < 32 ? 32 : __rseq_size,
			RSEQ_FLAG_UNREGISTER, RSEQ_SIG);
}

static void *adopted_main(void *arg)
{
	struct adopted *a = arg;

	a->tcb = fz_tcb_get();
	a->tid = kernel_tid();
	a->tid_word = find_tid_word(pthread_self(), a->tid);
	tls_value = 100 + a->id;
	cut_ties();
	fz_adopt(&a->sp, &a->parked);
	a->body(a);
	return a;
}

static void adopted_start(struct adopted *a, void (*body)(struct adopted *))
{
	a->body = body;
	REQUIRE(pthread_create(&a->thread, NULL, adopted_main, a) == 0,
		"pthread_create");
}

static void carrier_begin(fz_switch_fn *fn)
{
	switch_fn = fn;
	carrier_tcb = fz_tcb_get();
}

/*
 * errno and TLS of the caller are computed before the switch and used after it:
 * that is right, since they belong to the context.
 */
static void run(struct adopted *a)
{
	switch_fn(&carrier_sp, a->sp, a->tcb);
}

static void back_to_carrier(struct adopted *a)
{
	switch_fn(&a->sp, carrier_sp, carrier_tcb);
}

/* As a kernel thread again, let libc see the end of its thread. */
static void become_thread(struct adopted *a)
{
	a->last_tid = kernel_tid();
	syscall(SYS_set_tid_address, a->tid_word);
}

static bool end_as_thread(struct adopted *a)
{
	void *ret = NULL;
	long tid = fz_clone_resume(THREAD_FLAGS, a->sp, a->tcb);

	CHECK(tid > 0, "fz_clone_resume: %ld", tid);
	return tid > 0 && pthread_join(a->thread, &ret) == 0 && ret == a;
}

static void body_of_its_own(struct adopted *a)
{
	for (;;) {
		bool bad[] = {
			pthread_self() != a->thread,
			fz_tcb_get() != a->tcb,
			tls_value != 100 + a->id + a->runs,
			a->runs && errno != (int)(1000 + a->id),
			tls_zero[0] != (char)a->runs,
		};

		for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
			a->wrong |= (unsigned long)bad[i] << i;
		a->last_tid = kernel_tid();
		if (a->runs++ == 100)
			break;
		errno = (int)(1000 + a->id);
		tls_value++;
		tls_zero[0]++;
		back_to_carrier(a);
	}
	become_thread(a);
}

TEST(adopted_threads_run_elsewhere_with_their_tls)
{
	enum { THREADS = 5 };

	for (unsigned v = 0; v < probe_variant_count(); v++) {
		const char *name = probe_variants[v].name;
		struct adopted a[THREADS];

		memset(a, 0, sizeof(a));
		carrier_begin(probe_variants[v].fn);
		for (unsigned i = 0; i < THREADS; i++) {
			a[i].id = i;
			adopted_start(&a[i], body_of_its_own);
		}
		for (unsigned i = 0; i < THREADS; i++) {
			REQUIRE(wait_for(&a[i].parked, 1), "never parked");
			CHECK(a[i].tid_word, "no tid in the TCB");
			CHECK(kernel_thread_ends(a[i].tid),
			      "%s: kernel thread %d lives on", name, a[i].tid);
		}
		tls_value = 42;
		errno = 77;
		for (unsigned r = 0; r < 100; r++)
			for (unsigned i = 0; i < THREADS; i++)
				run(&a[i]);
		CHECK(tls_value == 42 && errno == 77 && tls_zero[0] == 0,
		      "%s: the carrier's TLS has changed", name);
		CHECK(fz_tcb_get() == carrier_tcb, "%s: and its TCB", name);
		for (unsigned i = 0; i < THREADS; i++) {
			CHECK(a[i].runs == 100 && a[i].last_tid == kernel_tid(),
			      "%s: ran %u times, last on %d", name, a[i].runs,
			      a[i].last_tid);
			CHECK(end_as_thread(&a[i]), "%s: not joined", name);
			CHECK(a[i].runs == 101 && a[i].last_tid != a[i].tid &&
			      a[i].last_tid != kernel_tid(),
			      "%s: did not end on a thread of its own", name);
			CHECK(a[i].wrong == 0, "%s: thread found %#lx wrong",
			      name, a[i].wrong);
		}
	}
}

static void body_ends(struct adopted *a)
{
	a->runs++;
	become_thread(a);
}

static void *flag_waiter(void *arg)
{
	_Atomic uint32_t *flag = arg;

	/* No timeout: a lost wake-up is a test that does not end. */
	while (!atomic_load_explicit(flag, memory_order_acquire))
		fz_syscall4(SYS_futex, (long)flag, FUTEX_WAIT_PRIVATE, 0, 0);
	return NULL;
}

TEST(adopting_wakes_all_who_wait_for_the_flag)
{
	for (unsigned i = 0; i < 100; i++) {
		struct adopted a = { .id = i };
		pthread_t waiter[2];

		for (unsigned w = 0; w < 2; w++)
			REQUIRE(!pthread_create(&waiter[w], NULL, flag_waiter,
						(void *)&a.parked),
				"pthread_create");
		/* Let them fall asleep, most of the time. */
		usleep(i % 2 ? 1000 : 0);
		adopted_start(&a, body_ends);
		flag_waiter((void *)&a.parked);
		for (unsigned w = 0; w < 2; w++)
			pthread_join(waiter[w], NULL);
		CHECK(a.parked == 1, "the flag is %u", a.parked);
		CHECK(a.runs == 0, "it did not wait to be entered");
		CHECK(end_as_thread(&a) && a.runs == 1, "not joined");
	}
}

static uint64_t adopt_pattern[PROBE_REGS];

/* Like adopted_main, with every register filled around fz_adopt. */
static void *patterned_main(void *arg)
{
	struct adopted *a = arg;
	struct probe_fenv now;

	a->tcb = fz_tcb_get();
	a->tid = kernel_tid();
	a->tid_word = find_tid_word(pthread_self(), a->tid);
	cut_ties();
	probe_fenv_write(probe_fenv_a);
	a->wrong = probe_call((void *)fz_adopt, &a->sp, (void *)&a->parked, 0,
			      adopt_pattern);
	now = probe_fenv_read();
	a->runs = memcmp(&now, &probe_fenv_a, sizeof(now)) == 0;
	if (a->id) {
		become_thread(a);
		return a;
	}
	back_to_carrier(a);
	become_thread(a);
	return a;
}

TEST(adopting_keeps_registers_and_environment)
{
	const struct probe_fenv before = probe_fenv_read();

	for (unsigned i = 0; i < PROBE_REGS; i++)
		adopt_pattern[i] = UINT64_C(0xd1b54a32d192ed03) * (i + 1);
	carrier_begin(probe_variants[0].fn);

	/* id 0 is entered by fz_switch, id 1 by fz_clone_resume. */
	for (unsigned id = 0; id < 2; id++) {
		struct adopted a = { .id = id };

		REQUIRE(!pthread_create(&a.thread, NULL, patterned_main, &a),
			"pthread_create");
		REQUIRE(wait_for(&a.parked, 1), "never parked");
		probe_fenv_write(probe_fenv_c);
		if (id == 0)
			run(&a);
		CHECK(end_as_thread(&a), "not joined");
		probe_fenv_write(before);
		CHECK(a.wrong == 0, "%u: lost registers %#lx", id, a.wrong);
		CHECK(a.runs == 1, "%u: lost the fp environment", id);
	}
}

/* The parent's side of fz_clone_resume. */
TEST(cloning_keeps_the_callers_registers)
{
	struct adopted a = { .id = 0 };
	uint64_t pattern[PROBE_REGS];

	for (unsigned i = 0; i < PROBE_REGS; i++)
		pattern[i] = UINT64_C(0xaef17502108ef2d9) * (i + 1);
	adopted_start(&a, body_ends);
	REQUIRE(wait_for(&a.parked, 1), "never parked");
	CHECK(probe_call((void *)fz_clone_resume, (void *)THREAD_FLAGS, a.sp,
			 a.tcb, pattern) == 0, "lost registers");
	CHECK(pthread_join(a.thread, NULL) == 0, "not joined");
}

TEST(failed_clone_leaves_the_frame_alone)
{
	struct adopted a = { .id = 3 };
	long err;

	carrier_begin(probe_variants[0].fn);
	adopted_start(&a, body_of_its_own);
	REQUIRE(wait_for(&a.parked, 1), "never parked");
	errno = 5;
	/* Signal handlers cannot be shared without the memory they are in. */
	err = fz_clone_resume(CLONE_SIGHAND, a.sp, a.tcb);
	CHECK(err == -EINVAL, "returned %ld", err);
	CHECK(errno == 5, "touched errno");
	CHECK(a.runs == 0, "but somebody entered the frame");
	run(&a);
	CHECK(a.runs == 1 && a.wrong == 0, "the frame cannot be entered");
}

/* A made frame, entered by a new kernel thread under a TCB it may use. */
static char clone_stack[256 * 1024] __attribute__((aligned(64)));

static struct {
	struct adopted *a;
	void *sp;
	_Atomic uint32_t parked;
	uintptr_t tcb;
	pid_t tid;
} made;

static void made_main(void *arg)
{
	made.a = arg;
	made.tcb = fz_tcb_get();
	made.tid = kernel_tid();
	fz_adopt(&made.sp, &made.parked);
	__builtin_trap();
}

TEST(new_thread_can_enter_a_made_frame)
{
	struct adopted a = { .id = 1 };
	sigset_t all, old;
	void *sp;
	long tid;

	adopted_start(&a, body_ends);
	REQUIRE(wait_for(&a.parked, 1), "never parked");
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &old);
	sp = fz_frame_make(clone_stack + sizeof(clone_stack), made_main, &a);
	tid = fz_clone_resume(THREAD_FLAGS, sp, a.tcb);
	sigprocmask(SIG_SETMASK, &old, NULL);
	REQUIRE(tid > 0, "fz_clone_resume: %ld", tid);
	REQUIRE(wait_for(&made.parked, 1), "it did not run");
	CHECK(made.a == &a && made.tcb == a.tcb && made.tid == tid,
	      "argument %p, TCB %#lx, tid %d of %ld", (void *)made.a,
	      (unsigned long)made.tcb, made.tid, tid);
	CHECK(kernel_thread_ends((pid_t)tid), "kernel thread lives on");
	CHECK(end_as_thread(&a), "not joined");
}

/* Contexts that are passed from one kernel thread to another. */
struct passing {
	struct adopted *a;
	_Atomic uint32_t turn;	/* who may run it: release/acquire of a->sp */
	unsigned rounds;
};

/* Of the carrier whose turn it is. */
static void *passing_sp;
static uintptr_t passing_tcb;

static void body_travels(struct adopted *a)
{
	pid_t before = 0;

	for (;;) {
		int *where = &errno;

		a->wrong |= before && *where != 1234;
		a->wrong |= (unsigned long)(kernel_tid() == before) << 1;
		before = kernel_tid();
		*where = 1234;
		if (a->runs++ == 2000)
			break;
		switch_fn(&a->sp, passing_sp, passing_tcb);
	}
	become_thread(a);
}

static void pass_around(struct passing *p, uint32_t me)
{
	for (unsigned i = 0; i < p->rounds; i++) {
		while (atomic_load_explicit(&p->turn, memory_order_acquire) != me)
			sched_yield();
		passing_tcb = fz_tcb_get();
		switch_fn(&passing_sp, p->a->sp, p->a->tcb);
		atomic_store_explicit(&p->turn, !me, memory_order_release);
	}
}

static void *passing_main(void *arg)
{
	pass_around(arg, 1);
	return NULL;
}

TEST(context_travels_between_kernel_threads)
{
	struct adopted a = { .id = 0 };
	struct passing p = { .a = &a, .rounds = 1000 };
	pthread_t other;

	carrier_begin(probe_variants[probe_variant_count() - 1].fn);
	adopted_start(&a, body_travels);
	REQUIRE(wait_for(&a.parked, 1), "never parked");
	REQUIRE(!pthread_create(&other, NULL, passing_main, &p),
		"pthread_create");
	pass_around(&p, 0);
	pthread_join(other, NULL);
	CHECK(a.runs == 2000, "ran %u times", a.runs);
	CHECK(end_as_thread(&a), "not joined");
	CHECK(a.wrong == 0, "errno or carrier wrong: %#lx", a.wrong);
}

/* No TLS between the two, not even a stack protector's canary. */
static __attribute__((noinline)) uintptr_t under_other_tcb(uintptr_t tcb)
{
	uintptr_t mine = fz_tcb_get(), seen;

	fz_tcb_set(tcb);
	seen = fz_tcb_get();
	fz_tcb_set(mine);
	return seen;
}

static uintptr_t handler_tcb;
static volatile uintptr_t handler_saw;

static void on_signal(int sig)
{
	(void)sig;
	handler_saw = under_other_tcb(handler_tcb);
}

TEST(variants_are_chosen_and_set_the_thread_pointer)
{
	struct adopted a = { .id = 0 };
	uintptr_t mine = fz_tcb_get();

	adopted_start(&a, body_ends);
	REQUIRE(wait_for(&a.parked, 1), "never parked");
	CHECK(a.tcb != mine, "two threads, one TCB");
	signal(SIGUSR1, on_signal);
	handler_tcb = a.tcb;

	/* Before fz_arch_init everything works as well. */
	CHECK(fz_switch == probe_variants[0].fn, "unsafe variant at start");
	CHECK(under_other_tcb(a.tcb) == a.tcb, "before fz_arch_init");

	for (unsigned v = 0; v < probe_variant_count(); v++) {
		fz_arch_init(probe_variants[v].hwcap2);
		CHECK(fz_switch == probe_variants[v].fn, "not %s",
		      probe_variants[v].name);
		CHECK(under_other_tcb(a.tcb) == a.tcb, "%s",
		      probe_variants[v].name);
		handler_saw = 0;
		raise(SIGUSR1);
		CHECK(handler_saw == a.tcb, "%s: in a signal handler",
		      probe_variants[v].name);
		CHECK(fz_tcb_get() == mine, "%s: not restored",
		      probe_variants[v].name);
	}
	CHECK(end_as_thread(&a), "not joined");
}

TEST(system_calls_pass_every_argument)
{
	long page = sysconf(_SC_PAGESIZE), fd, addr, moved;
	char buf[8] = "";
	struct timespec ts = { .tv_sec = -1 };

	errno = 99;
	CHECK(fz_syscall0(SYS_getpid) == getpid(), "0 arguments");
	CHECK(fz_syscall1(SYS_close, -1) == -EBADF, "1 argument");
	CHECK(fz_syscall2(SYS_clock_gettime, CLOCK_MONOTONIC, (long)&ts) == 0 &&
	      ts.tv_sec >= 0, "2 arguments");
	fd = fz_syscall2(SYS_memfd_create, (long)"arch", 0);
	REQUIRE(fd >= 0, "memfd_create: %ld", fd);
	CHECK(fz_syscall2(SYS_ftruncate, fd, 2 * page) == 0, "ftruncate");
	CHECK(fz_syscall3(SYS_write, fd, (long)"abcdef", 6) == 6, "3 arguments");
	CHECK(fz_syscall4(SYS_pwrite64, fd, (long)"xyz", 3, page + 1) == 3,
	      "4 arguments");

	/* The second page of the file, and nothing else, holds "xyz" at 1. */
	addr = fz_syscall6(SYS_mmap, 0, page, PROT_READ, MAP_SHARED, fd, page);
	REQUIRE(addr > 0, "mmap: %ld", addr);
	CHECK(memcmp((char *)addr, "\0xyz", 5) == 0, "6 arguments");

	/* Room to move it to, so that a wrong fifth argument is noticed. */
	moved = fz_syscall6(SYS_mmap, 0, page, PROT_NONE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	REQUIRE(moved > 0, "mmap: %ld", moved);
	CHECK(fz_syscall5(SYS_mremap, addr, page, page,
			  MREMAP_MAYMOVE | MREMAP_FIXED, moved) == moved &&
	      memcmp((char *)moved, "\0xyz", 5) == 0, "5 arguments");
	CHECK(fz_syscall4(SYS_pread64, fd, (long)buf, 3, 2) == 3 &&
	      memcmp(buf, "cde", 3) == 0, "pread");
	CHECK(errno == 99, "errno was touched");
}
