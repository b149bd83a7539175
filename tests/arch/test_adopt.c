/* SPDX-License-Identifier: MIT */
/*
 * tests/arch/test_adopt.c - threads that become contexts, and contexts that
 * become threads again.
 */
#define _GNU_SOURCE
#include "adopted.h"

static __thread char tls_zero[100];

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

		note_starter();
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
