/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/signal/signal_overrun.c - a timer has at most one pending signal, which tells
 * how often the timer has expired besides; timer_getoverrun() returns this number, too. With a
 * real-time and a standard signal, blocked by the mask and by its own handler. A timer that is
 * stopped or deleted sends no more signals.
 */
#include "check.h"

#include <stdatomic.h>
#include <sys/time.h>
#include <sys/utsname.h>

enum { TIMERS = 3, LONG = 40, ROUNDS = 60 };

static timer_t timers[TIMERS];
static volatile sig_atomic_t handled[TIMERS], others, all;
static volatile long long counted[TIMERS];
static volatile sig_atomic_t differs;
/* What the handler is to do. */
static void (*volatile in_handler)(void);
static sigset_t set;

static void on_signal(int sig, siginfo_t *info, void *context)
{
	void (*fn)(void) = in_handler;
	int i = info->si_value.sival_int;

	(void)sig;
	(void)context;
	in_handler = NULL;
	all++;
	if (info->si_code == SI_TIMER) {
		handled[i]++;
		counted[i] += 1 + info->si_overrun;
		differs += timer_getoverrun(timers[i]) != info->si_overrun;
	} else {
		others++;
	}
	if (fn)
		fn();
}

static void make(int i, int sig)
{
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = sig };

	event.sigev_value.sival_int = i;
	CHECK_OK(timer_create(CLOCK_MONOTONIC, &event, &timers[i]));
	handled[i] = 0;
	counted[i] = 0;
}

static void set_timer(int i, long long first, long long interval)
{
	struct itimerspec when = { to_timespec(interval), to_timespec(first) };

	CHECK_OK(timer_settime(timers[i], 0, &when, NULL));
}

static void wait_ms(int ms)
{
	struct timespec until = in(CLOCK_MONOTONIC, ms * MS);

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
		continue;
}

static void busy(long long ns)
{
	long long end = now(CLOCK_MONOTONIC) + ns;

	while (now(CLOCK_MONOTONIC) < end)
		continue;
}

static void wait_long(void)
{
	wait_ms(LONG);
}

/* ---- how many --------------------------------------------------------------- */

/* Expired about once each millisecond from then on. */
static void check_count(int i, long long began)
{
	long long ms = (now(CLOCK_MONOTONIC) - began) / MS;

	CHECK(counted[i] <= ms + 1);
	CHECK(counted[i] >= LONG / 4);
	CHECK_INT(differs, 0);
}

static void by_mask(int sig)
{
	long long began;

	make(0, sig);
	CHECK_OK(pthread_sigmask(SIG_BLOCK, &set, NULL));
	began = now(CLOCK_MONOTONIC);
	set_timer(0, MS, MS);
	wait_long();
	CHECK_INT(handled[0], 0);
	CHECK_OK(pthread_sigmask(SIG_UNBLOCK, &set, NULL));
	CHECK(handled[0] >= 1);
	set_timer(0, 0, 0);
	check_count(0, began);
	CHECK_INT(timer_getoverrun(timers[0]), 0);
	CHECK_OK(timer_delete(timers[0]));
}

static int by_handler(int sig)
{
	long long began, count;

	make(0, sig);
	in_handler = wait_long;
	began = now(CLOCK_MONOTONIC);
	set_timer(0, MS, MS);
	/* The first takes long, the second stands for what came meanwhile. */
	while (handled[0] < 2)
		usleep(500);
	count = counted[0];
	set_timer(0, 0, 0);
	CHECK(counted[0] <= (now(CLOCK_MONOTONIC) - began) / MS + 1);
	CHECK_INT(differs, 0);
	CHECK_OK(timer_delete(timers[0]));
	/* What is still on its way, on a busy machine, is not in it. */
	return count >= LONG / 4;
}

/* Of several timers with one signal each has one pending, whatever else is. */
static void several(int sig)
{
	for (int i = 0; i < TIMERS; i++)
		make(i, sig);
	others = 0;
	in_handler = wait_long;
	for (int i = 0; i < TIMERS; i++)
		set_timer(i, (5 + i) * MS, 0);
	CHECK_OK(raise(sig));
	CHECK_INT(others, 1);
	for (int i = 0; i < TIMERS; i++) {
		while (!handled[i])
			usleep(500);
		CHECK_INT(handled[i], 1);
		CHECK_INT(counted[i], 1);
		CHECK_OK(timer_delete(timers[i]));
	}
	CHECK_INT(differs, 0);
}

/* ---- stopped ------------------------------------------------------------------ */

static void quiet(void)
{
	int before = all;

	wait_ms(2);
	CHECK_INT(all, before);
}

