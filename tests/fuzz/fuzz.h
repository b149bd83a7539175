/* SPDX-License-Identifier: MIT */
#ifndef FUZZ_FUZZ_H
#define FUZZ_FUZZ_H

/*
 * tests/fuzz/fuzz.h - what the targets share.  A target is one parser: it gets any bytes, and must
 * neither crash nor answer what its header does not allow.
 */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

#define FUZZ_CHECK(e)								\
	do {									\
		if (!(e)) {							\
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #e); \
			abort();						\
		}								\
	} while (0)

/* A file with these bytes, the same one each time; its path. */
static inline const char *fuzz_file(const uint8_t *bytes, size_t size)
{
	static char path[32];
	static int fd = -1;

	if (fd < 0) {
		fd = memfd_create("input", 0);
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	}
	/* A file that others may write is not read. */
	FUZZ_CHECK(fchmod(fd, 0755) == 0 && ftruncate(fd, 0) == 0);
	FUZZ_CHECK(pwrite(fd, bytes, size, 0) == (ssize_t)size);
	return path;
}

/* The bytes as a string, which the caller frees. */
static inline char *fuzz_text(const uint8_t *bytes, size_t size)
{
	char *text = malloc(size + 1);

	FUZZ_CHECK(text);
	memcpy(text, bytes, size);
	text[size] = '\0';
	return text;
}

#endif
