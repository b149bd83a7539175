/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/thread/thread_loader.c - threads load and unload a library whose constructor and
 * destructor make and join threads, beside others that make threads, make processes of all kinds,
 * unwind, and walk the list of modules; and the callback of such a walk makes threads, too.
 */
#include "check.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <spawn.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unwind.h>

enum { ROUNDS = 16, PAIRS = 2 };

static char module_path[PATH_MAX];
static __thread int value = 7;

static void *life(void *arg)
{
	CHECK_INT(value++, 7);
	sched_yield();
	return arg;
}

static pthread_t start_of_size(size_t size, void *(*fn)(void *))
{
	pthread_attr_t attr;
	pthread_t t;

	CHECK_OK(pthread_attr_init(&attr));
	CHECK_OK(pthread_attr_setstacksize(&attr, size));
	CHECK_OK(pthread_create(&t, &attr, fn, NULL));
	CHECK_OK(pthread_attr_destroy(&attr));
	return t;
}

static void *loads(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		void *module = dlopen(module_path, RTLD_NOW | RTLD_LOCAL);
		int (*made)(void);

		if (!module)
			fail(__FILE__, __LINE__, "%s\n", dlerror());
		made = (int (*)(void))dlsym(module, "module_made");
		CHECK(made && made() >= 3);
		CHECK_OK(dlclose(module));
	}
	return arg;
}

static void *creates(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		pthread_t t[4];

		for (size_t k = 0; k < COUNT(t); k++)
			t[k] = start_of_size((size_t)64 * 1024 << (k + (size_t)i % 3), life);
		for (size_t k = 0; k < COUNT(t); k++)
			CHECK(!finish(t[k]));
	}
	return arg;
}

static void await(pid_t pid)
{
	int status;

	CHECK(pid > 0);
	while (waitpid(pid, &status, 0) != pid)
		CHECK_INT(errno, EINTR);
	CHECK_INT(status, 0);
}

extern char **environ;

static void *makes_processes(void *arg)
{
	char *argv[] = { "true", NULL };
	pid_t pid;

	for (int i = 0; i < ROUNDS / 4; i++) {
		pid = fork();
		if (!pid)
			_exit(0);
		await(pid);
		pid = _Fork();
		if (!pid)
			_exit(0);
		await(pid);
		pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
		if (!pid)
			_exit(0);
		await(pid);
		pid = vfork();
		if (!pid)
			_exit(0);
		await(pid);
		CHECK_OK(posix_spawn(&pid, "/bin/true", NULL, NULL, argv, environ));
		await(pid);
	}
	return arg;
}

static _Unwind_Reason_Code count_frame(struct _Unwind_Context *context, void *arg)
{
	(void)context;
	++*(int *)arg;
	return _URC_NO_REASON;
}

static void *leaves_by_exit(void *arg)
{
	pthread_exit(arg);
}

static void *unwinds(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		int frames = 0;

		_Unwind_Backtrace(count_frame, &frames);
		CHECK(frames > 0);
		CHECK(!finish(start(leaves_by_exit, NULL)));
	}
	return arg;
}

static int sees(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)info;
	(void)size;
	sched_yield();
	++*(int *)arg;
	return 0;
}

/* A thread of a walk that makes one itself. */
static void *inner(void *arg)
{
	CHECK_INT(value++, 7);
	CHECK(!finish(start_of_size(96 * 1024, life)));
	CHECK(!finish(start(life, NULL)));
	return arg;
}

/* Whoever walks has the loader's lock, which no thread needs in order to begin or to end. */
static int makes_threads(struct dl_phdr_info *info, size_t size, void *arg)
{
	pthread_t t[2];

	(void)info;
	(void)size;
	t[0] = start(inner, NULL);
	t[1] = start_of_size(160 * 1024, inner);
	usleep(100);
	CHECK(!finish(t[0]));
	CHECK(!finish(t[1]));
	++*(int *)arg;
	return 1;
}

static void *walks(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		int seen = 0;

		CHECK_INT(dl_iterate_phdr(sees, &seen), 0);
		CHECK(seen > 1);
	}
	return arg;
}

static void *walks_and_creates(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		int seen = 0;

		CHECK_INT(dl_iterate_phdr(makes_threads, &seen), 1);
		CHECK_INT(seen, 1);
	}
	return arg;
}

static void together(void *(*const *kinds)(void *), size_t count)
{
	pthread_t t[16];

	for (size_t i = 0; i < PAIRS * count; i++)
		t[i] = start(kinds[i % count], NULL);
	for (size_t i = 0; i < PAIRS * count; i++)
		CHECK(!finish(t[i]));
}

int main(void)
{
	/* libc itself deadlocks if one thread unloads, and the callback of another makes a thread. */
	void *(*const calm[])(void *) = { creates, makes_processes, unwinds, walks, walks_and_creates };
	void *(*const changing[])(void *) = { creates, makes_processes, unwinds, walks, loads };
	ssize_t n = readlink("/proc/self/exe", module_path, sizeof(module_path) - 64);

	CHECK(n > 0);
	module_path[n] = 0;
	strcpy(strrchr(module_path, '/') + 1, "thread_module.so");
	for (size_t i = 0; i < COUNT(calm); i++)
		CHECK(!calm[i](NULL));
	CHECK(!loads(NULL));
	puts("one after the other");
	together(calm, COUNT(calm));
	puts("beside each other");
	together(changing, COUNT(changing));
	return success();
}