static void delete_meanwhile(void)
{
	wait_ms(10);
	CHECK_OK(timer_delete(timers[0]));
}

static void stop_meanwhile(void)
{
	wait_ms(10);
	set_timer(0, 0, 0);
}

static void set_meanwhile(void)
{
	wait_ms(10);
	set_timer(0, 3600000 * MS, 0);
}

/* From Linux 6.13 on what is pending goes with its timer. */
static int kernel_drops(void)
{
	struct utsname name;
	int major = 0, minor = 0;

	CHECK_OK(uname(&name));
	CHECK_INT(sscanf(name.release, "%d.%d", &major, &minor), 2);
	return major > 6 || (major == 6 && minor >= 13);
}

static void pending(int sig, void (*fn)(void))
{
	make(0, sig);
	in_handler = fn;
	set_timer(0, MS, MS);
	while (in_handler)
		usleep(500);
	/* The handler was called for the first one, and stopped it. */
	wait_ms(2);
	if (kernel_drops())
		CHECK_INT(handled[0], 1);
	quiet();
	if (fn != delete_meanwhile)
		CHECK_OK(timer_delete(timers[0]));
}

static void stopped(int sig)
{
	uint64_t seed = 4711;

	for (int i = 0; i < ROUNDS; i++) {
		make(0, sig);
		set_timer(0, MS / 10, MS / 10);
		busy((long long)(random_next(&seed) % (unsigned)(MS / 2)));
		if (i % 2)
			set_timer(0, 0, 0);
		CHECK_OK(timer_delete(timers[0]));
		quiet();
	}
}

/* One that has expired has been handled when it is set again. */
static void expired(int sig)
{
	struct itimerspec off = { { 0, 0 }, { 0, 0 } }, was;

	make(0, sig);
	for (int i = 0; i < ROUNDS; i++) {
		handled[0] = 0;
		set_timer(0, MS / 10, 0);
		busy(MS / 2);
		/* On a busy machine it may be late, too. */
		CHECK_OK(timer_settime(timers[0], 0, &off, &was));
		if (was.it_value.tv_nsec == 0)
			CHECK_INT(handled[0], 1);
	}
	CHECK_OK(timer_delete(timers[0]));
}

static void real_timer(void)
{
	struct itimerval every = { { 0, 200 }, { 0, 200 } }, once = { { 0, 0 }, { 0, 200 } };
	struct itimerval off = { { 0, 0 }, { 0, 0 } };
	uint64_t seed = 4711;

	for (int i = 0; i < ROUNDS; i++) {
		int before = all;

		CHECK_OK(setitimer(ITIMER_REAL, i % 2 ? &every : &once, NULL));
		busy((long long)(random_next(&seed) % (unsigned)MS));
		if (i % 3) {
			CHECK_OK(setitimer(ITIMER_REAL, &off, &every));
			/* It has expired. */
			if (i % 2 == 0 && every.it_value.tv_usec == 0)
				CHECK_INT(all, before + 1);
			every = (struct itimerval){ { 0, 200 }, { 0, 200 } };
		} else {
			alarm(0);
		}
		quiet();
	}
}

static volatile int stop;

/* Another thread, which blocks them. */
static void *parks(void *arg)
{
	while (!stop)
		usleep(10000);
	return arg;
}

int main(void)
{
	struct sigaction sa = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART };
	const int sigs[] = { SIGALRM, SIGRTMIN + 2 };
	pthread_t t;

	sigemptyset(&set);
	for (unsigned i = 0; i < COUNT(sigs); i++) {
		sigaddset(&set, sigs[i]);
		CHECK_OK(sigaction(sigs[i], &sa, NULL));
	}
	CHECK_OK(pthread_sigmask(SIG_BLOCK, &set, NULL));
	t = start(parks, NULL);
	CHECK_OK(pthread_sigmask(SIG_UNBLOCK, &set, NULL));
	for (unsigned i = 0; i < COUNT(sigs); i++) {
		by_mask(sigs[i]);
		puts("blocked by the mask");
		for (int n = 0; !by_handler(sigs[i]); n++)
			CHECK(n < 20);
		puts("blocked by its handler");
		several(sigs[i]);
		puts("several timers");
		pending(sigs[i], delete_meanwhile);
		pending(sigs[i], stop_meanwhile);
		pending(sigs[i], set_meanwhile);
		puts("pending");
		stopped(sigs[i]);
		expired(sigs[i]);
		puts("stopped");
	}
	real_timer();
	puts("setitimer and alarm");
	stop = 1;
	finish(t);
	return success();
}
