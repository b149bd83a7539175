/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/process/wait_own.c - __WNOTHREAD: by every call that waits, a thread finds the
 * children that it has made itself, by every call that makes one, and no other thread's.
 */
#include "check.h"

#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { STATUS = 3, SEVERAL = 3 };

static int gate[2];
static struct event waited = EVENT_INIT;

/* A child lives until its end of the pipe is closed, or ends at once. */
static int ends(void *arg)
{
	char c;

	if (arg && read(((int *)arg)[0], &c, 1) < 0)
		_exit(1);
	_exit(STATUS);
}

static pid_t by_fork(int *until)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (!pid) {
		if (until)
			close(until[1]);
		ends(until);
	}
	return pid;
}

static pid_t by_number(int *until)
{
	pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

	CHECK(pid >= 0);
	if (!pid) {
		if (until)
			syscall(SYS_close, until[1]);
		ends(until);
	}
	return pid;
}

static pid_t by_clone(int *until)
{
	static char stack[4][1 << 16] __attribute__((aligned(16)));
	static _Atomic unsigned next;
	pid_t pid;

	(void)until;
	pid = clone(ends, stack[next++ % 4] + sizeof(stack[0]), SIGCHLD, NULL);
	CHECK(pid > 0);
	return pid;
}

static pid_t by_spawn(int *until)
{
	char *argv[] = { "sh", "-c", "exit 3", NULL };
	pid_t pid;

	(void)until;
	CHECK_OK(posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, NULL));
	return pid;
}

static pid_t (*const creators[])(int *) = { by_fork, by_number, by_clone, by_spawn };

/* ---- ways to wait: for pid, or -1; flags besides __WNOTHREAD ------------------ */

static pid_t with_waitpid(pid_t pid, int *status, int flags)
{
	return waitpid(pid, status, flags | __WNOTHREAD);
}

static pid_t with_wait4(pid_t pid, int *status, int flags)
{
	struct rusage usage;

	return wait4(pid, status, flags | __WNOTHREAD, &usage);
}

static pid_t with_number(pid_t pid, int *status, int flags)
{
	return (pid_t)syscall(SYS_wait4, pid, status, flags | __WNOTHREAD, NULL);
}

static pid_t with_wait3(pid_t pid, int *status, int flags)
{
	(void)pid;
	return wait3(status, flags | __WNOTHREAD, NULL);
}

static pid_t with_group(pid_t pid, int *status, int flags)
{
	(void)pid;
	return waitpid(0, status, flags | __WNOTHREAD);
}

static pid_t by_info(idtype_t type, id_t id, int *status, int flags)
{
	siginfo_t info;

	memset(&info, 0, sizeof(info));
	if (waitid(type, id, &info, flags | WEXITED | __WNOTHREAD))
		return -1;
	*status = info.si_status << 8;
	return info.si_pid;
}

static pid_t with_waitid(pid_t pid, int *status, int flags)
{
	return by_info(pid < 0 ? P_ALL : P_PID, (id_t)pid, status, flags);
}

static pid_t with_pidfd(pid_t pid, int *status, int flags)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0), err;
	pid_t ret;

	CHECK(fd >= 0);
	ret = by_info(P_PIDFD, (id_t)fd, status, flags);
	err = errno;
	close(fd);
	errno = err;
	return ret;
}

static const struct way {
	pid_t (*wait)(pid_t pid, int *status, int flags);
	int one;		/* knows one child, none, or both */
	int any;
} ways[] = {
	{ with_waitpid, 1, 1 }, { with_wait4, 1, 1 }, { with_number, 1, 1 }, { with_waitid, 1, 1 },
	{ with_wait3, 0, 1 }, { with_group, 0, 1 }, { with_pidfd, 1, 0 },
};

static pid_t others_child, others_zombie;

