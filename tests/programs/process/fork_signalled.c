/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/process/fork_signalled.c - signals come to a child at each moment of fork, and its handler makes calls of
 * the library.
 */
#include "check.h"

#include <signal.h>
#include <sys/wait.h>

enum { FORKS = 150, STATUS = 3 };

static _Atomic int done;
static sigset_t waited;

static void look(void)
{
	const struct timespec none = { 0 };
	sigset_t set;

	CHECK_OK(sigpending(&set));
	CHECK(sigtimedwait(&waited, NULL, &none) < 0);
}

static void handle(int sig)
{
	const int error = errno;

	(void)sig;
	look();
	errno = error;
}

/* The child gets what is sent to the group. */
static void *send_to_group(void *arg)
{
	while (!done) {
		CHECK_OK(kill(0, SIGUSR1));
		usleep(50);
	}
	return arg;
}

static void *make_children(void *arg)
{
	for (int i = 0; i < FORKS; i++) {
		const pid_t pid = fork();
		int status;

		CHECK(pid >= 0);
		if (!pid) {
			look();
			_exit(STATUS);
		}
		while (waitpid(pid, &status, 0) < 0)
			CHECK_INT(errno, EINTR);
		CHECK(WIFEXITED(status));
		CHECK_INT(WEXITSTATUS(status), STATUS);
	}
	done = 1;
	return arg;
}

int main(void)
{
	struct sigaction action = { .sa_handler = handle, .sa_flags = SA_RESTART };
	pthread_t t[2];

	/* Nobody else gets the signals. */
	if (getpgrp() != getpid())
		CHECK_OK(setpgid(0, 0));
	CHECK_OK(sigemptyset(&waited));
	CHECK_OK(sigaddset(&waited, SIGRTMIN + 1));
	CHECK_OK(sigaction(SIGUSR1, &action, NULL));
	t[0] = start(send_to_group, NULL);
	t[1] = start(make_children, NULL);
	finish(t[1]);
	finish(t[0]);
	puts("children");
	return success();
}
