/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/process/fork_vfork.c - vfork and exec by hand, clone with a stack of its own,
 * from threads, while others run; the parent waits until the child executes.
 */
#include "check.h"

#include <sys/mman.h>
#include <sys/wait.h>

enum { THREADS = 6, ROUNDS = 15 };

static volatile int stop;

static void *busy(void *arg)
{
	int p[2];
	char c;

	CHECK_OK(pipe(p));
	while (!stop) {
		CHECK_INT(write(p[1], "x", 1), 1);
		CHECK_INT(read(p[0], &c, 1), 1);
		usleep(300);
	}
	return arg;
}

static int status_of(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) != pid)
		CHECK_INT(errno, EINTR);
	return status;
}

static void by_vfork(int code)
{
	const struct timespec while_waiting = { 0, 3 * MS };
	char text[16];
	char *argv[] = { "sh", "-c", text, NULL };
	long long before = now(CLOCK_MONOTONIC);
	pid_t pid;

	snprintf(text, sizeof(text), "exit %d", code);
	pid = vfork();
	CHECK(pid >= 0);
	if (pid == 0) {
		signal(SIGPIPE, SIG_DFL);
		nanosleep(&while_waiting, NULL);
		execv("/bin/sh", argv);
		_exit(99);
	}
	/* Not before the child has executed. */
	CHECK(now(CLOCK_MONOTONIC) - before >= 3 * MS);
	CHECK_INT(status_of(pid), code << 8);
}

static void fails_to_execute(void)
{
	char *argv[] = { "nothing", NULL };
	pid_t pid = vfork();

	if (pid == 0) {
		execv("/no/such/program", argv);
		_exit(errno == ENOENT ? 44 : 45);
	}
	CHECK_INT(status_of(pid), 44 << 8);
}

static int cloned(void *arg)
{
	pthread_t t;
	int n = *(int *)arg;

	/* A process like any other: it may have threads. */
	stop = 0;
	if (pthread_create(&t, NULL, busy, NULL))
		return 1;
	usleep(1000);
	stop = 1;
	pthread_join(t, NULL);
	return n;
}

static int executes(void *arg)
{
	char *argv[] = { "sh", "-c", "exit 7", NULL };

	(void)arg;
	execv("/bin/sh", argv);
	return 98;
}

static void by_clone(void)
{
	enum { SIZE = 256 * 1024 };
	char *stack = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	int n = 33;
	pid_t pid;

	CHECK(stack != MAP_FAILED);
	pid = clone(cloned, stack + SIZE, SIGCHLD, &n);
	CHECK(pid > 0);
	CHECK_INT(status_of(pid), 33 << 8);
	pid = clone(executes, stack + SIZE, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL);
	CHECK(pid > 0);
	CHECK_INT(status_of(pid), 7 << 8);
	CHECK_OK(munmap(stack, SIZE));
}

static void *makes_children(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		by_vfork(i + 1);
		fails_to_execute();
		by_clone();
	}
	return arg;
}

int main(void)
{
	pthread_t t[THREADS], creators[3];

	makes_children(NULL);
	puts("alone");
	for (int i = 0; i < THREADS; i++)
		t[i] = start(busy, NULL);
	makes_children(NULL);
	puts("by the main thread");
	for (int i = 0; i < 3; i++)
		creators[i] = start(makes_children, NULL);
	for (int i = 0; i < 3; i++)
		finish(creators[i]);
	stop = 1;
	for (int i = 0; i < THREADS; i++)
		finish(t[i]);
	return success();
}
