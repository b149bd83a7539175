/* SPDX-License-Identifier: MIT */
#ifndef FZ_TESTS_ARCH_ADOPTED_H
#define FZ_TESTS_ARCH_ADOPTED_H

/*
 * tests/arch/adopted.h - a thread of libc's that is run as a context, and ends as a thread.
 */

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
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
static pthread_t starter;	/* who has started the last one */
static pid_t starter_tid;

static __thread unsigned tls_value = 7;

static inline pid_t kernel_tid(void)
{
	return (pid_t)fz_syscall0(SYS_gettid);
}

static inline bool wait_for(_Atomic uint32_t *word, uint32_t value)
{
	for (unsigned i = 0; i < WAIT_MS; i++) {
		if (atomic_load_explicit(word, memory_order_acquire) == value)
			return true;
		usleep(1000);
	}
	return false;
}

static inline bool kernel_thread_ends(pid_t tid)
{
	for (unsigned i = 0; i < WAIT_MS; i++) {
		if (syscall(SYS_tgkill, getpid(), tid, 0) == -1 &&
		    errno == ESRCH)
			return true;
		usleep(1000);
	}
	return false;
}

/*
 * There is no portable way to ask for it, and qemu has no prctl for it.  Half of a pointer in the record may be equal to the
 * tid: in another thread's record that word does not have the other's tid.
 */
static inline int *find_tid_word(pthread_t thread, pid_t tid)
{
	int *word = (int *)thread;
	const int *word_of_starter = (const int *)starter;

	for (unsigned i = 0; i < 1024 / sizeof(int); i++)
		if (word[i] == tid && word_of_starter[i] == starter_tid)
			return &word[i];
	return NULL;
}

/* Nothing may write to the TCB or the stack once the kernel thread is going. */
static inline void cut_ties(void)
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

static inline void *adopted_main(void *arg)
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

/* For find_tid_word(), before the thread starts. */
static inline void note_starter(void)
{
	starter = pthread_self();
	starter_tid = kernel_tid();
}

static inline void adopted_start(struct adopted *a, void (*body)(struct adopted *))
{
	a->body = body;
	note_starter();
	REQUIRE(pthread_create(&a->thread, NULL, adopted_main, a) == 0,
		"pthread_create");
}

static inline void carrier_begin(fz_switch_fn *fn)
{
	switch_fn = fn;
	carrier_tcb = fz_tcb_get();
}

/*
 * errno and TLS of the caller are computed before the switch and used after it:
 * that is right, since they belong to the context.
 */
static inline void run(struct adopted *a)
{
	switch_fn(&carrier_sp, a->sp, a->tcb);
}

static inline void back_to_carrier(struct adopted *a)
{
	switch_fn(&a->sp, carrier_sp, carrier_tcb);
}

/* As a kernel thread again, let libc see the end of its thread. */
static inline void become_thread(struct adopted *a)
{
	a->last_tid = kernel_tid();
	syscall(SYS_set_tid_address, a->tid_word);
}

static inline bool end_as_thread(struct adopted *a)
{
	void *ret = NULL;
	long tid = fz_clone_resume(THREAD_FLAGS, a->sp, a->tcb);

	CHECK(tid > 0, "fz_clone_resume: %ld", tid);
	return tid > 0 && pthread_join(a->thread, &ret) == 0 && ret == a;
}

static inline void body_ends(struct adopted *a)
{
	a->runs++;
	become_thread(a);
}

#endif
