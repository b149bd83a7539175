/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/process/exec_busy.c - a program whose threads compute replaces itself again and
 * again, by main and by a thread, and starts others meanwhile. What the threads were sent must not
 * reach the new program.
 */
#include "check.h"

#include <spawn.h>
#include <sys/wait.h>

enum { SPINNERS = 6, TIMES = 24, WRONG = 5 };

extern char **environ;
static const char self[] = "/proc/self/exe";

static void *spins(void *arg)
{
	for (volatile unsigned long i = 0;; i++)
		continue;
	return arg;
}

static void fail_to_exec(void)
{
	char *const none[] = { "none", NULL };

	for (int i = 0; i < WRONG; i++) {
		CHECK_ERR(execve("/nonexistent/program", none, environ), ENOENT);
		CHECK_ERR(execve("/", none, environ), EACCES);
	}
}

static void await(pid_t pid)
{
	int status;

	CHECK(pid > 0);
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK_OK(status);
}

/* Each child ends at once: it has one argument more than the last time. */
static void start_others(void)
{
	char *const argv[] = { "exec_busy", "end", NULL };
	pid_t pid;

	CHECK_OK(posix_spawn(&pid, self, NULL, NULL, argv, environ));
	await(pid);
	pid = vfork();
	if (!pid) {
		execve(self, argv, environ);
		_exit(1);
	}
	await(pid);
}

/* argc counts how often the program has replaced itself. */
static void *replaces(void *arg)
{
	char *argv[TIMES + 3];
	int n = *(int *)arg;

	for (int i = 0; i < n; i++)
		argv[i] = "again";
	argv[n] = "again";
	argv[n + 1] = NULL;
	execve(self, argv, environ);
	return arg;
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "end"))
		return 0;
	if (argc > TIMES)
		return success();
	for (int i = 0; i < SPINNERS; i++)
		start(spins, NULL);
	if (argc % 4 == 0)
		fail_to_exec();
	if (argc % 8 == 1)
		start_others();
	if (argc % 2)
		replaces(&argc);
	else
		finish(start(replaces, &argc));
	return 1;
}
