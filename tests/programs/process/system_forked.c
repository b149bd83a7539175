/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/process/system_forked.c - a handler forks while its thread is in system() or waitpid(): the parent goes on,
 * and the child returns from the call, too.
 */
#include "check.h"

#include <sys/wait.h>

static volatile sig_atomic_t child = -1, found = -1;
static int tell = -1;

static void handler(int sig)
{
	(void)sig;
	/* The child's own end sends SIGCHLD, too. */
	if (child != -1)
		return;
	child = fork();
	if (child != 0 && tell >= 0 && write(tell, "\n", 1) != 1)
		abort();
}

static void *nothing(void *arg)
{
	return arg;
}

/* The command ends only after the fork, so the child has not got its status. */
static void in_system(void)
{
	int result, status, ends[2];

	CHECK_OK(pipe2(ends, O_CLOEXEC));
	CHECK_INT(dup2(ends[0], 0), 0);
	tell = ends[1];
	CHECK(signal(SIGUSR1, handler) != SIG_ERR);
	result = system("kill -USR1 $PPID; read line; exit 3");
	if (child == 0)
		_exit(result == -1 && errno == ECHILD ? 0 : 1);
	tell = -1;
	CHECK(child > 0);
	CHECK_INT(WEXITSTATUS(result), 3);
	CHECK_INT(waitpid(child, &status, 0), child);
	CHECK_INT(status, 0);
	/* The mask of the thread is as it was. */
	CHECK_INT(system("exit 4"), 4 << 8);
	CHECK_OK(close(ends[0]));
	CHECK_OK(close(ends[1]));
}

/* The handler of SIGCHLD looks for children itself, then forks. */
static void reaper(int sig)
{
	const int saved_errno = errno;

	if (child == -1)
		found = waitpid(-1, NULL, WNOHANG);
	errno = saved_errno;
	handler(sig);
}

/*
 * The thread sleeps in waitpid() when the child ends. A thread that SIGCHLD wakes looks for the child before the handler
 * runs. So the call has the status, also in the child that the handler forks, and the handler finds no child.
 */
static void as_the_wait_ends(void)
{
	pid_t first, ret;
	int status;

	child = -1;
	CHECK(signal(SIGCHLD, reaper) != SIG_ERR);
	first = fork();
	if (first == 0) {
		await_asleep_in(getppid());
		_exit(5);
	}
	CHECK(first > 0);
	ret = waitpid(first, &status, 0);
	if (child == 0)
		_exit(ret != first || status != 5 << 8);
	CHECK_INT(ret, first);
	CHECK_INT(found, -1);
	CHECK_INT(status, 5 << 8);
	CHECK(child > 0);
	CHECK_INT(waitpid(child, &status, 0), child);
	CHECK_INT(status, 0);
	CHECK(signal(SIGCHLD, SIG_DFL) == reaper);
}

int main(void)
{
	finish(start(nothing, NULL));
	in_system();
	as_the_wait_ends();
	finish(start(nothing, NULL));
	return success();
}
