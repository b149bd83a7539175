/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/signal/signal_once.c - a handler with SA_RESETHAND runs for the first signal, wherever the threads are at
 * that moment, and the second one takes the default action.
 */
#include "check.h"

static struct event over = EVENT_INIT;
static int said[2];

static void say(int sig)
{
	struct sigaction now;

	CHECK_OK(sigaction(sig, NULL, &now));
	CHECK(now.sa_handler == SIG_DFL);
	CHECK_INT(now.sa_flags & (int)(SA_RESETHAND | SA_SIGINFO), (int)SA_RESETHAND);
	CHECK_INT(write(said[1], "h", 1), 1);
}

static void *parks(void *arg)
{
	event_wait(&over, 1);
	return arg;
}

static void *counts(void *arg)
{
	volatile unsigned long n = 0;

	for (;;)
		n++;
	return arg;
}

/* main: what it does meanwhile. */
static _Noreturn void be_signalled(void *(*other)(void *), void (*meanwhile)(void))
{
	struct sigaction sa = { .sa_handler = say, .sa_flags = SA_RESETHAND };

	CHECK_OK(sigaction(SIGTERM, &sa, NULL));
	CHECK_OK(sigaction(SIGWINCH, &sa, NULL));
	start(other, NULL);
	CHECK_INT(write(said[1], "r", 1), 1);
	for (;;)
		meanwhile();
}

static void pauses(void)
{
	pause();
}

static void computes(void)
{
	counts(NULL);
}

static void expect(char want)
{
	char c;

	CHECK_INT(read(said[0], &c, 1), 1);
	CHECK_INT(c, want);
}

static void send_twice(const char *name, void *(*other)(void *), void (*meanwhile)(void))
{
	pid_t pid;
	int status;

	CHECK_OK(pipe(said));
	pid = fork();
	CHECK(pid >= 0);
	if (!pid)
		be_signalled(other, meanwhile);
	CHECK_OK(close(said[1]));
	expect('r');
	settle();
	/* The second of these does nothing. */
	CHECK_OK(kill(pid, SIGWINCH));
	expect('h');
	CHECK_OK(kill(pid, SIGWINCH));
	CHECK_OK(kill(pid, SIGTERM));
	expect('h');
	CHECK_OK(kill(pid, SIGTERM));
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK(WIFSIGNALED(status));
	CHECK_INT(WTERMSIG(status), SIGTERM);
	CHECK_OK(close(said[0]));
	puts(name);
}

int main(void)
{
	for (int i = 0; i < 3; i++) {
		send_twice("main waits, a thread waits", parks, pauses);
		send_twice("main waits, a thread computes", counts, pauses);
		send_twice("main computes, a thread waits", parks, computes);
	}
	return success();
}
