/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/libc/stdio_many.c - many threads that talk by stdio on sockets:
 *
 *	stdio_many [THREADS]		half of them ask, the others answer
 *
 * No thread asks before all answering threads are about to wait, so that they wait at once.
 */
#include "check.h"

#include <semaphore.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/socket.h>

enum { EXCHANGES = 100 };

struct end {
	int fd, id;
	bool asks;
};

static sem_t about_to_wait, may_ask;

static FILE *open_end(int fd, const char *mode)
{
	FILE *f = fdopen(fd, mode);

	CHECK(f != NULL);
	return f;
}

static void *talks(void *arg)
{
	struct end *e = arg;
	FILE *in = open_end(e->fd, "r"), *out = open_end(dup(e->fd), "w");
	char line[100], want[100];

	if (e->asks)
		CHECK_OK(sem_wait(&may_ask));
	else
		CHECK_OK(sem_post(&about_to_wait));
	for (int i = 0; i < EXCHANGES; i++) {
		snprintf(want, sizeof(want), "question %d of %d\n", i, e->id);
		if (e->asks) {
			CHECK(fprintf(out, "%s", want) > 0);
			CHECK_OK(fflush(out));
			snprintf(want, sizeof(want), "answer %d to %d\n", i, e->id);
		}
		CHECK(fgets(line, sizeof(line), in) == line);
		CHECK_OK(strcmp(line, want));
		if (!e->asks) {
			CHECK(fprintf(out, "answer %d to %d\n", i, e->id) > 0);
			CHECK_OK(fflush(out));
		}
	}
	CHECK_OK(fclose(out));
	CHECK_OK(fclose(in));
	return NULL;
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 200;
	pthread_t *t = calloc((size_t)threads, sizeof(*t));
	struct end *e = calloc((size_t)threads, sizeof(*e));
	struct rlimit files;

	CHECK_OK(getrlimit(RLIMIT_NOFILE, &files));
	files.rlim_cur = files.rlim_max;
	CHECK_OK(setrlimit(RLIMIT_NOFILE, &files));
	for (int i = 0; i < threads; i += 2) {
		int fd[2];

		CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, fd));
		e[i] = (struct end){ fd[0], i, true };
		e[i + 1] = (struct end){ fd[1], i, false };
	}
	CHECK_OK(sem_init(&about_to_wait, 0, 0));
	CHECK_OK(sem_init(&may_ask, 0, 0));
	for (int i = 0; i < threads; i++)
		t[i] = start(talks, &e[i]);
	for (int i = 0; i < threads / 2; i++)
		CHECK_OK(sem_wait(&about_to_wait));
	for (int i = 0; i < threads / 2; i++)
		CHECK_OK(sem_post(&may_ask));
	for (int i = 0; i < threads; i++)
		finish(t[i]);
	printf("%d threads\n", threads);
	return success();
}
