/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/signal/signal_leave.c [ROUNDS] - handlers that leave a call by siglongjmp, or
 * the thread by pthread_exit, in any call, and as early as the thread can be signalled: other
 * threads in such calls continue, and a thread that was not asked to leave does not leave.
 */
#include "check.h"

#include <poll.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdbool.h>
#include <sys/socket.h>

enum { SIG = SIGUSR1, PER_CALL = 2 };

enum call { USLEEP, COMPUTE, READ, RECV, SEM_WAIT, YIELD, PAUSE, POLL, NANOSLEEP, CALLS };

enum { THREADS = CALLS * PER_CALL };

static int rounds = 20;
static int pipe_fd[2], sock[2];
static sem_t never;
static __thread sigjmp_buf back;
static __thread volatile sig_atomic_t leaves;
static _Atomic bool exits;

static void handler(int sig)
{
	(void)sig;
	if (exits)
		pthread_exit(&exits);
	if (leaves) {
		leaves = 0;
		siglongjmp(back, 1);
	}
}

static void call(enum call which)
{
	const struct timespec long_time = { 60, 0 };
	struct pollfd fds = { .fd = pipe_fd[0], .events = POLLIN };
	struct timespec limit;
	char byte;

	switch (which) {
	case USLEEP: usleep(100); break;
	case COMPUTE:
		for (volatile int i = 0; i < 10000; i++)
			continue;
		break;
	case READ: CHECK_ERR(read(pipe_fd[0], &byte, 1), EINTR); break;
	case RECV: CHECK_ERR(recv(sock[0], &byte, 1, 0), EINTR); break;
	case SEM_WAIT:
		limit = in(CLOCK_REALTIME, MS);
		CHECK_INT(sem_timedwait(&never, &limit), -1);
		break;
	case YIELD: sched_yield(); break;
	case PAUSE: pause(); break;
	case POLL: CHECK_INT(poll(&fds, 1, 60000), -1); break;
	default: nanosleep(&long_time, NULL); break;
	}
}

struct caller {
	enum call call;
	_Atomic int ready, left;
	_Atomic bool done;
	pthread_t thread;
};

static void *is_left(void *arg)
{
	struct caller *c = arg;

	if (sigsetjmp(back, 1))
		c->left++;
	while (!c->done) {
		leaves = 1;
		c->ready = c->left + 1;
		while (!c->done)
			call(c->call);
	}
	leaves = 0;
	return arg;
}

static void *is_ended(void *arg)
{
	struct caller *c = arg;

	while (!c->done)
		call(c->call);
	return arg;
}

static void by_jump(void)
{
	static struct caller callers[THREADS];

	for (int i = 0; i < THREADS; i++) {
		callers[i].call = (enum call)(i % CALLS);
		callers[i].thread = start(is_left, &callers[i]);
	}
	for (int n = 1; n <= rounds; n++) {
		for (int i = 0; i < THREADS; i++)
			while (callers[i].ready < n)
				usleep(50);
		for (int i = 0; i < THREADS; i++) {
			callers[i].done = n == rounds;
			CHECK_OK(pthread_kill(callers[i].thread, SIG));
		}
	}
	for (int i = 0; i < THREADS; i++) {
		CHECK(finish(callers[i].thread) == &callers[i]);
		CHECK(callers[i].left >= rounds - 1);
	}
	puts("left by siglongjmp");
}

static void *nothing(void *arg)
{
	CHECK_INT(leaves, 0);
	return arg;
}

/* Signalled before its first instruction: it has not asked to be left. */
static void newborn(void)
{
	for (int n = 0; n < rounds * 10; n++) {
		pthread_t threads[THREADS];

		for (int i = 0; i < THREADS; i++)
			threads[i] = start(nothing, &threads[i]);
		for (int i = 0; i < THREADS; i++)
			CHECK_OK(pthread_kill(threads[i], SIG));
		for (int i = 0; i < THREADS; i++)
			CHECK(finish(threads[i]) == &threads[i]);
	}
	puts("newborn");
}

static void by_exit(void)
{
	struct caller callers[THREADS];

	exits = true;
	for (int n = 0; n < rounds; n++) {
		for (int i = 0; i < THREADS; i++) {
			callers[i] = (struct caller){ .call = (enum call)(i % CALLS) };
			callers[i].thread = start(is_ended, &callers[i]);
		}
		if (n % 2)
			settle();
		for (int i = 0; i < THREADS; i++)
			CHECK_OK(pthread_kill(callers[i].thread, SIG));
		for (int i = 0; i < THREADS; i++)
			CHECK(finish(callers[i].thread) == &exits);
	}
	puts("ended by pthread_exit");
}

int main(int argc, char **argv)
{
	struct sigaction sa = { .sa_handler = handler, .sa_flags = SA_RESTART };

	if (argc > 1)
		rounds = atoi(argv[1]);
	CHECK_OK(pipe(pipe_fd));
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, sock));
	CHECK_OK(sem_init(&never, 0, 0));
	CHECK_OK(sigaction(SIG, &sa, NULL));
	newborn();
	by_jump();
	newborn();
	by_exit();
	return success();
}
