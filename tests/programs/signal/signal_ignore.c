/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/signal/signal_ignore.c - ignoring a signal discards pending ones, for threads
 * and for the process; a signal sent later is handled normally.
 */
#include "check.h"

enum { N = 5 };

static int sigs[4] = { SIGUSR1, SIGWINCH };	/* and two real-time ones */

static __thread volatile int handled, last;

static void note(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	handled = handled + 1;
	last = info->si_code == SI_QUEUE ? info->si_value.sival_int : -1;
}

static void handle(int sig)
{
	struct sigaction sa = { .sa_sigaction = note, .sa_flags = SA_SIGINFO };

	CHECK_OK(sigaction(sig, &sa, NULL));
}

/* SIGWINCH by its default action. */
static void ignore(int sig)
{
	CHECK(signal(sig, sig == SIGWINCH ? SIG_DFL : SIG_IGN) != SIG_ERR);
}

static void mask_all(int how)
{
	sigset_t set;

	sigemptyset(&set);
	for (int i = 0; i < 4; i++)
		sigaddset(&set, sigs[i]);
	CHECK_OK(pthread_sigmask(how, &set, NULL));
}

static void expect_pending(int sig, int want)
{
	sigset_t set;

	CHECK_OK(sigpending(&set));
	CHECK_INT(sigismember(&set, sig), want);
}

static void expect_none_to_take(int sig)
{
	const struct timespec soon = { 0, MS };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, sig);
	CHECK_ERR(sigtimedwait(&set, NULL, &soon), EAGAIN);
}

static void unblock_and_expect(int sig, int want, int want_last)
{
	handled = 0;
	mask_signal(SIG_UNBLOCK, sig);
	CHECK_INT(handled, want);
	if (want)
		CHECK_INT(last, want_last);
	mask_signal(SIG_BLOCK, sig);
}

/* ---- for a thread, by another -------------------------------------------- */

static struct event ready = EVENT_INIT, go = EVENT_INIT;

static void *receives(void *arg)
{
	mask_all(SIG_BLOCK);
	for (int round = 1; round <= 4; round++) {
		event_post(&ready);
		event_wait(&go, round);
		for (int i = 0; i < 4; i++) {
			int new_ones = round == 1 || round == 3 ? 0 : sigs[i] >= SIGRTMIN ? N : 1;

			expect_pending(sigs[i], new_ones != 0);
			if (!new_ones)
				expect_none_to_take(sigs[i]);
			unblock_and_expect(sigs[i], new_ones,
					   sigs[i] >= SIGRTMIN ? 100 * round + N - 1 : -1);
		}
	}
	return arg;
}

static void send(pthread_t t, int sig, int value)
{
	union sigval v = { .sival_int = value };

	if (sig < SIGRTMIN)
		CHECK_OK(pthread_kill(t, sig));
	else
		CHECK_OK(pthread_sigqueue(t, sig, v));
}

static void for_a_thread(void)
{
	pthread_t t = start(receives, NULL);

	for (int round = 1; round <= 4; round++) {
		event_wait(&ready, round);
		for (int i = 0; i < 4; i++) {
			for (int n = 0; n < N; n++)
				send(t, sigs[i], n);
			ignore(sigs[i]);
			/* Dropped, too: but the thread blocks it. */
			if (round == 3)
				ignore(sigs[i]);
			handle(sigs[i]);
			for (int n = 0; round % 2 == 0 && n < N; n++)
				send(t, sigs[i], 100 * round + n);
		}
		event_post(&go);
	}
	finish(t);
	puts("for a thread");
}

static long resident_kb(void)
{
	char line[256];
	long kb = -1;
	FILE *f = fopen("/proc/self/status", "r");

	CHECK(f);
	while (kb < 0 && fgets(line, sizeof(line), f))
		if (sscanf(line, "VmRSS: %ld", &kb) != 1)
			kb = -1;
	fclose(f);
	return kb;
}

static void *blocks_all(void *arg)
{
	mask_all(SIG_BLOCK);
	event_post(&ready);
	event_wait(&go, 5);
	unblock_and_expect(SIGUSR1, 1, -1);
	unblock_and_expect(SIGWINCH, 1, -1);
	return arg;
}

/* However often a standard signal is sent to a thread that blocks it, it is pending once, also if it has been ignored. */
static void again_and_again(void)
{
	enum { TIMES = 50000, MOST_KB = 4096 };
	pthread_t t = start(blocks_all, NULL);
	long before;

	event_wait(&ready, 5);
	for (int i = 0; i < 2; i++) {
		send(t, sigs[i], 0);
		ignore(sigs[i]);
		handle(sigs[i]);
	}
	before = resident_kb();
	for (int n = 0; n < TIMES; n++)
		for (int i = 0; i < 2; i++)
			send(t, sigs[i], n);
	CHECK(resident_kb() - before < MOST_KB);
	event_post(&go);
	finish(t);
	puts("again and again");
}

/* ---- for itself, and the process ------------------------------------------- */

static void send_here(int sig, int to_process, int value)
{
	union sigval v = { .sival_int = value };

	if (!to_process)
		send(pthread_self(), sig, value);
	else if (sig < SIGRTMIN)
		CHECK_OK(kill(getpid(), sig));
	else
		CHECK_OK(sigqueue(getpid(), sig, v));
}

static void for_itself(int to_process)
{
	mask_all(SIG_BLOCK);
	for (int i = 0; i < 4; i++) {
		handle(sigs[i]);
		for (int n = 0; n < N; n++)
			send_here(sigs[i], to_process, n);
		expect_pending(sigs[i], 1);
		ignore(sigs[i]);
		expect_pending(sigs[i], 0);
		expect_none_to_take(sigs[i]);
		handle(sigs[i]);
		expect_pending(sigs[i], 0);
		unblock_and_expect(sigs[i], 0, 0);
		send_here(sigs[i], to_process, 7);
		expect_pending(sigs[i], 1);
		unblock_and_expect(sigs[i], 1, sigs[i] >= SIGRTMIN ? 7 : -1);
	}
	mask_all(SIG_UNBLOCK);
	puts(to_process ? "for the process" : "for itself");
}

/* In a handler, when what comes for the process is blocked for so long. */
static void changes_its_mind(int sig)
{
	(void)sig;
	for (int i = 0; i < 4; i++) {
		for (int n = 0; n < N; n++)
			send_here(sigs[i], 1, n);
		expect_pending(sigs[i], 1);
		ignore(sigs[i]);
		handle(sigs[i]);
		expect_pending(sigs[i], 0);
	}
	handled = 0;
}

static void in_a_handler(void)
{
	struct sigaction sa = { .sa_handler = changes_its_mind };

	sigfillset(&sa.sa_mask);
	CHECK_OK(sigaction(SIGUSR2, &sa, NULL));
	for (int i = 0; i < 4; i++)
		handle(sigs[i]);
	CHECK_OK(raise(SIGUSR2));
	CHECK_INT(handled, 0);
	puts("in a handler");
}

static void *waits(void *arg)
{
	event_wait(arg, 1);
	return arg;
}

int main(void)
{
	static struct event over = EVENT_INIT;
	pthread_t t;

	sigs[2] = SIGRTMIN;
	sigs[3] = SIGRTMIN + 3;
	for (int i = 0; i < 4; i++)
		handle(sigs[i]);
	/* It blocks them from the start. */
	mask_all(SIG_BLOCK);
	t = start(waits, &over);
	mask_all(SIG_UNBLOCK);
	for_a_thread();
	again_and_again();
	for_itself(0);
	for_itself(1);
	in_a_handler();
	event_post(&over);
	finish(t);
	return success();
}
