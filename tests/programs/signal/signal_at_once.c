/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/signal/signal_at_once.c - a CPU-bound thread handles a signal from another
 * thread before it sees what the sender does next. On one CPU, where the kernel guarantees
 * this.
 */
#include "check.h"

enum { ROUNDS = 40 };

static volatile sig_atomic_t handled;
static _Atomic int spins, go;

static void on_signal(int sig)
{
	(void)sig;
	handled++;
}

static void *busy(void *arg)
{
	for (int i = 1; i <= ROUNDS; i++) {
		spins = i;
		while (go != i)
			continue;
		CHECK_INT(handled, i);
	}
	return arg;
}

static void in_turn(int flags)
{
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = flags };
	pthread_t t;

	CHECK_OK(sigaction(SIGUSR1, &sa, NULL));
	handled = spins = go = 0;
	t = start(busy, NULL);
	for (int i = 1; i <= ROUNDS; i++) {
		while (spins != i)
			sched_yield();
		CHECK_OK(pthread_kill(t, SIGUSR1));
		go = i;
	}
	finish(t);
}

int main(int argc, char **argv)
{
	cpu_set_t one;

	if (argc == 1) {
		first_cpu(&one);
		CHECK_OK(sched_setaffinity(0, sizeof(one), &one));
		execl("/proc/self/exe", argv[0], "again", (char *)NULL);
		CHECK(0);
	}
	in_turn(0);
	in_turn(SA_RESTART);
	return success();
}
