/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/process/spawn_ignored.c - the processes that libc makes ignore what this one ignores, also while one of
 * its threads waits for the signal.  That thread gets the signal, also while a command of system() runs.
 */
#include "check.h"

#include <sched.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <wordexp.h>

#define SAY "sed -n 's/^SigIgn:.//p' /proc/self/status"
#define IGNORES "test $((0x$(" SAY ") & 0x200)) -ne 0"	/* SIGUSR1 */

extern char **environ;

static sigset_t set_of(int sig)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, sig);
	return set;
}

static void *waits(void *arg)
{
	const int signal = (int)(intptr_t)arg;
	const sigset_t set = set_of(signal);
	int sig;

	/* An ignored signal that no thread blocks is dropped: it may be sent only after this. */
	CHECK_OK(pthread_sigmask(SIG_BLOCK, &set, NULL));
	event_post(&will_sleep);
	/* Natively SIGCHLD, which system() blocks in its thread, may interrupt the wait. */
	do
		sig = sigtimedwait(&set, NULL, NULL);
	while (sig < 0 && errno == EINTR);
	CHECK_INT(sig, signal);
	return NULL;
}

static unsigned long long bit(int sig)
{
	return 1ull << (sig - 1);
}

/* What a command of popen ignores. */
static unsigned long long ignored(void)
{
	FILE *f = popen(SAY, "r");
	char line[64];

	CHECK(f);
	CHECK(fgets(line, sizeof(line), f));
	CHECK_OK(pclose(f));
	return strtoull(line, NULL, 16);
}

static void await_success(pid_t pid)
{
	int status;

	CHECK(pid > 0);
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK_INT(status, 0);
}

/* What the program wants of the child goes first. */
static void spawns(posix_spawnattr_t *attr, char *test)
{
	char shell[] = "sh", option[] = "-c", *args[] = { shell, option, test, NULL };
	pid_t pid;

	CHECK_OK(posix_spawnp(&pid, shell, NULL, attr, args, environ));
	await_success(pid);
}

static void spawns_with_default(void)
{
	char test[] = "test $((0x$(" SAY ") & 0x200)) -eq 0";
	const sigset_t set = set_of(SIGUSR1);
	posix_spawnattr_t attr;

	CHECK_OK(posix_spawnattr_init(&attr));
	CHECK_OK(posix_spawnattr_setsigdefault(&attr, &set));
	CHECK_OK(posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF));
	spawns(&attr, test);
	CHECK_OK(posix_spawnattr_destroy(&attr));
}

static void *makes(void *arg)
{
	char test[] = IGNORES;
	wordexp_t words;

	CHECK((ignored() & bit(SIGUSR1)) != 0);
	CHECK_OK(system(test));
	CHECK_OK(wordexp("$(" SAY ")", &words, 0));
	CHECK_INT(words.we_wordc, 1);
	CHECK((strtoull(words.we_wordv[0], NULL, 16) & bit(SIGUSR1)) != 0);
	wordfree(&words);
	spawns(NULL, test);
	spawns_with_default();
	return arg;
}

static int executes(void *test)
{
	execl("/bin/sh", "sh", "-c", (char *)test, (char *)NULL);
	_exit(127);
}

/* A child that borrows the memory until it executes. */
static void clones(void)
{
	static char stack[1 << 16] __attribute__((aligned(16)));
	char test[] = IGNORES;
	pid_t pid;

	await_success(clone(executes, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, test));
	pid = vfork();
	if (pid == 0)
		executes(test);
	await_success(pid);
}

static int resets(void *arg)
{
	CHECK(signal(SIGUSR2, SIG_DFL) != SIG_ERR);
	CHECK(signal(SIGTERM, SIG_IGN) != SIG_ERR);
	execl("/bin/true", "true", (char *)NULL);
	_exit(*(int *)arg);
}

static volatile sig_atomic_t handled;

static void count(int sig)
{
	(void)sig;
	handled = handled + 1;
}

