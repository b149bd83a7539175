/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/process/wait_traced.c - threads that trace a child each: the kernel lets no
 * other thread than the one that attached read the child or go on with it.
 */
#include "check.h"

#include <stdbool.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

enum { THREADS = 6, ROUNDS = 30 };

static long word = 0x1234;
static int own_pipe[THREADS][2];

/* Wait where the thread leaves its kernel thread to others, if it can. */
static void wander(const int *fds)
{
	char c;

	CHECK_INT(write(fds[1], "x", 1), 1);
	CHECK_INT(read(fds[0], &c, 1), 1);
	usleep(50);
}

static pid_t make_child(void)
{
	pid_t child = fork();

	CHECK(child >= 0);
	while (!child)
		pause();
	return child;
}

static void *traces(void *arg)
{
	const int *fds = arg;
	const pid_t child = make_child();
	int status;

	CHECK_ERR(ptrace(PTRACE_PEEKDATA, child, &word, NULL), ESRCH);
	CHECK_OK(ptrace(PTRACE_SEIZE, child, NULL, NULL));
	CHECK_ERR(ptrace(PTRACE_SEIZE, child, NULL, NULL), EPERM);
	CHECK_ERR(ptrace(PTRACE_PEEKDATA, child, &word, NULL), ESRCH);
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_OK(ptrace(PTRACE_INTERRUPT, child, NULL, NULL));
		CHECK_INT(waitpid(child, &status, 0), child);
		CHECK(WIFSTOPPED(status));
		wander(fds);
		errno = 0;
		CHECK_INT(ptrace(PTRACE_PEEKDATA, child, &word, NULL), i ? i - 1 : 0x1234);
		CHECK_OK(errno);
		wander(fds);
		CHECK_OK(ptrace(PTRACE_POKEDATA, child, &word, (void *)(intptr_t)i));
		CHECK_ERR(ptrace(PTRACE_PEEKDATA, child, (void *)8, NULL), EIO);
		wander(fds);
		CHECK_OK(ptrace(PTRACE_CONT, child, NULL, NULL));
	}
	CHECK_OK(kill(child, SIGKILL));
	CHECK_INT(waitpid(child, &status, 0), child);
	CHECK(WIFSIGNALED(status));
	CHECK_INT(WTERMSIG(status), SIGKILL);
	CHECK_INT(word, 0x1234);
	return NULL;
}

/* In a container it may be forbidden. */
static bool may_trace(void)
{
	const pid_t child = make_child();
	const bool may = ptrace(PTRACE_SEIZE, child, NULL, NULL) == 0;

	CHECK_OK(kill(child, SIGKILL));
	CHECK_INT(waitpid(child, NULL, 0), child);
	return may;
}

int main(void)
{
	pthread_t t[THREADS];

	if (!may_trace()) {
		puts("may not trace");
		return success();
	}
	for (int i = 0; i < THREADS; i++) {
		CHECK_OK(pipe(own_pipe[i]));
		t[i] = start(traces, own_pipe[i]);
	}
	for (int i = 0; i < THREADS; i++)
		finish(t[i]);
	return success();
}
