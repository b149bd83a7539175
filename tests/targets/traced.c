/* SPDX-License-Identifier: MIT */
/*
 * tests/targets/traced.c - threads that block in every way that "fiberize trace" and the probes tell
 * apart, again and again.
 *
 *	traced [SECONDS]	prints "ready" once the threads have been made; without SECONDS goes on until
 *				killed
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int pair[2];
static char path[] = "/tmp/traced.XXXXXX";

static void *sleeps(void *arg)
{
	for (;;)
		usleep(5000);
	return arg;
}

static void *reads(void *arg)
{
	char byte;

	while (read(pair[0], &byte, 1) == 1)
		continue;
	return arg;
}

static void *writes(void *arg)
{
	while (write(pair[1], "x", 1) == 1)
		usleep(3000);
	return arg;
}

static void *locks(void *arg)
{
	for (;;) {
		pthread_mutex_lock(&mutex);
		usleep(2000);
		pthread_mutex_unlock(&mutex);
		usleep(100);
	}
	return arg;
}

/* Two threads with an open file each: one waits for the other's lock, in the kernel. */
static void *locks_file(void *arg)
{
	const int fd = open(path, O_RDWR);

	for (;;) {
		flock(fd, LOCK_EX);
		usleep(3000);
		flock(fd, LOCK_UN);
		usleep(100);
	}
	return arg;
}

/* Longer than a processor is left to a fiber while others wait; a small part of the time. */
static void *computes(void *arg)
{
	for (;;) {
		const clock_t begun = clock();

		while (clock() - begun < CLOCKS_PER_SEC / 20)
			continue;
		usleep(400000);
	}
	return arg;
}

static void *is_wired(void *arg)
{
	prctl(PR_SET_TIMERSLACK, 100000, 0, 0, 0);
	return arg;
}

static void *makes(void *arg)
{
	pthread_t thread;

	for (;;) {
		if (pthread_create(&thread, NULL, is_wired, NULL) == 0)
			pthread_join(thread, NULL);
		usleep(20000);
	}
	return arg;
}

static void start(void *(*run)(void *), const char *name)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, run, NULL) != 0)
		exit(1);
	pthread_setname_np(thread, name);
}

int main(int argc, char **argv)
{
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0 || mkstemp(path) < 0)
		return 1;
	start(sleeps, "sleeps");
	start(reads, "reads");
	start(writes, "writes");
	start(locks, "locks");
	start(locks, "locks-too");
	start(locks_file, "locks-file");
	start(locks_file, "locks-file-too");
	start(computes, "computes");
	start(computes, "computes-too");
	start(computes, "computes-three");
	start(makes, "makes");
	puts("ready");
	fflush(stdout);
	if (argc > 1)
		sleep((unsigned)atoi(argv[1]));
	else
		pause();
	unlink(path);
	return 0;
}
