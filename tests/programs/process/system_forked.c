/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/process/system_forked.c - a handler forks while its thread is in system(): the parent goes on, and the child
 * returns from system() without its command.
 */
#include "check.h"

#include <sys/wait.h>

static volatile sig_atomic_t child = -1;

static void handler(int sig)
{
	(void)sig;
	child = fork();
}

static void *nothing(void *arg)
{
	return arg;
}

int main(void)
{
	int result, status;

	finish(start(nothing, NULL));
	CHECK(signal(SIGUSR1, handler) != SIG_ERR);
	result = system("kill -USR1 $PPID; sleep 0.1; exit 3");
	if (child == 0)
		_exit(result == -1 && errno == ECHILD ? 0 : 1);
	CHECK(child > 0);
	CHECK_INT(WEXITSTATUS(result), 3);
	CHECK_INT(waitpid(child, &status, 0), child);
	CHECK_INT(status, 0);
	/* The mask of the thread is as it was. */
	CHECK_INT(system("exit 4"), 4 << 8);
	finish(start(nothing, NULL));
	return success();
}
