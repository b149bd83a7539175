/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/process/fork_limits.c - processes are made while other threads close descriptors with which calls wait:
 * each child has its parent's limit on descriptors, and none of these files.
 */
#include "sockets.h"

#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>

enum { FORKS = 400, CHURNERS = 3, PROGRAMS_MOST = 900 };

static _Atomic bool over;
static struct rlimit limit;

struct receiver {
	struct event begun;
	int fd;
};

static void *receives(void *arg)
{
	struct receiver *r = arg;
	char c;

	event_post(&r->begun);
	(void)!recv(r->fd, &c, 1, 0);
	return NULL;
}

static void *churns(void *arg)
{
	while (!over) {
		struct receiver r = { .begun = EVENT_INIT };
		pthread_t t;
		int fd[2];

		make_pair(SOCKET, fd);
		set_timeout(fd[0], SO_RCVTIMEO, 20);
		r.fd = fd[0];
		t = start(receives, &r);
		event_wait(&r.begun, 1);
		usleep(400);
		CHECK_OK(close(fd[0]));
		(void)!write(fd[1], "x", 1);
		finish(t);
		CHECK_OK(close(fd[1]));
	}
	return arg;
}

/* In the child.  The program itself has no number that is as high. */
static int faults(void)
{
	struct rlimit own;
	struct dirent *entry;
	int bad = getrlimit(RLIMIT_NOFILE, &own) || own.rlim_cur != limit.rlim_cur;
	DIR *list = opendir("/proc/self/fd");

	while (list && (entry = readdir(list))) {
		char path[300], file[64] = "";

		if (atoi(entry->d_name) < PROGRAMS_MOST)
			continue;
		snprintf(path, sizeof(path), "/proc/self/fd/%s", entry->d_name);
		if (readlink(path, file, sizeof(file) - 1) > 0 && strncmp(file, "socket", 6) == 0)
			bad |= 2;
	}
	return list ? bad : 4;
}

int main(void)
{
	pthread_t t[CHURNERS];

	CHECK(signal(SIGPIPE, SIG_IGN) != SIG_ERR);
	limit = limit_descriptors(1024);
	for (int i = 0; i < CHURNERS; i++)
		t[i] = start(churns, NULL);
	for (int i = 0; i < FORKS; i++) {
		int status;
		const pid_t pid = fork();

		CHECK(pid >= 0);
		if (!pid)
			_exit(faults());
		CHECK_INT(waitpid(pid, &status, 0), pid);
		CHECK_INT(status, 0);
	}
	over = true;
	for (int i = 0; i < CHURNERS; i++)
		finish(t[i]);
	return success();
}
