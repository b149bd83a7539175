/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/signal/signal_handler_masks.c - handlers that change their mask, and return or
 * are left by a jump: a signal for the process that arrives afterwards reaches a thread that
 * accepts it, or a signalfd if no thread does.
 */
#include "check.h"

#include <setjmp.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

static int pipe_fds[2], end_fds[2];
static sigjmp_buf jump;

static void blocks_another(int sig)
{
	(void)sig;
	mask_signal(SIG_BLOCK, SIGUSR2);
}

static void unblocks_another(int sig)
{
	(void)sig;
	mask_signal(SIG_UNBLOCK, SIGUSR2);
}

static void leaves(int sig)
{
	siglongjmp(jump, sig);
}

static void writes(int sig)
{
	char c = (char)sig;

	CHECK_INT(write(pipe_fds[1], &c, 1), 1);
}

static void handle(int sig, void (*handler)(int))
{
	struct sigaction sa = { .sa_handler = handler, .sa_flags = SA_RESTART };

	CHECK_OK(sigaction(sig, &sa, NULL));
}

/* From a process of its own, so that the kernel chooses. */
static void send(int sig)
{
	pid_t parent = getpid(), pid = fork();
	int status;

	CHECK(pid >= 0);
	if (pid == 0)
		_exit(kill(parent, sig) < 0);
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK_INT(status, 0);
}

static void *blocks_all(void *arg)
{
	sigset_t all;
	char c;

	sigfillset(&all);
	CHECK_OK(pthread_sigmask(SIG_SETMASK, &all, NULL));
	event_post(arg);
	CHECK_INT(read(end_fds[0], &c, 1), 1);
	return arg;
}

static void accepted(void)
{
	char c = 0;

	send(SIGUSR2);
	CHECK_INT(read(pipe_fds[0], &c, 1), 1);
	CHECK_INT(c, SIGUSR2);
}

static void taken_by_signalfd(void)
{
	struct signalfd_siginfo info;
	sigset_t set;
	int fd;

	mask_signal(SIG_BLOCK, SIGUSR2);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	fd = signalfd(-1, &set, SFD_CLOEXEC);
	CHECK(fd >= 0);
	send(SIGUSR2);
	CHECK_INT(read(fd, &info, sizeof(info)), sizeof(info));
	CHECK_INT(info.ssi_signo, SIGUSR2);
	close(fd);
	mask_signal(SIG_UNBLOCK, SIGUSR2);
}

int main(void)
{
	static struct event ready = EVENT_INIT;
	pthread_t t;

	CHECK_OK(pipe(pipe_fds));
	CHECK_OK(pipe(end_fds));
	t = start(blocks_all, &ready);
	event_wait(&ready, 1);
	handle(SIGUSR2, writes);
	accepted();
	taken_by_signalfd();

	handle(SIGUSR1, blocks_another);
	CHECK_OK(raise(SIGUSR1));
	accepted();
	taken_by_signalfd();

	handle(SIGUSR1, unblocks_another);
	mask_signal(SIG_BLOCK, SIGUSR2);
	CHECK_OK(raise(SIGUSR1));
	taken_by_signalfd();
	accepted();

	handle(SIGUSR1, leaves);
	handle(SIGUSR2, leaves);
	for (int i = 0; i < 3; i++)
		if (sigsetjmp(jump, 1) == 0)
			CHECK_OK(raise(SIGUSR2));
	handle(SIGUSR2, writes);
	taken_by_signalfd();
	accepted();

	CHECK_INT(write(end_fds[1], "x", 1), 1);
	finish(t);
	return success();
}
