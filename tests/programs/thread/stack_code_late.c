/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/thread/stack_code_late.c - a library that needs executable stacks is loaded before
 * the first thread, or by a thread while there are others: it runs on the stacks of all threads.
 * Libcs from glibc 2.41 on refuse to load it.
 */
#include "check.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdbool.h>
#include <sys/wait.h>

enum { THREADS = 6 };

static int (*value)(int);
static struct event loaded = EVENT_INIT;

static void load(void)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 64);
	void *handle;

	CHECK(n > 0);
	path[n] = 0;
	strcpy(strrchr(path, '/') + 1, "stack_module.so");
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!handle) {
		puts("refused");
		fflush(stdout);
		_exit(0);
	}
	value = (int (*)(int))dlsym(handle, "module_value");
	CHECK(value);
}

static void *waits(void *arg)
{
	event_wait(&loaded, 1);
	CHECK_INT(value(3), 3);
	usleep(100);
	CHECK_INT(value(4), 4);
	return arg;
}

static void *loads(void *arg)
{
	load();
	CHECK_INT(value(5), 5);
	event_post(&loaded);
	return arg;
}

static void run(bool early)
{
	pthread_t threads[THREADS];

	if (early)
		load();
	/* Some have ended already, and are used again. */
	for (int k = 0; k < THREADS; k++)
		threads[k] = start((void *(*)(void *))getppid, NULL);
	for (int k = 0; k < THREADS; k++)
		finish(threads[k]);
	for (int k = 0; k < THREADS / 2; k++)
		threads[k] = start(waits, NULL);
	settle();
	if (early)
		event_post(&loaded);
	else
		finish(start(loads, NULL));
	for (int k = THREADS / 2; k < THREADS; k++)
		threads[k] = start(waits, NULL);
	waits(NULL);
	for (int k = 0; k < THREADS; k++)
		finish(threads[k]);
}

int main(void)
{
	for (int early = 0; early < 2; early++) {
		pid_t child = fork();
		int status;

		CHECK(child >= 0);
		if (!child) {
			run(early);
			puts(early ? "early" : "late");
			fflush(stdout);
			_exit(0);
		}
		CHECK_INT(waitpid(child, &status, 0), child);
		CHECK_INT(status, 0);
	}
	return success();
}
