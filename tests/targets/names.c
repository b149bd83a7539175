/* SPDX-License-Identifier: MIT */
/*
 * tests/targets/names.c - threads with names that no terminal should get: a fiber that sleeps again and again,
 * one that waits for FILE, and a native thread; and one with a name that is only not ASCII.
 *
 *	names FILE	prints "ready" once they have been made, and goes on until killed
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

static void *sleeps(void *name)
{
	pthread_setname_np(pthread_self(), name);
	for (;;)
		usleep(5000);
	return NULL;
}

static void *reads(void *file)
{
	char byte;
	/* It waits for no writer. */
	const int fd = open(file, O_RDWR);

	/* The beginning of a character, and a control character of two bytes. */
	pthread_setname_np(pthread_self(), "\xe2\x82 \xc2\x9bm");
	return read(fd, &byte, 1) < 0 ? NULL : file;
}

int main(int argc, char **argv)
{
	static char clears[] = "\033[2J\r\xff", overlong[] = "\xc0\xaf \xed\xa0\x80", green[] = "gr\xc3\xbcn";
	pthread_attr_t attr;
	pthread_t thread;
	cpu_set_t cpus;

	if (argc != 2)
		return 2;
	sched_getaffinity(0, sizeof(cpus), &cpus);
	pthread_attr_init(&attr);
	pthread_attr_setaffinity_np(&attr, sizeof(cpus), &cpus);
	pthread_create(&thread, NULL, sleeps, clears);
	pthread_create(&thread, NULL, sleeps, green);
	pthread_create(&thread, NULL, reads, argv[1]);
	pthread_create(&thread, &attr, sleeps, overlong);
	puts("ready");
	fflush(stdout);
	pthread_join(thread, NULL);
	return 0;
}
