/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/thread/exit_main_native.c - main leaves first, and it or the threads that
 * it leaves are known to the kernel: the process ends with the last of them.
 */
#include "check.h"

#include <sys/wait.h>

static pthread_mutex_t robust, others[3];
static pthread_t main_thread;

/* In each process once, from the last thread, or from main if there is no other. */
static void at_exit(void)
{
	puts("exit");
	fflush(stdout);
}

static _Atomic int said;

static void *last(void *arg)
{
	/* main is long gone. */
	usleep(20000);
	puts("last thread");
	said = 1;
	return arg;
}

static void *even_later(void *arg)
{
	usleep(80000);
	puts("last of all");
	return arg;
}

static void *after_the_last(void *arg)
{
	while (!said)
		usleep(1000);
	return even_later(arg);
}

static void lock_new(pthread_mutex_t *m, int protocol, int shared)
{
	pthread_mutexattr_t attr;

	CHECK_OK(pthread_mutexattr_init(&attr));
	CHECK_OK(pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST));
	CHECK_OK(pthread_mutexattr_setprotocol(&attr, protocol));
	CHECK_OK(pthread_mutexattr_setpshared(&attr, shared));
	CHECK_OK(pthread_mutex_init(m, &attr));
	CHECK_OK(pthread_mutex_lock(m));
}

/* The kernel must know who owns a robust mutex. */
static void lock_robust(void)
{
	lock_new(&robust, PTHREAD_PRIO_NONE, PTHREAD_PROCESS_PRIVATE);
	CHECK_OK(pthread_mutex_unlock(&robust));
}

static void affine(void)
{
	start_affine(last, NULL);
}

static void affine_of_two(void)
{
	start_affine(last, NULL);
	finish(start(last, NULL));
}

/* It was there before any other thread, and is there after all. */
static void affine_first(void)
{
	start_affine(after_the_last, NULL);
	finish(start(last, NULL));
}

static void *forks(void *arg)
{
	int status;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		/* Like main's end: the process goes on. */
		start(even_later, NULL);
		return arg;
	}
	CHECK_INT(waitpid(pid, &status, 0), pid);
	printf("its child: status %#x\n", status);
	return arg;
}

static void affine_forks(void)
{
	finish(start_affine(forks, NULL));
	fflush(stdout);
}

static void fiber_forks(void)
{
	finish(start(forks, NULL));
	fflush(stdout);
}

static void robust_main(void)
{
	start(last, NULL);
	lock_robust();
}

static void robust_main_alone(void)
{
	finish(start(last, NULL));
	lock_robust();
}

static void inherit(pthread_mutex_t *m)
{
	CHECK_INT(pthread_mutex_lock(m), EOWNERDEAD);
	CHECK_OK(pthread_mutex_consistent(m));
	CHECK_OK(pthread_mutex_unlock(m));
	CHECK_OK(pthread_mutex_lock(m));
	CHECK_OK(pthread_mutex_unlock(m));
}

static void *heir(void *arg)
{
	/* main waits until this one waits for the first of them. */
	inherit(&robust);
	CHECK_OK(pthread_join(main_thread, NULL));
	for (size_t i = 0; i < COUNT(others); i++)
		inherit(&others[i]);
	puts("inherited");
	return arg;
}

/* They are locked to the end. */
static void robust_main_holds(void)
{
	main_thread = pthread_self();
	lock_new(&others[0], PTHREAD_PRIO_NONE, PTHREAD_PROCESS_PRIVATE);
	lock_new(&robust, PTHREAD_PRIO_NONE, PTHREAD_PROCESS_PRIVATE);
	lock_new(&others[1], PTHREAD_PRIO_INHERIT, PTHREAD_PROCESS_PRIVATE);
	lock_new(&others[2], PTHREAD_PRIO_NONE, PTHREAD_PROCESS_SHARED);
	start(heir, NULL);
	await_others();
}

/* There are fibers before the kernel must know main. */
static void robust_main_holds_late(void)
{
	finish(start(last, NULL));
	robust_main_holds();
}

static void cancelled(void)
{
	start_affine(last, NULL);
	CHECK_OK(pthread_cancel(pthread_self()));
	pthread_testcancel();
}

static void alone(void)
{
}

static void in_child(void (*scene)(void), const char *name)
{
	pid_t child;
	int status;

	printf("%s:\n", name);
	fflush(stdout);
	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		CHECK_OK(atexit(at_exit));
		scene();
		pthread_exit((void *)5);
	}
	CHECK_INT(waitpid(child, &status, 0), child);
	printf("status %#x\n", status);
}

#define SCENE(name) in_child(name, #name)

static void *all(void *arg)
{
	SCENE(alone);
	SCENE(affine);
	SCENE(affine_of_two);
	SCENE(affine_first);
	SCENE(affine_forks);
	SCENE(fiber_forks);
	SCENE(robust_main);
	SCENE(robust_main_alone);
	SCENE(robust_main_holds);
	SCENE(robust_main_holds_late);
	SCENE(cancelled);
	return arg;
}

int main(void)
{
	/* The children's main thread is the one that forks. */
	all(NULL);
	finish(start(all, NULL));
	return success();
}