/* Its actions are its own. */
static void clone_changes_nothing(void)
{
	static char stack[1 << 16] __attribute__((aligned(16)));
	int failed = 127;

	CHECK(signal(SIGUSR2, count) != SIG_ERR);
	CHECK(signal(SIGTERM, count) != SIG_ERR);
	await_success(clone(resets, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, &failed));
	CHECK_OK(raise(SIGUSR2));
	CHECK_OK(raise(SIGTERM));
	CHECK_INT(handled, 2);
	CHECK(signal(SIGUSR2, SIG_DFL) == count);
	CHECK(signal(SIGTERM, SIG_DFL) == count);
}

/* While system() runs, libc ignores SIGINT and SIGQUIT. */
static void system_leaves_no_trace(void)
{
	const unsigned long long before = ignored();

	CHECK_OK(system("true"));
	CHECK(ignored() == before);
}

static void handler(int sig)
{
	(void)sig;
}

static void handled_is_not_ignored(void)
{
	CHECK(signal(SIGUSR2, SIG_IGN) != SIG_ERR);
	CHECK((ignored() & bit(SIGUSR2)) != 0);
	CHECK(signal(SIGUSR2, handler) != SIG_ERR);
	CHECK((ignored() & bit(SIGUSR2)) == 0);
	CHECK(signal(SIGUSR2, SIG_DFL) != SIG_ERR);
}

/* libc itself looks whether this signal is ignored. */
static void system_sees_what_is_ignored(void)
{
	pthread_t waiter;

	CHECK(signal(SIGINT, SIG_IGN) != SIG_ERR);
	waiter = start_asleep(waits, (void *)(intptr_t)SIGINT);
	CHECK_OK(system("test $((0x$(" SAY ") & 2)) -ne 0"));
	CHECK_OK(pthread_kill(waiter, SIGINT));
	finish(waiter);
}

static atomic_bool ended;

static void *waits_on(void *arg)
{
	while (!atomic_load(&ended))
		waits((void *)(intptr_t)SIGUSR1);
	return arg;
}

/* The new processes ignore the signal from their birth on. */
static void signals_to_the_group(void)
{
	const pthread_t waiter = start_asleep(waits_on, NULL);
	char test[] = "true";
	pid_t sender;

	/* Who leads a session leads a group already. */
	if (getpgrp() != getpid())
		CHECK_OK(setpgid(0, 0));
	sender = fork();
	CHECK(sender >= 0);
	while (sender == 0) {
		kill(0, SIGUSR1);
		usleep(10);
	}
	for (int i = 0; i < 50; i++)
		spawns(NULL, test);
	CHECK_OK(kill(sender, SIGKILL));
	CHECK_INT(waitpid(sender, NULL, 0), sender);
	atomic_store(&ended, true);
	CHECK_OK(pthread_kill(waiter, SIGUSR1));
	finish(waiter);
}

/* A signal for the process is kept, although it is ignored, if main blocks it. */
static void kept_during_system(void)
{
	pthread_t waiter;

	mask_signal(SIG_BLOCK, SIGUSR1);
	waiter = start_asleep(waits, (void *)(intptr_t)SIGUSR1);
	CHECK_OK(system("kill -USR1 $PPID"));
	finish(waiter);
	mask_signal(SIG_UNBLOCK, SIGUSR1);
}

int main(void)
{
	pthread_t waiter, t[4];

	/* Without threads, and with. */
	clone_changes_nothing();
	handled = 0;
	CHECK(signal(SIGUSR1, SIG_IGN) != SIG_ERR);
	waiter = start_asleep(waits, (void *)(intptr_t)SIGUSR1);
	clone_changes_nothing();
	makes(NULL);
	for (int i = 0; i < 4; i++)
		t[i] = start(makes, NULL);
	for (int i = 0; i < 4; i++)
		finish(t[i]);
	clones();
	system_leaves_no_trace();
	handled_is_not_ignored();
	system_sees_what_is_ignored();
	CHECK_OK(pthread_kill(waiter, SIGUSR1));
	finish(waiter);
	kept_during_system();
	signals_to_the_group();
	return success();
}
