/* SPDX-License-Identifier: MIT */
/*
 * tests/plain/plain.c - main() for tests without Criterion.
 *
 *	test [--skip NAME]...
 *
 * Prints a line PASS, FAIL or SKIP for each test (tests/lib/judge.inc); exits with 0 if
 * none failed.  It does not share Criterion's -j: one child at a time.
 */
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/plain/harness.h"

static struct plain_test *tests;
static _Atomic int failures;

void plain_register(struct plain_test *t)
{
	t->next = tests;
	tests = t;
}

void plain_failed(const char *file, int line, const char *cond,
		  const char *fmt, ...)
{
	va_list ap;

	failures++;
	fprintf(stderr, "%s:%d: %s: ", file, line, cond);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

void plain_abort(void)
{
	_exit(1);
}

static bool skipped(const char *name, char **words)
{
	for (; *words; words++)
		if (strcmp(*words, name) == 0)
			return true;
	return false;
}

int main(int argc, char **argv)
{
	int passed = 0, failed = 0;

	for (struct plain_test *t = tests; t; t = t->next) {
		int status = -1;
		pid_t pid;

		if (argc > 1 && skipped(t->name, argv + 1))
			continue;
		/* What is buffered would be printed by the child, too. */
		fflush(NULL);
		pid = fork();
		if (pid == 0) {
			t->fn();
			_exit(failures ? 1 : 0);
		}
		if (pid < 0 || waitpid(pid, &status, 0) != pid ||
		    (status && status != 77 << 8)) {
			printf("FAIL %s: wait status %#x\n", t->name, (unsigned)status);
			failed++;
		} else {
			printf("%s %s\n", status ? "SKIP" : "PASS", t->name);
			passed++;
		}
	}
	return failed || !passed;
}
