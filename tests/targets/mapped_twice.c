/* SPDX-License-Identifier: MIT */
/*
 * tests/targets/mapped_twice.c - loads a library, and maps its file once more, as programs do that read symbols.
 *
 *	mapped_twice LIBRARY [OFFSET]	LIBRARY is waits_in.so, or a copy of it, in which its thread "waits" sleeps; the
 *					file is mapped from OFFSET on.  Prints "ready", and goes on until killed
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	void *(*waits_in)(void *);
	pthread_t thread;
	struct stat st;
	void *library;
	const off_t offset = argc > 2 ? strtol(argv[2], NULL, 0) : 0;
	int fd;

	if (argc < 2)
		return 1;
	library = dlopen(argv[1], RTLD_NOW);
	fd = open(argv[1], O_RDONLY | O_CLOEXEC);
	if (!library || fd < 0 || fstat(fd, &st) != 0)
		return 1;
	*(void **)&waits_in = dlsym(library, "waits_in");
	/* The kernel puts it just below the library, which is the lowest so far. */
	if (mmap(NULL, (size_t)(st.st_size - offset), PROT_READ, MAP_PRIVATE, fd, offset) == MAP_FAILED)
		return 1;
	pthread_create(&thread, NULL, waits_in, NULL);
	pthread_setname_np(thread, "waits");
	puts("ready");
	fflush(stdout);
	for (;;)
		sleep(100000);
}
