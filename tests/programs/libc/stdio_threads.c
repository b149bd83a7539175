/* SPDX-License-Identifier: MIT */
/* tests/programs/libc/stdio_threads.c - FILEs shared among threads, on pipes and files. */
#include "check.h"

#define THREADS 8
#define LINES 200

static FILE *shared;
static int pipe_fd[2];

static void *prints(void *arg)
{
	int id = (int)(intptr_t)arg;

	for (int i = 0; i < LINES; i++) {
		if (i % 3 == 0) {
			flockfile(shared);
			fprintf(shared, "%d ", id);
			if (i % 9 == 0)
				sched_yield();
			if (i % 90 == 0)
				usleep(100);
			fprintf(shared, "%d of a line\n", i);
			funlockfile(shared);
		} else {
			fprintf(shared, "%d %d of a line\n", id, i);
		}
		if (i % 50 == 0)
			fflush(shared);
	}
	return NULL;
}

static void check_lines(FILE *f)
{
	int next[THREADS] = { 0 }, id, i, n;
	char line[128];

	for (n = 0; n < THREADS * LINES; n++) {
		CHECK(fgets(line, sizeof(line), f) != NULL);
		CHECK_INT(sscanf(line, "%d %d of a line\n", &id, &i), 2);
		CHECK(id >= 0 && id < THREADS);
		CHECK_INT(i, next[id]++);
	}
	CHECK(fgets(line, sizeof(line), f) == NULL);
}

static void *reads(void *arg)
{
	FILE *f = fdopen(pipe_fd[0], "r");

	check_lines(f);
	fclose(f);
	return arg;
}

static long taken;

/* Each line goes to exactly one reader. */
static void *takes(void *arg)
{
	char line[128];

	while (fgets(line, sizeof(line), arg)) {
		CHECK_INT(line[strlen(line) - 1], '\n');
		__atomic_add_fetch(&taken, 1, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

static void *private_file(void *arg)
{
	FILE *f = tmpfile();
	char buf[32], *text = NULL;
	size_t size = 0;

	CHECK(f != NULL);
	for (int i = 0; i < 1000; i++)
		fprintf(f, "%d\n", i);
	rewind(f);
	for (int i = 0; i < 1000; i++) {
		CHECK(getline(&text, &size, f) > 0);
		CHECK_INT(atoi(text), i);
	}
	free(text);
	CHECK_OK(fclose(f));
	f = fmemopen(buf, sizeof(buf), "w");
	fprintf(f, "%s", "in memory");
	fclose(f);
	CHECK_OK(strcmp(buf, "in memory"));
	return arg;
}

int main(void)
{
	pthread_t t[THREADS], r;

	/* To a pipe that another thread reads line by line. */
	CHECK_OK(pipe(pipe_fd));
	shared = fdopen(pipe_fd[1], "w");
	r = start(reads, NULL);
	for (intptr_t i = 0; i < THREADS; i++)
		t[i] = start(prints, (void *)i);
	for (int i = 0; i < THREADS; i++)
		finish(t[i]);
	CHECK_OK(fclose(shared));
	finish(r);
	puts("pipe");

	shared = tmpfile();
	for (intptr_t i = 0; i < THREADS; i++)
		t[i] = start(prints, (void *)i);
	for (int i = 0; i < THREADS; i++)
		finish(t[i]);
	rewind(shared);
	check_lines(shared);
	fclose(shared);
	puts("file");

	CHECK_OK(pipe(pipe_fd));
	shared = fdopen(pipe_fd[0], "r");
	for (int i = 0; i < THREADS; i++)
		t[i] = start(takes, shared);
	for (int i = 0; i < 2000; i++)
		CHECK_INT(dprintf(pipe_fd[1], "line %4d\n", i), 10);
	close(pipe_fd[1]);
	for (int i = 0; i < THREADS; i++)
		finish(t[i]);
	CHECK_INT(taken, 2000);
	fclose(shared);
	puts("shared input");

	for (int i = 0; i < THREADS; i++)
		t[i] = start(private_file, NULL);
	for (int i = 0; i < THREADS; i++)
		finish(t[i]);
	puts("private");
	return success();
}
