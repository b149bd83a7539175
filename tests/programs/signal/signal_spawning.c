/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/signal/signal_spawning.c - a signal that comes while a thread makes processes, or fails to: its handler
 * runs in time.  The only thread of a program; then one of several; then one whose kernel thread is its own.
 */
#include "check.h"

#include <sched.h>
#include <spawn.h>
#include <sys/time.h>
#include <sys/wait.h>

enum { ROUNDS = 300 };

static volatile sig_atomic_t arrived;

static void handler(int sig)
{
	(void)sig;
	arrived = 1;
}

static void fails_to_spawn(void)
{
	char *argv[] = { "none", NULL };
	pid_t pid;

	CHECK(!popen("true", "no mode"));
	CHECK_INT(posix_spawn(&pid, "/nowhere/at/all", NULL, NULL, argv, argv), ENOENT);
	CHECK_ERR(execv("/nowhere/at/all", argv), ENOENT);
}

static void forks(void)
{
	const pid_t pid = fork();

	CHECK(pid >= 0);
	if (!pid)
		_exit(0);
	while (waitpid(pid, NULL, 0) < 0)
		CHECK_INT(errno, EINTR);
}

static void rounds(void (*makes)(void))
{
	for (int i = 0; i < ROUNDS; i++) {
		const struct itimerval once = { .it_value.tv_usec = 50 + i % 200 };
		const long long begin = now(CLOCK_MONOTONIC);

		arrived = 0;
		CHECK_OK(setitimer(ITIMER_REAL, &once, NULL));
		while (!arrived && now(CLOCK_MONOTONIC) < begin + 500 * 1000)
			makes();
		/* Without a call, as the handler natively needs none. */
		while (!arrived)
			CHECK(now(CLOCK_MONOTONIC) < begin + 20000 * MS);
	}
}

static void *nothing(void *arg)
{
	return arg;
}

int main(void)
{
	CHECK(signal(SIGALRM, handler) != SIG_ERR);
	rounds(fails_to_spawn);
	rounds(forks);
	finish(start(nothing, NULL));
	rounds(fails_to_spawn);
	rounds(forks);
	CHECK_OK(unshare(CLONE_FS));
	rounds(fails_to_spawn);
	rounds(forks);
	return success();
}
