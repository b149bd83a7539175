/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/signal/signal_wired.c - a signal for one thread reaches that thread only,
 * whatever its kind: a thread with a priority-inheriting mutex, with an affinity by attributes,
 * with a timer on its CPU time; sleeping or CPU-bound.
 */
#include "check.h"

#include <stdbool.h>

#include <sys/syscall.h>

enum { SIG = 40, ROUNDS = 3 };

enum kind { PLAIN, INHERITS, AFFINE, TIMED, KINDS };

struct target {
	enum kind kind;
	bool computes;
	pthread_t thread;
	_Atomic int handled;
	_Atomic bool done;
	struct event ready;
};

static __thread struct target *own;
static _Atomic int strays;

static void handler(int sig, siginfo_t *info, void *context)
{
	(void)context;
	CHECK_INT(sig, SIG);
	if (!own) {
		strays++;
		return;
	}
	CHECK_INT(info->si_errno, 0);
	if (info->si_code == SI_QUEUE || info->si_code == SI_TIMER)
		CHECK_INT(info->si_value.sival_int, 4711);
	else
		CHECK_INT(info->si_code, SI_TKILL);
	own->handled++;
}

static void get_tied(enum kind kind)
{
	static pthread_mutex_t inherits[KINDS * 2];
	static _Atomic int used;
	pthread_mutex_t *m = &inherits[used++ % (int)COUNT(inherits)];
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIG };
	pthread_mutexattr_t attr;
	clockid_t clock;
	timer_t timer;

	if (kind == INHERITS) {
		CHECK_OK(pthread_mutexattr_init(&attr));
		CHECK_OK(pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT));
		CHECK_OK(pthread_mutex_init(m, &attr));
		CHECK_OK(pthread_mutex_lock(m));
		CHECK_OK(pthread_mutex_unlock(m));
	} else if (kind == TIMED) {
		event._sigev_un._tid = gettid();
		CHECK_OK(pthread_getcpuclockid(pthread_self(), &clock));
		CHECK_OK(timer_create(clock, &event, &timer));
		CHECK_OK(timer_delete(timer));
		CHECK_OK(timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer));
		CHECK_OK(timer_delete(timer));
	}
}

static void *receives(void *arg)
{
	struct target *t = arg;
	unsigned long n = 0;

	own = t;
	get_tied(t->kind);
	event_post(&t->ready);
	while (!t->done) {
		if (t->computes)
			n++;
		else
			usleep(20000);
	}
	return arg;
}

static void wait_for(_Atomic int *count, int want)
{
	while (*count < want)
		usleep(200);
	CHECK_INT(*count, want);
}

static void *sends(void *arg)
{
	struct target *t = arg;
	union sigval value = { .sival_int = 4711 };

	for (int i = 0; i < ROUNDS; i++) {
		CHECK_OK(pthread_kill(t->thread, SIG));
		wait_for(&t->handled, 2 * i + 1);
		CHECK_OK(pthread_sigqueue(t->thread, SIG, value));
		wait_for(&t->handled, 2 * i + 2);
	}
	return NULL;
}

static void by_threads(enum kind kind, bool computes, bool by_main)
{
	struct target t = { .kind = kind, .computes = computes, .ready = EVENT_INIT };

	t.thread = kind == AFFINE ? start_affine(receives, &t) : start(receives, &t);
	event_wait(&t.ready, 1);
	if (by_main)
		sends(&t);
	else
		finish(start(sends, &t));
	t.done = true;
	CHECK(finish(t.thread) == &t);
	CHECK_INT(strays, 0);
}

