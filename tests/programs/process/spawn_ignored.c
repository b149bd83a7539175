/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/process/spawn_ignored.c - the processes that libc makes ignore what this one ignores, also while one of
 * its threads waits for the signal; and so for each word of a shell that wordexp() runs.
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

static void words(const char *text, int flags, int want, size_t count)
{
	wordexp_t w;

	CHECK_INT(wordexp(text, &w, flags), want);
	if (want)
		return;
	CHECK_INT(w.we_wordc, count);
	if (strstr(text, "SigIgn"))
		for (size_t i = 0; i < count; i++)
			check_ignored(w.we_wordv[i]);
	wordfree(&w);
}

static void *makes(void *arg)
{
	char test[] = "test $((0x$(" SAY ") & 0x200)) -ne 0", line[64];
	char shell[] = "sh", option[] = "-c", *args[] = { shell, option, test, NULL };
	pid_t pid;
	int status;
	FILE *f;

	f = popen(SAY, "r");
	CHECK(f);
	CHECK(fgets(line, sizeof(line), f));
	CHECK_OK(pclose(f));
	check_ignored(line);
	CHECK_OK(system(test));
	CHECK_OK(posix_spawnp(&pid, shell, NULL, NULL, args, environ));
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK_INT(status, 0);
	words("$(" SAY ")", 0, 0, 1);
	words("`" SAY "` $(sleep 0.02; " SAY ")", 0, 0, 2);
	words("one $((1 + 1)) \"three and four\" /proc/self/stat[u]s", 0, 0, 4);
	words("$(exit 3)", 0, 0, 0);
	words("$(echo no)", WRDE_NOCMD, WRDE_CMDSUB, 0);
	words("two | three", 0, WRDE_BADCHAR, 0);
	words("$(not closed", 0, WRDE_SYNTAX, 0);
	return arg;
}

int main(void)
{
	pthread_t waiter, t[4];

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
	return success();
}