static void find_none(const struct way *w)
{
	int status;

	if (w->one) {
		CHECK_ERR(w->wait(others_child, &status, 0), ECHILD);
		CHECK_ERR(w->wait(others_child, &status, WNOHANG), ECHILD);
		CHECK_ERR(w->wait(others_zombie, &status, 0), ECHILD);
	}
	if (w->any) {
		CHECK_ERR(w->wait(-1, &status, 0), ECHILD);
		CHECK_ERR(w->wait(-1, &status, WNOHANG), ECHILD);
	}
}

static void find_own(const struct way *w, pid_t (*make)(int *))
{
	int status = 0, until[2];
	pid_t pid = make(NULL);

	usleep(500);
	CHECK_INT(w->wait(w->one ? pid : -1, &status, 0), pid);
	CHECK_INT(WEXITSTATUS(status), STATUS);
	if (!w->any)
		return;
	pid = make(NULL);
	usleep(500);
	CHECK_INT(w->wait(-1, &status, 0), pid);
	if (make != by_fork && make != by_number)
		return;
	CHECK_OK(pipe2(until, O_CLOEXEC));
	pid = make(until);
	CHECK_OK(close(until[0]));
	CHECK_INT(w->wait(-1, &status, WNOHANG), 0);
	CHECK_OK(close(until[1]));
	CHECK_INT(w->wait(-1, &status, 0), pid);
}

static void find_several(const struct way *w)
{
	pid_t pids[SEVERAL];
	int until[2], found = 0, status;

	CHECK_OK(pipe2(until, O_CLOEXEC));
	for (int i = 0; i < SEVERAL; i++)
		pids[i] = by_fork(i ? until : NULL);
	CHECK_OK(close(until[0]));
	CHECK_INT(w->wait(-1, &status, 0), pids[0]);
	CHECK_INT(w->wait(-1, &status, WNOHANG), 0);
	CHECK_OK(close(until[1]));
	for (int i = 1; i < SEVERAL; i++) {
		pid_t pid = w->wait(-1, &status, 0);

		for (int k = 1; k < SEVERAL; k++)
			found += pid == pids[k];
	}
	CHECK_INT(found, SEVERAL - 1);
}

static void *waits(void *arg)
{
	const struct way *w = arg;

	find_none(w);
	for (size_t i = 0; i < COUNT(creators); i++)
		find_own(w, creators[i]);
	if (w->any)
		find_several(w);
	find_none(w);
	return arg;
}

/* Its child is the main thread's when it has ended. */
static void *leaves(void *arg)
{
	*(pid_t *)arg = by_fork(NULL);
	return arg;
}

/* Has a child while the others wait. */
static void *has_child(void *arg)
{
	int status;

	others_child = by_fork(gate);
	others_zombie = by_fork(NULL);
	event_wait(&waited, 1);
	CHECK_OK(close(gate[1]));
	CHECK_INT(waitpid(others_child, &status, __WNOTHREAD), others_child);
	CHECK_INT(waitpid(-1, &status, __WNOTHREAD), others_zombie);
	CHECK_ERR(waitpid(-1, &status, __WNOTHREAD), ECHILD);
	return arg;
}

int main(void)
{
	pthread_t owner;
	int status;
	pid_t left;

	CHECK_OK(pipe2(gate, O_CLOEXEC));
	owner = start(has_child, NULL);
	while (!*(volatile pid_t *)&others_zombie)
		usleep(100);
	usleep(1000);
	/* One after the other: a child inherits the pipes that other threads have open. */
	for (size_t i = 0; i < COUNT(ways); i++)
		finish(start(waits, (void *)&ways[i]));
	for (size_t i = 0; i < COUNT(ways); i++)
		waits((void *)&ways[i]);
	event_post(&waited);
	finish(owner);
	finish(start(leaves, &left));
	CHECK_INT(waitpid(left, &status, __WNOTHREAD), left);
	finish(start(leaves, &left));
	CHECK_INT(waitpid(-1, &status, __WNOTHREAD), left);
	CHECK_ERR(waitpid(-1, &status, __WNOTHREAD), ECHILD);
	return success();
}
