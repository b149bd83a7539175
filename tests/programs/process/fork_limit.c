/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/process/fork_limit.c - a user may have just as many threads and processes as this
 * program makes (RLIMIT_NPROC): each of them is made, also right after the threads. Only root can
 * become a user who has no others.
 */
#include "check.h"

#include <dirent.h>
#include <grp.h>
#include <spawn.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { THREADS = 8, PROCESSES = 3 };

extern char **environ;
static int pipes[2];

static void *waits(void *arg)
{
	char c;

	CHECK_INT(read(pipes[0], &c, 1), 1);
	return arg;
}

static bool has_processes(uid_t uid)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	bool found = false;
	struct stat st;

	CHECK(dir);
	while (!found && (entry = readdir(dir)))
		found = entry->d_name[0] >= '0' && entry->d_name[0] <= '9' &&
			fstatat(dirfd(dir), entry->d_name, &st, 0) == 0 && st.st_uid == uid;
	closedir(dir);
	return found;
}

/* Returns false if that is not allowed. */
static bool become_new_user(void)
{
	uid_t uid = 40000 + (uid_t)getpid() % 20000;

	if (geteuid() != 0 || setgroups(0, NULL))
		return false;
	while (has_processes(uid))
		uid++;
	return setresuid(uid, uid, uid) == 0;
}

static pid_t make_process(int i)
{
	char *sleeps[] = { "sleep", "0.2", NULL };
	pid_t pid;

	if (i % 2) {
		CHECK_INT(posix_spawnp(&pid, "sleep", NULL, NULL, sleeps, environ), 0);
		return pid;
	}
	pid = fork();
	CHECK(pid >= 0);
	if (!pid)
		_exit(usleep(200000));
	return pid;
}

int main(void)
{
	const struct rlimit limit = { 1 + THREADS + PROCESSES, 1 + THREADS + PROCESSES };
	pthread_t t[THREADS];
	pid_t pid[PROCESSES];
	int status;

	if (!become_new_user())
		return success();
	CHECK_OK(setrlimit(RLIMIT_NPROC, &limit));
	CHECK_OK(pipe(pipes));
	for (int i = 0; i < THREADS; i++)
		t[i] = start(waits, NULL);
	for (int i = 0; i < PROCESSES; i++)
		pid[i] = make_process(i);
	for (int i = 0; i < PROCESSES; i++) {
		CHECK_INT(waitpid(pid[i], &status, 0), pid[i]);
		CHECK_INT(status, 0);
	}
	CHECK_INT(write(pipes[1], "12345678", THREADS), THREADS);
	for (int i = 0; i < THREADS; i++)
		finish(t[i]);
	return success();
}
