/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/base.h"
#include "runtime/base/die.h"

/* Standard error to a pipe, for as long as what is said fits into it. */
static int divert(int *saved)
{
	int ends[2];

	cr_assert_eq(pipe(ends), 0);
	*saved = dup(2);
	dup2(ends[1], 2);
	close(ends[1]);
	return ends[0];
}

static void restore(int saved)
{
	dup2(saved, 2);
	close(saved);
}

static const char *collect(int fd)
{
	static char text[8192];
	ssize_t n = 0, got;

	while ((got = read(fd, text + n, sizeof(text) - 1 - (size_t)n)) > 0)
		n += got;
	text[n] = 0;
	close(fd);
	return text;
}

#define SAID(...)							\
	({								\
		int saved_, fd_ = divert(&saved_);			\
		fz_say(__VA_ARGS__);					\
		restore(saved_);					\
		collect(fd_);						\
	})

Test(die, formats)
{
	char expected[512];

	cr_assert_str_eq(SAID("plain"), "fiberize: plain\n");
	cr_assert_str_eq(SAID("100%%"), "fiberize: 100%\n");
	cr_assert_str_eq(SAID("[%s] [%s]", "a b", ""), "fiberize: [a b] []\n");
	snprintf(expected, sizeof(expected), "fiberize: %d %d %d %d %u %x %x\n", 0, -1, INT_MAX,
		 INT_MIN, UINT_MAX, 0xdeadbeefu, 0u);
	cr_assert_str_eq(SAID("%d %d %d %d %u %x %x", 0, -1, INT_MAX, INT_MIN, UINT_MAX,
			      0xdeadbeefu, 0u),
			 expected);
	snprintf(expected, sizeof(expected), "fiberize: %ld %ld %lu %lx!\n", LONG_MAX, LONG_MIN,
		 ULONG_MAX, ULONG_MAX);
	cr_assert_str_eq(SAID("%ld %ld %lu %lx!", LONG_MAX, LONG_MIN, ULONG_MAX, ULONG_MAX),
			 expected);
}

Test(die, null_string_is_named)
{
	const char *volatile nothing = NULL;

	cr_assert_str_eq(SAID("%s", nothing), "fiberize: (null)\n");
}

Test(die, long_line_is_cut_and_ends)
{
	char text[2000];
	const char *said;

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	said = SAID("%s", text);
	cr_assert_leq(strlen(said), 512);
	cr_assert_geq(strlen(said), 500);
	cr_assert_eq(said[strlen(said) - 1], '\n');
	cr_assert_eq(strchr(said, '\n'), said + strlen(said) - 1);
}

static void end_child(void (*fn)(void), const char *message)
{
	int saved, fd = divert(&saved), status;
	pid_t child = fork();
	const char *said;

	if (child == 0) {
		fn();
		_exit(0);
	}
	restore(saved);
	said = collect(fd);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFSIGNALED(status), "status %x", status);
	cr_assert_eq(WTERMSIG(status), SIGABRT);
	cr_assert_not_null(strstr(said, message), "it said: %s", said);
}

static void die_plainly(void)
{
	signal(SIGABRT, SIG_DFL);
	fz_die("error %d in %s", 5, "here");
}

static void assert_falsehood(void)
{
	volatile int one = 1;

	signal(SIGABRT, SIG_DFL);
	FZ_ASSERT(one == 1);
	FZ_ASSERT(one == 2);
}

Test(die, aborts_with_a_message)
{
	end_child(die_plainly, "fiberize: error 5 in here\n");
}

Test(die, assertion_names_itself)
{
	end_child(assert_falsehood, "assertion failed: one == 2\n");
}

static void die_with_abort_blocked(void)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	fz_die("over");
}

Test(die, blocked_abort_does_not_keep_it_alive)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		close(2);
		die_with_abort_blocked();
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status));
	cr_assert_eq(WEXITSTATUS(status), 128 + SIGABRT);
}
