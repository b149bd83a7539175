/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/process/wait_own_ended.c - the process's first kernel thread has ended; another thread waits for its
 * own child, which a pidfd names.
 */
#include "check.h"
#include "raw_call.h"

#include <sys/wait.h>

#ifndef P_PIDFD
#define P_PIDFD 3
#endif

static void await_end_of_first(void)
{
	char path[64], state = 0;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", getpid());
	while (state != 'Z') {
		FILE *file = fopen(path, "re");

		CHECK(file);
		CHECK_INT(fscanf(file, "%*d (%*[^)]) %c", &state), 1);
		CHECK_OK(fclose(file));
		usleep(1000);
	}
}

static void *wait_for_own(void *arg)
{
	siginfo_t info = { .si_pid = 0 };
	pid_t child;
	int fd;

	await_end_of_first();
	child = fork();
	if (child == 0)
		_exit(7);
	CHECK(child > 0);
	fd = (int)syscall(SYS_pidfd_open, child, 0);
	CHECK(fd >= 0);
	CHECK_OK(waitid(P_PIDFD, (id_t)fd, &info, WEXITED | __WNOTHREAD));
	CHECK_INT(info.si_pid, child);
	CHECK_INT(info.si_status, 7);
	CHECK_OK(close(fd));
	exit(success());
	return arg;
}

int main(void)
{
	pthread_t t;

	CHECK_OK(pthread_create(&t, NULL, wait_for_own, NULL));
	/* A thread may be on another kernel thread than before. */
	for (;;)
		if (raw_call(SYS_gettid) == getpid())
			raw_call(SYS_exit);
		else
			usleep(1000);
}
