/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/process/spawn_ignored.c - the processes that libc makes ignore what this one ignores, also while one of
 * its threads waits for the signal.  That thread gets the signal, also while a command of system() runs.
 */
#include "check.h"

#include <spawn.h>
#include <wordexp.h>

#define SAY "sed -n 's/^SigIgn:.//p' /proc/self/status"

extern char **environ;

static void *waits(void *arg)
{
	sigset_t set;
	int sig;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	CHECK_OK(pthread_sigmask(SIG_BLOCK, &set, NULL));
	/* Natively SIGCHLD, which system() blocks in its thread, may interrupt the wait. */
	do
		sig = sigtimedwait(&set, NULL, NULL);
	while (sig < 0 && errno == EINTR);
	CHECK_INT(sig, SIGUSR1);
	return arg;
}

static void check_ignored(const char *hexadecimal)
{
	CHECK((strtoull(hexadecimal, NULL, 16) & 1ull << (SIGUSR1 - 1)) != 0);
}

/* What the program wants of the child goes first. */
static void spawns(posix_spawnattr_t *attr, char *test)
{
	char shell[] = "sh", option[] = "-c", *args[] = { shell, option, test, NULL };
	pid_t pid;
	int status;

	CHECK_OK(posix_spawnp(&pid, shell, NULL, attr, args, environ));
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK_INT(status, 0);
}

static void spawns_with_default(void)
{
	char test[] = "test $((0x$(" SAY ") & 0x200)) -eq 0";
	posix_spawnattr_t attr;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	CHECK_OK(posix_spawnattr_init(&attr));
	CHECK_OK(posix_spawnattr_setsigdefault(&attr, &set));
	CHECK_OK(posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF));
	spawns(&attr, test);
	CHECK_OK(posix_spawnattr_destroy(&attr));
}

static void *makes(void *arg)
{
	char test[] = "test $((0x$(" SAY ") & 0x200)) -ne 0", line[64];
	wordexp_t words;
	FILE *f;

	f = popen(SAY, "r");
	CHECK(f);
	CHECK(fgets(line, sizeof(line), f));
	CHECK_OK(pclose(f));
	check_ignored(line);
	CHECK_OK(system(test));
	CHECK_OK(wordexp("$(" SAY ")", &words, 0));
	CHECK_INT(words.we_wordc, 1);
	check_ignored(words.we_wordv[0]);
	wordfree(&words);
	spawns(NULL, test);
	spawns_with_default();
	return arg;
}

int main(void)
{
	pthread_t waiter, t[4];
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	CHECK(signal(SIGUSR1, SIG_IGN) != SIG_ERR);
	waiter = start(waits, NULL);
	await_others();
	makes(NULL);
	for (int i = 0; i < 4; i++)
		t[i] = start(makes, NULL);
	for (int i = 0; i < 4; i++)
		finish(t[i]);
	CHECK_OK(pthread_kill(waiter, SIGUSR1));
	finish(waiter);
	/* A signal for the process is kept, although it is ignored, if main blocks it. */
	CHECK_OK(pthread_sigmask(SIG_BLOCK, &set, NULL));
	waiter = start(waits, NULL);
	await_others();
	CHECK_OK(system("kill -USR1 $PPID"));
	finish(waiter);
	return success();
}
