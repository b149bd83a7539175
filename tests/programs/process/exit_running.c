/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/process/exit_running.c - every way to end a process whose threads are busy.
 *
 * Runs itself once for each way, so that each is a whole process.
 */
#include "check.h"

#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>

extern char **environ;
static struct event ready = EVENT_INIT;
static int hold[2];
static pthread_mutex_t locked = PTHREAD_MUTEX_INITIALIZER;
static sig_atomic_t volatile never;
static int *volatile nowhere = (int *)8;

static void *reads(void *arg)
{
	char c;

	event_post(&ready);
	CHECK(read(hold[0], &c, 1) == 1);
	return arg;
}

static void *spins(void *arg)
{
	event_post(&ready);
	while (!never)
		;
	return arg;
}

static void *sleeps(void *arg)
{
	event_post(&ready);
	sleep(3600);
	return arg;
}

static void *locks(void *arg)
{
	event_post(&ready);
	pthread_mutex_lock(&locked);
	return arg;
}

static void *raw(void *arg)
{
	FILE *f = fdopen(dup(hold[0]), "r");

	event_post(&ready);
	fgetc(f);
	return arg;
}

static void *nothing(void *arg)
{
	return arg;
}

static void at_exit(void)
{
	/* Locks and threads still work here. */
	CHECK_INT(pthread_mutex_trylock(&locked), EBUSY);
	CHECK_OK(usleep(100));
	finish(start(nothing, NULL));
	puts("at exit");
}

static void *ends(void *arg)
{
	const char *way = arg;

	if (!strcmp(way, "thread-exit"))
		exit(12);
	if (!strcmp(way, "thread-_exit"))
		_exit(13);
	if (!strcmp(way, "thread-abort"))
		abort();
	if (!strcmp(way, "thread-segv"))
		*nowhere = 1;
	if (!strcmp(way, "thread-kill"))
		kill(getpid(), SIGTERM);
	for (;;)
		pause();
}

static int child(char *way)
{
	void *(*all[])(void *) = { reads, spins, sleeps, locks, raw };
	struct rlimit none = { 0, 0 };

	CHECK_OK(setrlimit(RLIMIT_CORE, &none));
	CHECK_OK(pipe(hold));
	CHECK_OK(atexit(at_exit));
	pthread_mutex_lock(&locked);
	for (size_t i = 0; i < COUNT(all); i++)
		start(all[i], NULL);
	event_wait(&ready, COUNT(all));
	settle();
	if (!strcmp(way, "return"))
		return 10;
	if (!strcmp(way, "exit"))
		exit(11);
	if (!strcmp(way, "quick_exit"))
		quick_exit(14);
	if (!strcmp(way, "abort"))
		abort();
	start(ends, way);
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	static const struct {
		char *way;
		int code, sig;
	} ways[] = {
		{ "return", 10, 0 }, { "exit", 11, 0 }, { "quick_exit", 14, 0 },
		{ "abort", 0, SIGABRT }, { "thread-exit", 12, 0 },
		{ "thread-_exit", 13, 0 }, { "thread-abort", 0, SIGABRT },
		{ "thread-segv", 0, SIGSEGV }, { "thread-kill", 0, SIGTERM },
	};

	if (argc > 1)
		return child(argv[1]);
	for (size_t i = 0; i < COUNT(ways); i++) {
		char *args[] = { "exit_running", ways[i].way, NULL };
		int status;
		pid_t pid;

		printf("%s\n", ways[i].way);
		fflush(stdout);
		CHECK_OK(posix_spawn(&pid, "/proc/self/exe", NULL, NULL, args,
				     environ));
		CHECK_INT(waitpid(pid, &status, 0), pid);
#ifndef __SANITIZE_THREAD__
		if (ways[i].sig) {
			CHECK(WIFSIGNALED(status));
			CHECK_INT(WTERMSIG(status), ways[i].sig);
		} else {
			CHECK(WIFEXITED(status));
			CHECK_INT(WEXITSTATUS(status), ways[i].code);
		}
#endif
	}
	return success();
}
