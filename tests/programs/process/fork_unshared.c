/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/process/fork_unshared.c - a thread with a table of descriptors of its own makes processes while others
 * close descriptors with which calls wait: its own ones stay open, and none is left behind in the other table.
 */
#include "sockets.h"

#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/wait.h>

enum { CYCLES = 8, LOW = 960, HIGH = 1024 };

static struct event begun, ready, over;
static bool taken[HIGH];

static void *reads(void *arg)
{
	const int *fd = arg;
	char c;

	event_post(&begun);
	CHECK_INT(read(*fd, &c, 1), 1);
	return NULL;
}

/* A call waits with a descriptor that is closed meanwhile, and ends. */
static void cycle(void)
{
	pthread_t t;
	int fd[2];

	begun = (struct event)EVENT_INIT;
	make_pair(SOCKET, fd);
	t = start(reads, fd);
	event_wait(&begun, 1);
	usleep(5000);
	CHECK_OK(close(fd[0]));
	CHECK_INT(write(fd[1], "x", 1), 1);
	finish(t);
	CHECK_OK(close(fd[1]));
}

static bool is_open(int fd)
{
	return syscall(SYS_fcntl, fd, F_GETFD) >= 0;
}

/* In its own table it takes the numbers below the limit, where private copies may be in the other one. */
static void *makes_processes(void *arg)
{
	const int zero = open("/dev/null", O_RDONLY);
	pid_t pid;

	CHECK(zero >= 0);
	CHECK_OK(unshare(CLONE_FILES));
	for (int fd = LOW; fd < HIGH; fd++)
		taken[fd] = !is_open(fd) && dup2(zero, fd) == fd;
	event_post(&ready);
	pid = vfork();
	CHECK(pid >= 0);
	if (!pid) {
		usleep(500 * 1000);
		_exit(0);
	}
	CHECK_INT(waitpid(pid, NULL, 0), pid);
	for (int fd = LOW; fd < HIGH; fd++)
		CHECK(!taken[fd] || is_open(fd));
	event_post(&over);
	return arg;
}

static int count(void)
{
	int n = 0;

	for (int fd = 0; fd < 4096; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

int main(void)
{
	pthread_t t;
	int before;

	ready = over = (struct event)EVENT_INIT;
	limit_descriptors(HIGH);
	cycle();
	before = count();
	t = start(makes_processes, NULL);
	event_wait(&ready, 1);
	for (int i = 0; i < CYCLES; i++)
		cycle();
	event_wait(&over, 1);
	finish(t);
	/* Of /dev/null, from before the thread had its own table. */
	CHECK_INT(count(), before + 1);
	return success();
}
