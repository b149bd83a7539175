/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/process/exec_basic.c - exec, posix_spawn, system and popen while other threads
 * run.
 */
#include "check.h"

#include <spawn.h>
#include <sys/wait.h>

extern char **environ;
static struct event ready = EVENT_INIT;
static int hold[2];

static void *blocked(void *arg)
{
	char c;

	event_post(&ready);
	CHECK_INT(read(hold[0], &c, 1), 1);
	return arg;
}

static void *nothing(void *arg)
{
	return arg;
}

/* In the new image: nothing of ours but what was asked for is open. */
static int child(char **argv)
{
	char path[64], target[256];
	int extra = 0;

	CHECK_INT(getpid(), atoi(argv[2]));
	CHECK_OK(strcmp(getenv("CHECK_WORD"), "kept"));
	for (int fd = 3; fd < 1024; fd++) {
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n = readlink(path, target, sizeof(target) - 1);
		if (n > 0)
			extra++;
	}
	CHECK_INT(extra, 0);
	finish(start(nothing, NULL));
	return 21;
}

enum { EXECVE, EXECVPE, FEXECVE, EXECVEAT, WAYS };
static int way;

static void exec_self(void)
{
	char pid[32], *argv[] = { "exec_basic", "child", pid, NULL };
	int fd;

	snprintf(pid, sizeof(pid), "%ld", (long)getpid());
	switch (way) {
	case EXECVE:
		execve("/proc/self/exe", argv, environ);
		break;
	case EXECVPE:
		execvpe("/proc/self/exe", argv, environ);
		break;
	default:
		fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
		CHECK(fd >= 0);
		if (way == FEXECVE)
			fexecve(fd, argv, environ);
		else
			execveat(fd, "", argv, environ, AT_EMPTY_PATH);
	}
	_exit(99);
}

static void *exec_thread(void *arg)
{
	CHECK_ERR(execl("/does/not/exist", "x", (char *)NULL), ENOENT);
	CHECK_ERR(execl("/", "x", (char *)NULL), EACCES);
	char *argv[] = { "x", NULL };

	CHECK_ERR(execvpe("does-not-exist", argv, environ), ENOENT);
	CHECK_ERR(execvpe("/", argv, environ), EACCES);
	CHECK_ERR(fexecve(-1, argv, environ), EINVAL);
	CHECK_ERR(fexecve(1000, argv, environ), EBADF);
	CHECK_ERR(fexecve(0, argv, NULL), EINVAL);
	CHECK_ERR(execveat(AT_FDCWD, "", argv, environ, 0), ENOENT);
	CHECK_ERR(execveat(-1, "exec_basic", argv, environ, 0), EBADF);
	CHECK_ERR(execveat(AT_FDCWD, "/", argv, environ, 1 << 30), EINVAL);
	exec_self();
	return arg;
}

static void wait_status(pid_t pid, int code)
{
	int status;

	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status));
	CHECK_INT(WEXITSTATUS(status), code);
}

static void *spawns(void *arg)
{
	char *argv[] = { "sh", "-c", "exit 5", NULL }, line[64];
	pid_t pid;
	FILE *f;

	CHECK_OK(posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, environ));
	wait_status(pid, 5);
	CHECK_OK(posix_spawnp(&pid, "sh", NULL, NULL, argv, environ));
	wait_status(pid, 5);
	CHECK_INT(posix_spawn(&pid, "/does/not/exist", NULL, NULL, argv, environ),
		  ENOENT);
	CHECK_INT(WEXITSTATUS(system("exit 6")), 6);
	f = popen("echo $CHECK_WORD", "r");
	CHECK(f != NULL);
	CHECK(fgets(line, sizeof(line), f) != NULL);
	CHECK_OK(strcmp(line, "kept\n"));
	CHECK_OK(pclose(f));
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t t[3], b[3];
	pid_t pid;

	if (argc > 2)
		return child(argv);
	CHECK_OK(setenv("CHECK_WORD", "kept", 1));
	CHECK_OK(pipe2(hold, O_CLOEXEC));
	/* Whatever the caller left open is not what this is about. */
	for (int fd = 3; fd < 1024; fd++)
		if (fd != hold[0] && fd != hold[1])
			fcntl(fd, F_SETFD, FD_CLOEXEC);

	/* From main and from a thread, while others are blocked. */
	for (int i = 0; i < 2 * WAYS; i++) {
		const int by_thread = i % 2;

		way = i / 2;
		pid = fork();
		CHECK(pid >= 0);
		if (!pid) {
			ready.count = 0;
			for (int i = 0; i < 3; i++)
				start(blocked, NULL);
			event_wait(&ready, 3);
			settle();
			if (by_thread)
				finish(start(exec_thread, NULL));
			exec_self();
		}
		wait_status(pid, 21);
	}
	puts("exec");

	ready.count = 0;
	for (int i = 0; i < 3; i++)
		b[i] = start(blocked, NULL);
	event_wait(&ready, 3);
	spawns(NULL);
	for (int i = 0; i < 3; i++)
		t[i] = start(spawns, NULL);
	for (int i = 0; i < 3; i++)
		finish(t[i]);
	CHECK_INT(write(hold[1], "xxx", 3), 3);
	for (int i = 0; i < 3; i++)
		finish(b[i]);
	puts("spawn");
	return success();
}
