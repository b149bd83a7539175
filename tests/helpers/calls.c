/* SPDX-License-Identifier: MIT */
/*
 * tests/helpers/calls.c - threads whose calls can be counted.
 *
 *	calls FIFO	sleeps and forks; a call that is brief but for FIFO, in which nobody writes; then waits
 *	calls talk	two threads that answer each other
 *
 * Prints "ready", and executes sleep after SIGUSR1.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static atomic_bool opened;

static void *naps(void *arg)
{
	for (int i = 0; i < 100; i++)
		usleep(1);
	for (int i = 0; arg && i < 10; i++)
		if (vfork() == 0)
			_exit(0);
	return arg;
}

/* A call that is found late: on one processor, which the other thread needs all the time. */
static void *opens(void *fifo)
{
	close(open(fifo, O_RDONLY));
	atomic_store(&opened, 1);
	return NULL;
}

static void *runs(void *arg)
{
	while (!atomic_load(&opened))
		usleep(1);
	return arg;
}

static void *echo(void *arg)
{
	const int fd = *(int *)arg;
	char c = 'x';

	while (write(fd, &c, 1) == 1 && read(fd, &c, 1) == 1)
		continue;
	return arg;
}

static void go_on(int sig)
{
	(void)sig;
}

int main(int argc, char **argv)
{
	pthread_t t[4];
	int fds[2];

	(void)argc;
	signal(SIGUSR1, go_on);
	socketpair(AF_UNIX, SOCK_STREAM, 0, fds);
	if (strcmp(argv[1], "talk") == 0) {
		pthread_create(&t[0], NULL, echo, &fds[0]);
		pthread_create(&t[1], NULL, echo, &fds[1]);
	} else {
		for (int i = 0; i < 2; i++)
			pthread_create(&t[i], NULL, naps, i ? argv[1] : NULL);
		for (int i = 0; i < 2; i++)
			pthread_join(t[i], NULL);
		pthread_create(&t[2], NULL, opens, argv[1]);
		pthread_create(&t[3], NULL, runs, NULL);
		for (int i = 2; i < 4; i++)
			pthread_join(t[i], NULL);
	}
	puts("ready");
	fflush(stdout);
	pause();
	execl("/bin/sleep", "sleep", "1000", NULL);
	return 1;
}
