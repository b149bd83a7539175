/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/signal/system_signals.c - system() blocks SIGCHLD for the calling thread only,
 * and unblocks it afterwards, even if system() is cancelled.
 */
#include "check.h"

#include <sys/wait.h>

enum { THREADS = 4, ROUNDS = 5 };

static struct event begun = EVENT_INIT;
static _Atomic int children, others;

/* One that took the command of system() would make it fail. */
static void reap(int sig)
{
	int err = errno;

	(void)sig;
	children++;
	while (waitpid(-1, NULL, WNOHANG) > 0)
		continue;
	errno = err;
}

static void count(int sig)
{
	(void)sig;
	others++;
}

static void check_mask(int chld)
{
	sigset_t set;

	CHECK_OK(pthread_sigmask(SIG_SETMASK, NULL, &set));
	CHECK_INT(sigismember(&set, SIGCHLD), chld);
	CHECK_INT(sigismember(&set, SIGUSR1), 0);
}

static void *blocks(void *arg)
{
	mask_signal(SIG_BLOCK, SIGCHLD);
	CHECK_INT(system("exit 3"), 3 << 8);
	check_mask(1);
	return arg;
}

static void *lets_in(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_INT(system("exit 3"), 3 << 8);
		check_mask(0);
	}
	return arg;
}

static void *is_cancelled(void *arg)
{
	event_post(&begun);
	system("exec sleep 3600");
	return arg;
}

static void cancel(void)
{
	pthread_t t;

	begun.count = 0;
	t = start(is_cancelled, NULL);
	event_wait(&begun, 1);
	settle();
	CHECK_OK(pthread_cancel(t));
	CHECK(finish(t) == PTHREAD_CANCELED);
	check_mask(0);
	finish(start(lets_in, NULL));
}

/* A child that ends is heard of by a thread that does not block it, at once. */
static void *hears(void *arg)
{
	int before = children;
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	while (children == before)
		settle();
	return arg;
}

int main(void)
{
	struct sigaction chld = { .sa_handler = reap }, usr1 = { .sa_handler = count };
	pthread_t t[THREADS];

	CHECK_OK(sigaction(SIGUSR1, &usr1, NULL));
	for (int i = 0; i < THREADS; i++)
		t[i] = start(i % 2 ? lets_in : blocks, NULL);
	for (int i = 0; i < THREADS; i++)
		finish(t[i]);
	puts("masks");
	for (int i = 0; i < ROUNDS; i++)
		cancel();
	puts("cancelled");
	/* Nobody else who could take the signal: it waits until system() is over. */
	CHECK_OK(sigaction(SIGCHLD, &chld, NULL));
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_INT(system("kill -USR1 $PPID; exit 3"), 3 << 8);
		CHECK_INT(others, i + 1);
	}
	CHECK(children > 0);
	finish(start(hears, NULL));
	puts("handlers");
	return success();
}