/* Its own timers, on all clocks, by both ways to make them. */
static void *has_timers(void *arg)
{
	struct target *t = arg;
	struct itimerspec when = { { 0, 2 * MS }, { 0, 2 * MS } };
	clockid_t clocks[] = { CLOCK_MONOTONIC, CLOCK_THREAD_CPUTIME_ID, 0 };

	own = t;
	get_tied(t->kind);
	CHECK_OK(pthread_getcpuclockid(pthread_self(), &clocks[2]));
	for (size_t i = 0; i < COUNT(clocks); i++) {
		struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIG };
		timer_t timer;
		int number;

		event._sigev_un._tid = gettid();
		event.sigev_value.sival_int = 4711;
		t->handled = 0;
		CHECK_OK(timer_create(clocks[i], &event, &timer));
		CHECK_OK(timer_settime(timer, 0, &when, NULL));
		while (t->handled < 2)
			;
		CHECK_OK(timer_delete(timer));
		t->handled = 0;
		CHECK_OK((int)syscall(SYS_timer_create, clocks[i], &event, &number));
		CHECK_OK((int)syscall(SYS_timer_settime, number, 0, &when, NULL));
		while (t->handled < 2)
			;
		CHECK_OK((int)syscall(SYS_timer_delete, number));
	}
	return arg;
}

static void by_timers(enum kind kind)
{
	struct target t = { .kind = kind };

	t.thread = kind == AFFINE ? start_affine(has_timers, &t) : start(has_timers, &t);
	CHECK(finish(t.thread) == &t);
	CHECK_INT(strays, 0);
}

static void *waits(void *arg)
{
	struct target *t = arg;
	sigset_t set;
	siginfo_t info;

	get_tied(t->kind);
	sigemptyset(&set);
	sigaddset(&set, SIG);
	CHECK_OK(pthread_sigmask(SIG_BLOCK, &set, NULL));
	event_post(&t->ready);
	for (int i = 0; i < 2 * ROUNDS; i++) {
		CHECK_INT(sigwaitinfo(&set, &info), SIG);
		/* libc says SI_USER for SI_TKILL here. */
		CHECK_INT(info.si_code, i % 2 ? SI_QUEUE : SI_USER);
		CHECK_INT(info.si_errno, 0);
		CHECK_INT(info.si_pid, getpid());
		if (i % 2)
			CHECK_INT(info.si_value.sival_int, 4711);
		t->handled++;
	}
	return arg;
}

/* What is pending for it stays its own. */
static void *has_pending(void *arg)
{
	struct target *t = arg;
	union sigval value = { .sival_int = 4711 };
	sigset_t set;

	own = t;
	sigemptyset(&set);
	sigaddset(&set, SIG);
	CHECK_OK(pthread_sigmask(SIG_BLOCK, &set, NULL));
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_OK(raise(SIG));
		CHECK_OK(pthread_sigqueue(pthread_self(), SIG, value));
	}
	get_tied(t->kind);
	CHECK_OK(sigpending(&set));
	CHECK_INT(sigismember(&set, SIG), 1);
	CHECK_INT(t->handled, 0);
	sigemptyset(&set);
	CHECK_OK(pthread_sigmask(SIG_SETMASK, &set, NULL));
	CHECK_INT(t->handled, 2 * ROUNDS);
	return arg;
}

static void by_pending(enum kind kind)
{
	struct target t = { .kind = kind };

	CHECK(finish(start_as(kind == AFFINE, has_pending, &t)) == &t);
	CHECK_INT(strays, 0);
}

static void by_sigwaitinfo(enum kind kind)
{
	struct target t = { .kind = kind, .ready = EVENT_INIT };

	t.thread = kind == AFFINE ? start_affine(waits, &t) : start(waits, &t);
	event_wait(&t.ready, 1);
	sends(&t);
	CHECK(finish(t.thread) == &t);
	CHECK_INT(strays, 0);
}

int main(void)
{
	struct sigaction sa = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART };

	CHECK_INT(sigaction(SIG, &sa, NULL), 0);
	for (enum kind kind = 0; kind < KINDS; kind++) {
		for (int i = 0; i < 4; i++)
			by_threads(kind, i & 1, i & 2);
		printf("kind %d: pthread_kill and pthread_sigqueue\n", kind);
		by_sigwaitinfo(kind);
		printf("kind %d: sigwaitinfo\n", kind);
		by_timers(kind);
		printf("kind %d: timers\n", kind);
		by_pending(kind);
		printf("kind %d: pending before\n", kind);
	}
	puts("EXIT-SUCCESS");
	return 0;
}
