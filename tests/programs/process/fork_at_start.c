/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/process/fork_at_start.c - beside the first thread without an affinity another thread
 * forks at any moment; a handler forks there, or leaves by siglongjmp.
 */
#include "check.h"

#include <setjmp.h>
#include <sys/time.h>

enum { STEP = 25, MOST = 1500, THREADS = 3 };	/* of the delays, us */

static sigjmp_buf before;
static volatile sig_atomic_t leaves, handled;
static pthread_t first;

static void *talk(void *arg)
{
	const int *ends = arg;
	char byte;

	CHECK_INT(read(ends[0], &byte, 1), 1);
	return arg;
}

static void make_threads(void)
{
	/* A thread may still read when a handler has left. */
	static int ends[2];
	pthread_t t[THREADS];

	CHECK_OK(pipe(ends));
	for (int i = 0; i < THREADS; i++)
		t[i] = start(talk, ends);
	write_all(ends[1], "abc", THREADS);
	for (int i = 0; i < THREADS; i++)
		CHECK(finish(t[i]) == ends);
	CHECK_OK(close(ends[0]));
	CHECK_OK(close(ends[1]));
}

/* Beside pthread_create, or on top of it, libc allows no more than what a handler may do. */
static void use_pipe(void)
{
	int ends[2];
	char byte;

	CHECK_OK(pipe(ends));
	CHECK_INT(write(ends[1], "a", 1), 1);
	CHECK_INT(read(ends[0], &byte, 1), 1);
	CHECK_OK(close(ends[0]));
	CHECK_OK(close(ends[1]));
}

static void wait_for_child(pid_t pid)
{
	int status;

	if (!pid) {
		use_pipe();
		_exit(0);
	}
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK_INT(status, 0);
}

static void handler(int signo)
{
	/* A new thread may take it while the first one is in clone with all signals blocked. */
	if (!pthread_equal(pthread_self(), first)) {
		pthread_kill(first, signo);
		return;
	}
	handled = 1;
	if (leaves)
		siglongjmp(before, 1);
	/* fork() takes the locks of malloc, which pthread_create may hold below. */
	wait_for_child(_Fork());
}

/* The signal comes after so many us. */
static void first_thread_beside_signal(int delay)
{
	const struct itimerval once = { .it_value.tv_usec = delay };

	if (sigsetjmp(before, 1) == 0) {
		CHECK_OK(setitimer(ITIMER_REAL, &once, NULL));
		make_threads();
	}
	while (!handled)
		usleep(100);
	use_pipe();
}

static void *forks(void *arg)
{
	const int delay = *(const int *)arg;
	const struct timespec pause = { 0, delay * 1000L };

	CHECK_OK(nanosleep(&pause, NULL));
	wait_for_child(fork());
	return arg;
}

/* With an affinity it is a kernel thread also where others are not. */
static void first_thread_beside_fork(int delay)
{
	pthread_t t = start_affine(forks, &delay);

	make_threads();
	finish(t);
}

static void each_delay(void (*part)(int))
{
	for (int delay = STEP; delay < MOST; delay += STEP)
		run_in_child(part, delay);
}

int main(void)
{
	first = pthread_self();
	CHECK(signal(SIGALRM, handler) != SIG_ERR);
	each_delay(first_thread_beside_fork);
	puts("beside a fork");
	each_delay(first_thread_beside_signal);
	puts("beside a fork in a handler");
	leaves = 1;
	each_delay(first_thread_beside_signal);
	return success();
}
