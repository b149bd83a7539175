/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/process/fork_atfork.c - atfork handlers run in order, once each; they take the
 * program's locks, of all kinds, while other threads use these locks. Forks by the main thread,
 * by another thread, by a thread with an affinity, and by several threads at a time.
 */
#include "check.h"

#include <sys/wait.h>

enum { WORKERS = 4, FORKS = 10 };

static pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_mutex_t adaptive = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
static pthread_rwlock_t shelf = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;

/* What the locks guard: each pair is equal while its lock is free. */
static struct { int a, b; } pairs[4];

/* The handlers of one fork, in the order in which they ran; plain guards it. */
static char trace[32];
static volatile int stop;

static void note(char c)
{
	size_t n = strlen(trace);

	CHECK(n + 1 < sizeof(trace));
	trace[n] = c;
	trace[n + 1] = '\0';
}

/* Registered first, so prepared last: the locks are taken outermost first. */
static void prepare_1(void)
{
	CHECK_OK(pthread_mutex_lock(&adaptive));
	CHECK_OK(pthread_spin_lock(&spin));
	note('1');
}

static void parent_1(void)
{
	note('a');
	CHECK_OK(pthread_spin_unlock(&spin));
	CHECK_OK(pthread_mutex_unlock(&adaptive));
}

static void child_1(void)
{
	note('A');
	CHECK_OK(pthread_spin_unlock(&spin));
	CHECK_OK(pthread_mutex_unlock(&adaptive));
}

static void prepare_2(void)
{
	CHECK_OK(pthread_rwlock_rdlock(&shelf));
	CHECK_OK(pthread_mutex_lock(&recursive));
	CHECK_OK(pthread_mutex_lock(&recursive));
	CHECK_INT(usleep(200), 0);
	note('2');
}

static void parent_2(void)
{
	note('b');
	CHECK_OK(pthread_mutex_unlock(&recursive));
	CHECK_OK(pthread_mutex_unlock(&recursive));
	CHECK_OK(pthread_rwlock_unlock(&shelf));
}

/* What knows its owner, or of waiters, who are not here, is made anew, as usual. */
static void child_2(void)
{
	pthread_mutexattr_t attr;

	note('B');
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
	CHECK_OK(pthread_mutex_init(&recursive, &attr));
	CHECK_OK(pthread_rwlock_init(&shelf, NULL));
}

static void prepare_3(void)
{
	CHECK_OK(pthread_mutex_lock(&plain));
	trace[0] = '\0';
	note('3');
}

static void parent_3(void)
{
	note('c');
	CHECK_OK(strcmp(trace, "321abc"));
	CHECK_OK(pthread_mutex_unlock(&plain));
}

static void child_3(void)
{
	note('C');
	CHECK_OK(strcmp(trace, "321ABC"));
	CHECK_OK(pthread_mutex_unlock(&plain));
}

static void change(int i)
{
	CHECK_INT(pairs[i].a, pairs[i].b);
	pairs[i].a++;
	if (pairs[i].a % 32 == 0 && i != 3)
		usleep(50);
	pairs[i].b++;
}

static void change_all(void)
{
	CHECK_OK(pthread_mutex_lock(&plain));
	change(0);
	CHECK_OK(pthread_mutex_unlock(&plain));
	CHECK_OK(pthread_rwlock_wrlock(&shelf));
	change(1);
	CHECK_OK(pthread_rwlock_unlock(&shelf));
	CHECK_OK(pthread_mutex_lock(&recursive));
	CHECK_OK(pthread_mutex_lock(&recursive));
	change(2);
	CHECK_OK(pthread_mutex_unlock(&recursive));
	CHECK_OK(pthread_mutex_unlock(&recursive));
	CHECK_OK(pthread_mutex_lock(&adaptive));
	CHECK_OK(pthread_spin_lock(&spin));
	change(3);
	CHECK_OK(pthread_spin_unlock(&spin));
	CHECK_OK(pthread_mutex_unlock(&adaptive));
}

static void *works(void *arg)
{
	while (!stop) {
		change_all();
		usleep(20);
	}
	return arg;
}

static void *works_once(void *arg)
{
	for (int i = 0; i < 20; i++)
		change_all();
	return arg;
}

static int child(void)
{
	pthread_t t[3];

	/* All locks are free, what they guard is whole, and threads can have them. */
	for (int i = 0; i < 4; i++)
		CHECK_INT(pairs[i].a, pairs[i].b);
	change_all();
	for (size_t i = 0; i < COUNT(t); i++)
		t[i] = start(works_once, NULL);
	for (size_t i = 0; i < COUNT(t); i++)
		finish(t[i]);
	return 23;
}

static void *forks(void *arg)
{
	for (int i = 0; i < FORKS; i++) {
		int status;
		pid_t pid = fork();

		CHECK(pid >= 0);
		if (pid == 0)
			_exit(child());
		while (waitpid(pid, &status, 0) != pid)
			CHECK_INT(errno, EINTR);
		CHECK_INT(status, 23 << 8);
	}
	return arg;
}

int main(void)
{
	pthread_t workers[WORKERS], forkers[3];

	CHECK_OK(pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE));
	CHECK_OK(pthread_atfork(prepare_1, parent_1, child_1));
	CHECK_OK(pthread_atfork(prepare_2, parent_2, child_2));
	CHECK_OK(pthread_atfork(NULL, NULL, NULL));
	CHECK_OK(pthread_atfork(prepare_3, parent_3, child_3));
	forks(NULL);
	puts("alone");
	for (int i = 0; i < WORKERS; i++)
		workers[i] = start_as(i == 0, works, NULL);
	forks(NULL);
	puts("main");
	finish(start(forks, NULL));
	puts("a thread");
	finish(start_affine(forks, NULL));
	puts("a thread with an affinity");
	for (int i = 0; i < 3; i++)
		forkers[i] = start_as(i == 0, forks, NULL);
	for (int i = 0; i < 3; i++)
		finish(forkers[i]);
	puts("several");
	stop = 1;
	for (int i = 0; i < WORKERS; i++)
		finish(workers[i]);
	return success();
}
