/* SPDX-License-Identifier: MIT */
/* tests/programs/process/wait_makers.c - the kernel gives a child's SIGCHLD to the thread that made the child. */
#include "check.h"

#include <sys/fsuid.h>

enum { CHILDREN = 4 };

static pthread_t maker;
static volatile sig_atomic_t handled, elsewhere;
static int over[2];

/* As servers do: for all children, so also for the one for which some thread waits. */
static void reaps_all(int sig)
{
	const int saved_errno = errno;

	(void)sig;
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
	errno = saved_errno;
	elsewhere += !pthread_equal(pthread_self(), maker);
	handled++;
}

static void handle(int flags)
{
	const struct sigaction action = { .sa_handler = reaps_all, .sa_flags = flags };

	handled = elsewhere = 0;
	CHECK_OK(sigaction(SIGCHLD, &action, NULL));
}

/* The child ends when all threads of its parent sleep. */
static pid_t make_child(void)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		await_asleep_in(getppid());
		_exit(7);
	}
	return pid;
}

/* The caller is woken once for the signal and for the child: it has its child, and then its handler finds none. */
static void make_and_wait(int times)
{
	siginfo_t info;
	int status;

	for (int i = 0; i < times; i++) {
		const pid_t pid = make_child();

		if (i % 2) {
			CHECK_OK(waitid(P_PID, (id_t)pid, &info, WEXITED));
			CHECK_INT(info.si_status, 7);
		} else {
			CHECK_INT(waitpid(pid, &status, 0), pid);
			CHECK_INT(WEXITSTATUS(status), 7);
		}
	}
}

struct way {
	int waits_for_byte;	/* main, in read(); otherwise in pthread_join() */
	int changed;		/* the maker has a state of its own in the kernel */
	int flags;
};

static void *makes(void *arg)
{
	const struct way *way = arg;

	maker = pthread_self();
	if (way->changed)
		setfsuid(geteuid());
	mask_signal(SIG_UNBLOCK, SIGCHLD);
	make_and_wait(CHILDREN);
	CHECK_INT(handled, CHILDREN);
	CHECK_INT(elsewhere, 0);
	if (way->waits_for_byte)
		CHECK_INT(write(over[1], "x", 1), 1);
	return arg;
}

/* No other thread is interrupted, with SA_RESTART or without. */
static void in_maker(const struct way *way)
{
	pthread_t t;
	char c;

	handle(way->flags);
	t = start(makes, (void *)way);
	if (way->waits_for_byte)
		CHECK_INT(read(over[0], &c, 1), 1);
	finish(t);
}

static void *accepts_too(void *arg)
{
	char c;

	mask_signal(SIG_UNBLOCK, SIGCHLD);
	CHECK_INT(read(*(int *)arg, &c, 1), 1);
	return arg;
}

/* Also where the main thread blocks the signal, and another thread accepts it. */
static void beside_another(const struct way *way)
{
	pthread_t t;
	int ends[2];

	CHECK_OK(pipe2(ends, O_CLOEXEC));
	mask_signal(SIG_BLOCK, SIGCHLD);
	t = start(accepts_too, &ends[0]);
	in_maker(way);
	CHECK_INT(write(ends[1], "x", 1), 1);
	finish(t);
	mask_signal(SIG_UNBLOCK, SIGCHLD);
	CHECK_OK(close(ends[0]));
	CHECK_OK(close(ends[1]));
}

static void *makes_blocked(void *arg)
{
	mask_signal(SIG_BLOCK, SIGCHLD);
	*(pid_t *)arg = make_child();
	/* Until the main thread has handled it. */
	while (!handled)
		usleep(1000);
	return arg;
}

static void *makes_and_ends(void *arg)
{
	*(pid_t *)arg = make_child();
	return arg;
}

/* A maker that blocks the signal, or has ended, leaves it to the main thread. */
static void in_main(void *(*fn)(void *))
{
	const int ends = fn == makes_and_ends;
	pthread_t t;
	pid_t child;
	char c;

	handle(0);
	maker = pthread_self();
	t = start(fn, &child);
	if (ends)
		finish(t);
	CHECK_ERR(read(over[0], &c, 1), EINTR);
	CHECK_INT(handled, 1);
	CHECK_INT(elsewhere, 0);
	if (!ends)
		finish(t);
	CHECK_ERR(waitpid(child, NULL, 0), ECHILD);
}

int main(void)
{
	CHECK_OK(pipe2(over, O_CLOEXEC));
	for (int i = 0; i < 8; i++) {
		const struct way way = {
			.waits_for_byte = i & 1,
			.changed = i & 2,
			.flags = i & 4 ? SA_RESTART : 0,
		};

		in_maker(&way);
		beside_another(&way);
	}
	in_main(makes_blocked);
	in_main(makes_and_ends);
	return success();
}
