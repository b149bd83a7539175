/* SPDX-License-Identifier: MIT */
/*
 * tests/helpers/work.c - work [chroot DIR] [THREADS]: threads that lock, sleep, and
 * talk over pipes, if wanted below a directory with nothing in it.
 */
#include "check.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int sum;

static void *run(void *arg)
{
	int *fd = arg;
	char c;

	CHECK_INT(read(fd[0], &c, 1), 1);
	usleep(1000);
	pthread_mutex_lock(&lock);
	sum += c;
	pthread_mutex_unlock(&lock);
	return arg;
}

int main(int argc, char **argv)
{
	int count = 20, pipes[100][2];
	pthread_t thread[100];

	if (argc > 2 && strcmp(argv[1], "chroot") == 0) {
		CHECK_OK(chroot(argv[2]));
		CHECK_OK(chdir("/"));
	} else if (argc > 1) {
		count = atoi(argv[1]);
	}
	CHECK(count <= 100);
	for (int i = 0; i < count; i++) {
		CHECK_OK(pipe(pipes[i]));
		CHECK_OK(pthread_create(&thread[i], NULL, run, pipes[i]));
	}
	for (int i = 0; i < count; i++)
		CHECK_INT(write(pipes[i][1], "\001", 1), 1);
	for (int i = 0; i < count; i++)
		CHECK_OK(pthread_join(thread[i], NULL));
	printf("%d\n", sum);
	puts("EXIT-SUCCESS");
	return 0;
}
