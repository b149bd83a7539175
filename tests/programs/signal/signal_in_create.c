/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/signal/signal_in_create.c - a handler that interrupts pthread_create, and waits there for
 * a thread that makes a process. That needs no lock of libc's; so it may need none that the interrupted
 * thread holds for the library.
 */
#include "check.h"

#include <stdatomic.h>
#include <sys/time.h>

enum { MOST = 100 };	/* of the delays, us */

/* One byte of a request, one of an answer. */
static int asked[2], answered[2];
static atomic_int handled;

static void handler(int signo)
{
	int saved = errno;
	char byte = (char)(atomic_load(&handled) % 2);

	(void)signo;
	CHECK_INT(write(asked[1], &byte, 1), 1);
	while (read(answered[0], &byte, 1) != 1)
		CHECK_INT(errno, EINTR);
	atomic_fetch_add(&handled, 1);
	errno = saved;
}

/* Who waits in the handler does so for this thread, which makes processes in ways that take no lock. */
static void *answers(void *arg)
{
	char byte;

	while (read(asked[0], &byte, 1) == 1) {
		pid_t pid = byte ? _Fork() : (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

		if (!pid)
			_exit(0);
		CHECK_INT(waitpid(pid, NULL, 0), pid);
		CHECK_INT(write(answered[1], &byte, 1), 1);
	}
	return arg;
}

static void *life(void *arg)
{
	return arg;
}

/* The signal comes after so many us. Each stack has a size of its own: no thread is used again. */
static void create_beside_signal(int delay)
{
	const struct itimerval once = { .it_value.tv_usec = delay };
	const int before = atomic_load(&handled);
	pthread_attr_t attr;
	pthread_t t;

	CHECK_OK(pthread_attr_init(&attr));
	CHECK_OK(pthread_attr_setstacksize(&attr, (size_t)(64 + 4 * delay) * 1024));
	CHECK_OK(setitimer(ITIMER_REAL, &once, NULL));
	CHECK_OK(pthread_create(&t, &attr, life, NULL));
	finish(t);
	while (atomic_load(&handled) == before)
		usleep(50);
	CHECK_OK(pthread_attr_destroy(&attr));
}

int main(void)
{
	struct sigaction sa = { .sa_handler = handler, .sa_flags = SA_RESTART };
	pthread_t t;

	CHECK_OK(pipe(asked));
	CHECK_OK(pipe(answered));
	CHECK_OK(sigaction(SIGALRM, &sa, NULL));
	mask_signal(SIG_BLOCK, SIGALRM);
	t = start(answers, NULL);
	mask_signal(SIG_UNBLOCK, SIGALRM);
	for (int delay = 1; delay <= MOST; delay++)
		create_beside_signal(delay);
	CHECK_OK(close(asked[1]));
	finish(t);
	return success();
}
