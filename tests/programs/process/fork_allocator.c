/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/process/fork_allocator.c - the program's allocator has a lock, and holds it for
 * a while. A process is copied without fork() when no other thread allocates: the child can
 * allocate and make threads, however it was made.
 */
#include "check.h"

#include <sched.h>
#include <stdatomic.h>
#include <sys/wait.h>

enum { THREADS = 3, HOLD_US = 2000, CHILD_STACK = 256 * 1024 };

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void __libc_free(void *p);

static atomic_flag lock = ATOMIC_FLAG_INIT;
static int ends[2];

static void acquire(void)
{
	while (atomic_flag_test_and_set(&lock))
		usleep(100);
	usleep(HOLD_US);
}

void *malloc(size_t size)
{
	void *p;

	acquire();
	p = __libc_malloc(size);
	atomic_flag_clear(&lock);
	return p;
}

void *calloc(size_t count, size_t size)
{
	void *p;

	acquire();
	p = __libc_calloc(count, size);
	atomic_flag_clear(&lock);
	return p;
}

void free(void *p)
{
	if (!p)
		return;
	acquire();
	__libc_free(p);
	atomic_flag_clear(&lock);
}

/* Blocks in a system call of its own. */
static void *is_blocked(void *arg)
{
	char byte;

	CHECK_INT((int)read_raw(ends[0], &byte, 1), 1);
	return arg;
}

static void *nothing(void *arg)
{
	return arg;
}

static int child(void *arg)
{
	free(malloc(10));
	if (arg)
		finish(start(nothing, NULL));
	_exit(5);
}

static pid_t copy(int how, void *makes_thread)
{
	static char stack[CHILD_STACK] __attribute__((aligned(16)));
	struct {
		uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, size, tls;
	} args = { .exit_signal = SIGCHLD };

	switch (how % 4) {
	case 0:
		return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	case 1:
		return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	case 2:
		return clone(child, stack + sizeof(stack), SIGCHLD, makes_thread);
	default:
		return _Fork();
	}
}

static void copy_and_wait(int how, void *makes_thread)
{
	int status;
	pid_t pid = copy(how, makes_thread);

	CHECK(pid >= 0);
	if (pid == 0)
		child(makes_thread);
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK_INT(status, 5 << 8);
}

int main(void)
{
	pthread_t t[THREADS];

	CHECK_OK(pipe(ends));
	for (int round = 0; round < 16; round++) {
		for (int i = 0; i < THREADS; i++)
			t[i] = start(is_blocked, NULL);
		usleep((useconds_t)round * 500);
		copy_and_wait(round, &ends);
		CHECK_INT((int)write(ends[1], "xxx", THREADS), THREADS);
		for (int i = 0; i < THREADS; i++)
			finish(t[i]);
	}
	/* What the threads have needed is given back within some seconds. */
	for (int i = 0; i < 300; i++) {
		usleep(1000);
		copy_and_wait(i, NULL);
	}
	return success();
}
