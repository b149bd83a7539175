/* SPDX-License-Identifier: MIT */
/*
 * tests/targets/mapped_twice.c - loads waits_in.so, which is beside it, and maps its file once more, as programs do that
 * read symbols.  Its thread "waits" sleeps in that library; prints "ready", and goes on until killed.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	void *(*waits_in)(void *);
	char path[4096];
	pthread_t thread;
	struct stat st;
	void *library;
	int fd;

	snprintf(path, sizeof(path), "%.*s/waits_in.so", argc ? (int)(strrchr(argv[0], '/') - argv[0]) : 0, argv[0]);
	library = dlopen(path, RTLD_NOW);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (!library || fd < 0 || fstat(fd, &st) != 0)
		return 1;
	*(void **)&waits_in = dlsym(library, "waits_in");
	/* The kernel puts it just below the library, which is the lowest so far. */
	if (mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		return 1;
	pthread_create(&thread, NULL, waits_in, NULL);
	pthread_setname_np(thread, "waits");
	puts("ready");
	fflush(stdout);
	for (;;)
		sleep(100000);
}
