/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/signal_at_once.c - a thread that is busy has handled a signal that another
 * has sent it before it sees what the other did next.  On one CPU, where the kernel
 * sees to that.
 */
#include "check.h"

#include <sys/wait.h>

enum { ROUNDS = 40, SLEEPERS = 3 };

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

/* ---- what another process does next: it ends, or writes ----------------------- */

static int held[2], told[2];

static void *sleeps(void *arg)
{
	char c;

	CHECK_INT(read(held[0], &c, 1), 0);
	return arg;
}

static void from_child(int flags)
{
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = flags | SA_RESTART };
	pthread_t t[SLEEPERS];
	char c;

	CHECK_OK(sigaction(SIGUSR1, &sa, NULL));
	CHECK_OK(pipe(held));
	CHECK_OK(pipe(told));
	for (int i = 0; i < SLEEPERS; i++)
		t[i] = start(sleeps, NULL);
	handled = 0;
	for (int i = 1; i <= ROUNDS; i++) {
		pid_t pid = fork();

		CHECK(pid >= 0);
		if (pid == 0) {
			if (kill(getppid(), SIGUSR1) != 0 ||
			    (i % 2 && write(told[1], "x", 1) != 1))
				_exit(1);
			_exit(0);
		}
		if (i % 2) {
			CHECK_INT(read(told[0], &c, 1), 1);
			CHECK_INT(handled, i);
		}
		CHECK_INT(waitpid(pid, NULL, 0), pid);
		CHECK_INT(handled, i);
	}
	close(held[1]);
	for (int i = 0; i < SLEEPERS; i++)
		finish(t[i]);
}

int main(int argc, char **argv)
{
	cpu_set_t cpus, one;

	if (argc == 1) {
		int cpu = 0;

		CHECK_OK(sched_getaffinity(0, sizeof(cpus), &cpus));
		while (!CPU_ISSET(cpu, &cpus))
			cpu++;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		CHECK_OK(sched_setaffinity(0, sizeof(one), &one));
		execl("/proc/self/exe", argv[0], "again", (char *)NULL);
		CHECK(0);
	}
	in_turn(0);
	in_turn(SA_RESTART);
	from_child(0);
	return success();
}
