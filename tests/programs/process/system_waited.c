/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/process/system_waited.c - system() ignores SIGINT and SIGQUIT while its command runs: that is nothing to a
 * thread that begins to wait for them meanwhile, or waits already, and gets one at last when the command has ended.
 */
#include "check.h"

static int begins[2], ends[2];

/* The command says that it runs, and ends when the pipe does. */
static void *runs(void *arg)
{
	char command[128];

	snprintf(command, sizeof(command), "exec %d>&-; echo >&%d; read x <&%d; true", ends[1], begins[1], ends[0]);
	CHECK_OK(system(command));
	return arg;
}

static void *sends(void *arg)
{
	const int *sig = arg;
	const pthread_t t = start(runs, NULL);
	char c;

	CHECK_INT(read(begins[0], &c, 1), 1);
	/* main waits for the signal. */
	CHECK_INT(read(begins[0], &c, 1), 1);
	settle();
	CHECK_OK(close(ends[1]));
	finish(t);
	CHECK_OK(kill(getpid(), *sig));
	return arg;
}

static void waits_for(int sig)
{
	sigset_t set;
	pthread_t t;
	int got;

	CHECK_OK(pipe(begins));
	CHECK_OK(pipe(ends));
	sigemptyset(&set);
	sigaddset(&set, sig);
	CHECK_OK(pthread_sigmask(SIG_BLOCK, &set, NULL));
	t = start(sends, &sig);
	await_others();
	CHECK_INT(write(begins[1], "w", 1), 1);
	/* SIGCHLD may interrupt it. */
	do
		got = sigtimedwait(&set, NULL, NULL);
	while (got < 0 && errno == EINTR);
	CHECK_INT(got, sig);
	finish(t);
	CHECK_OK(close(begins[0]));
	CHECK_OK(close(begins[1]));
	CHECK_OK(close(ends[0]));
	printf("got %s\n", sigabbrev_np(sig));
}

/* One that comes while the command runs is not lost. */
static void *interrupts(void *arg)
{
	CHECK_OK(system("kill -INT $PPID"));
	return arg;
}

static void waits_before(void)
{
	sigset_t set;
	pthread_t t;
	int got;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	t = start(interrupts, NULL);
	do
		got = sigtimedwait(&set, NULL, NULL);
	while (got < 0 && errno == EINTR);
	CHECK_INT(got, SIGINT);
	finish(t);
	puts("while the command runs");
}

int main(void)
{
	waits_for(SIGINT);
	/* The thread has waited for it before. */
	waits_for(SIGINT);
	for (int i = 0; i < 10; i++)
		waits_before();
	CHECK(signal(SIGQUIT, SIG_IGN) == SIG_DFL);
	waits_for(SIGQUIT);
	return success();
}
