/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/signal/signal_wait_actions.c - what the program's actions mean for signals that all its threads block, and
 * one of them waits for: SIGCHLD ignored, actions that change meanwhile, and none of many ignored signals is lost.
 */
#include "check.h"

enum { MANY = 300 };

static sigset_t set_of(int sig)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, sig);
	return set;
}

/* Takes signals until SIGTERM. */
static void *takes(void *arg)
{
	sigset_t all;
	int sig;

	sigfillset(&all);
	event_post(&will_sleep);
	do {
		CHECK_OK(sigwait(&all, &sig));
		printf("taken: %s\n", sigabbrev_np(sig));
	} while (sig != SIGTERM);
	return arg;
}

static void make_child(void)
{
	const pid_t pid = fork();

	CHECK(pid >= 0);
	if (!pid)
		_exit(0);
}

/* Its children are nobody's zombies, and no signal tells of them. */
static void ignored_children(void)
{
	pthread_t t;

	CHECK(signal(SIGCHLD, SIG_IGN) != SIG_ERR);
	t = start_asleep(takes, NULL);
	make_child();
	CHECK_ERR(waitpid(-1, NULL, 0), ECHILD);
	CHECK(signal(SIGCHLD, SIG_IGN) != SIG_ERR);
	make_child();
	CHECK_ERR(waitpid(-1, NULL, 0), ECHILD);
	CHECK_OK(kill(getpid(), SIGTERM));
	finish(t);
	CHECK(signal(SIGCHLD, SIG_DFL) == SIG_IGN);
	make_child();
	CHECK(waitpid(-1, NULL, 0) > 0);
	puts("ignored children");
}

static void never(int sig)
{
	printf("handled: %d\n", sig);
}

/* A handler comes and goes while the thread waits. */
static void handler_between(void)
{
	const sigset_t set = set_of(SIGCHLD);
	const struct timespec none = { 0, 0 };
	pthread_t t;

	while (sigtimedwait(&set, NULL, &none) > 0)
		continue;
	t = start_asleep(takes, NULL);
	CHECK(signal(SIGUSR1, never) == SIG_DFL);
	CHECK(signal(SIGUSR1, SIG_DFL) == never);
	CHECK_OK(kill(getpid(), SIGUSR1));
	CHECK_OK(kill(getpid(), SIGTERM));
	finish(t);
	puts("a handler in between");
}

/* Another process sends them as fast as it can. */
static void sends(pid_t to)
{
	for (int i = 0; i < MANY; i++) {
		const union sigval v = { .sival_int = i };

		while (sigqueue(to, SIGRTMIN, v) < 0) {
			CHECK_INT(errno, EAGAIN);
			sched_yield();
		}
	}
	_exit(0);
}

static void *takes_all(void *arg)
{
	const sigset_t set = set_of(SIGRTMIN);
	siginfo_t info;

	event_post(&will_sleep);
	for (int i = 0; i < MANY; i++) {
		CHECK_INT(sigwaitinfo(&set, &info), SIGRTMIN);
		CHECK_INT(info.si_value.sival_int, i);
	}
	return arg;
}

static void many_ignored(void)
{
	const pid_t self = getpid();
	pthread_t t;
	pid_t pid;

	CHECK(signal(SIGRTMIN, SIG_IGN) != SIG_ERR);
	t = start_asleep(takes_all, NULL);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid)
		sends(self);
	CHECK_INT(waitpid(pid, NULL, 0), pid);
	finish(t);
	puts("many ignored signals");
}

int main(void)
{
	sigset_t all;

	sigfillset(&all);
	CHECK_OK(pthread_sigmask(SIG_BLOCK, &all, NULL));
	ignored_children();
	handler_between();
	many_ignored();
	return success();
}
