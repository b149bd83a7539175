/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/process/fork_limits.c - processes are made, and programs executed, while other threads close descriptors
 * with which calls wait: each has its parent's limit on descriptors, and none of these files.
 */
#include "sockets.h"

#include <dirent.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <sys/wait.h>

enum { FORKS = 400, SPAWNS = 100, EXECS = 20, CHURNERS = 3, PROGRAMS_MOST = 900, LIMIT = 1024 };

static _Atomic bool over;
static pthread_t churners[CHURNERS];

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
		/* As the kernel answers while another thread executes a program: this one's end is near. */
		while (pthread_create(&t, NULL, receives, &r) == EAGAIN)
			pause();
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
	int bad = getrlimit(RLIMIT_NOFILE, &own) || own.rlim_cur != LIMIT;
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

static void start_churners(void)
{
	CHECK(signal(SIGPIPE, SIG_IGN) != SIG_ERR);
	for (int i = 0; i < CHURNERS; i++)
		churners[i] = start(churns, NULL);
}

static void expect_success(pid_t pid)
{
	int status;

	CHECK(pid > 0);
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK_INT(status, 0);
}

static void forks(void)
{
	for (int i = 0; i < FORKS; i++) {
		const pid_t pid = fork();

		if (!pid)
			_exit(faults());
		expect_success(pid);
	}
}

static void spawns(void)
{
	char *const argv[] = { "/proc/self/exe", "faults", NULL };

	for (int i = 0; i < SPAWNS; i++) {
		const char *command = "test $(ulimit -n) = 1024";
		FILE *shell;
		pid_t pid;

		CHECK_INT(posix_spawn(&pid, argv[0], NULL, NULL, argv, environ), 0);
		expect_success(pid);
		shell = popen(command, "r");
		CHECK(shell);
		CHECK_INT(pclose(shell), 0);
		CHECK_INT(system(command), 0);
	}
}

/* The next of `left` programs, in place of this one. */
static void executes(int left)
{
	char number[16];

	snprintf(number, sizeof(number), "%d", left);
	CHECK_OK(execl("/proc/self/exe", "fork_limits", number, (char *)NULL));
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "faults") == 0)
		return faults();
	if (argc > 1) {
		const int left = atoi(argv[1]);

		CHECK_INT(faults(), 0);
		start_churners();
		usleep(2000);
		if (left)
			executes(left - 1);
	} else {
		limit_descriptors(LIMIT);
		start_churners();
		forks();
		spawns();
		executes(EXECS);
	}
	over = true;
	for (int i = 0; i < CHURNERS; i++)
		finish(churners[i]);
	return success();
}
