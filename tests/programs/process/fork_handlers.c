/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/process/fork_handlers.c - handlers run all the time while threads are inside fork.
 */
#include "check.h"

#include <sys/time.h>
#include <sys/wait.h>

enum { THREADS = 8 };

static volatile sig_atomic_t handled;
static long long end;

static void on_signal(int sig)
{
	(void)sig;
	handled++;
}

static void *forks(void *arg)
{
	while (now(CLOCK_MONOTONIC) < end) {
		int status;
		pid_t pid = fork(), got;

		CHECK(pid >= 0);
		if (pid == 0)
			_exit(7);
		do
			got = waitpid(pid, &status, 0);
		while (got < 0 && errno == EINTR);
		CHECK_INT(got, pid);
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	}
	return arg;
}

int main(void)
{
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	struct itimerval often = { { 0, 2000 }, { 0, 2000 } }, never = { { 0, 0 }, { 0, 0 } };
	pthread_t t[THREADS];

	CHECK_OK(sigaction(SIGCHLD, &sa, NULL));
	CHECK_OK(sigaction(SIGALRM, &sa, NULL));
	for (int round = 0; round < 2; round++) {
		end = now(CLOCK_MONOTONIC) + 300 * MS;
		if (round)
			CHECK_OK(setitimer(ITIMER_REAL, &often, NULL));
		for (int i = 0; i < THREADS; i++)
			t[i] = start(forks, NULL);
		for (int i = 0; i < THREADS; i++)
			finish(t[i]);
	}
	CHECK_OK(setitimer(ITIMER_REAL, &never, NULL));
	CHECK(handled > 0);
	return success();
}
