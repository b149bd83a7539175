/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/io/few_descriptors.c - a program may have 32 descriptors and needs 23, or less as
 * time goes by; on any number of processors.
 */
#include "check.h"

#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum { LIMIT = 32, NEEDED = 23 };

static int stream[2];

static void *echo(void *arg)
{
	struct pollfd p = { .fd = stream[0], .events = POLLIN };
	char c;

	/* With a limit of 0 poll is refused. */
	while ((arg || poll(&p, 1, -1) == 1) && read(stream[0], &c, 1) == 1)
		CHECK_INT(write(stream[0], &c, 1), 1);
	return arg;
}

static void exchange(void)
{
	char c = 'e';

	for (int i = 0; i < 10; i++) {
		CHECK_INT(write(stream[1], &c, 1), 1);
		CHECK_INT(read(stream[1], &c, 1), 1);
	}
}

static void limit_to(rlim_t most)
{
	struct rlimit limit = { most, most };

	CHECK_OK(setrlimit(RLIMIT_NOFILE, &limit));
}

/* `used` descriptors more are open before the first thread. */
static void child(int used)
{
	pthread_t t, reader;
	int first;

	limit_to(LIMIT);
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, stream));
	for (int i = 0; i < used; i++)
		CHECK(dup(0) >= 0);
	t = start(echo, NULL);
	exchange();
	for (int i = stream[1] + 1 + used; i < NEEDED; i++)
		CHECK(dup(0) >= 0);
	exchange();
	while ((first = dup(0)) >= 0)
		;
	CHECK_INT(errno, EMFILE);
	exchange();
	CHECK_OK(shutdown(stream[1], SHUT_WR));
	CHECK(finish(t) == NULL);
	CHECK_OK(close(stream[0]));
	CHECK_OK(close(stream[1]));
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, stream));
	reader = start(echo, &t);
	exchange();
	limit_to(5);
	exchange();
	CHECK_ERR(dup(0), EMFILE);
	limit_to(0);
	exchange();
	CHECK_OK(shutdown(stream[1], SHUT_WR));
	CHECK(finish(reader) == &t);
	_exit(0);
}

int main(void)
{
	static const int used[] = { 0, 5, 12, 18 };
	int status;

	/* What the runner leaves open does not count. */
	for (int fd = 3; fd < 256; fd++)
		close(fd);
	for (size_t i = 0; i < COUNT(used); i++) {
		pid_t pid = fork();

		CHECK(pid >= 0);
		if (!pid)
			child(used[i]);
		CHECK_INT(waitpid(pid, &status, 0), pid);
		printf("with %d in use: %s\n", used[i], status ? "failed" : "enough");
		fflush(stdout);
	}
	return success();
}
