/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/process/wait_own_reused.c - __WNOTHREAD: the child of a thread that has ended is
 * the main thread's, also while another thread has the tid of its parent.
 */
#include "check.h"

enum { STATUS = 3, TRIES = 1000 };

static pid_t child;
static char stack[1 << 18] __attribute__((aligned(4096)));

static void *makes_child(void *arg)
{
	child = fork();
	CHECK(child >= 0);
	if (!child)
		_exit(STATUS);
	*(int *)arg = (int)syscall(SYS_gettid);
	return arg;
}

static void *ends(void *arg)
{
	return arg;
}

static pthread_barrier_t barrier;

static void *lives(void *arg)
{
	*(int *)arg = (int)syscall(SYS_gettid);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	return arg;
}

/* A stack of its own. */
static pthread_t start_on_stack(void *(*fn)(void *), void *arg)
{
	pthread_attr_t attr;
	pthread_t t;

	CHECK_OK(pthread_attr_init(&attr));
	CHECK_OK(pthread_attr_setstack(&attr, stack, sizeof(stack)));
	CHECK_OK(pthread_create(&t, &attr, fn, arg));
	CHECK_OK(pthread_attr_destroy(&attr));
	return t;
}

/* Let the kernel give this tid to the next thread. Only root can. */
static int ask_for(int tid)
{
	int fd = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);
	int asked = fd >= 0 && dprintf(fd, "%d", tid - 1) > 0;

	if (fd >= 0)
		close(fd);
	return asked;
}

int main(void)
{
	int tid, status, found, asked, last, tries = 0;
	pthread_t t;

	CHECK_OK(pthread_barrier_init(&barrier, NULL, 2));
	finish(start(ends, NULL));
	finish(start_on_stack(makes_child, &tid));
	/* Another process may be faster. */
	do {
		asked = ask_for(tid);
		t = start_on_stack(lives, &found);
		pthread_barrier_wait(&barrier);
		last = found == tid || !asked || ++tries == TRIES;
		if (last) {
			CHECK_INT(waitpid(child, &status, __WNOTHREAD), child);
			CHECK_INT(WEXITSTATUS(status), STATUS);
		}
		pthread_barrier_wait(&barrier);
		finish(t);
	} while (!last);
	return success();
}
