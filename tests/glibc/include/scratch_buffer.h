/* SPDX-License-Identifier: MIT */
/*
 * tests/glibc/include/scratch_buffer.h - a buffer that grows; libc's is not exported.
 */
#ifndef FZ_GLIBC_SCRATCH_BUFFER_H
#define FZ_GLIBC_SCRATCH_BUFFER_H

#include <stdbool.h>
#include <stdlib.h>

struct scratch_buffer {
	char *data;
	size_t length;
};

static inline void scratch_buffer_init(struct scratch_buffer *b)
{
	b->length = 1024;
	b->data = malloc(b->length);
}

static inline void scratch_buffer_free(struct scratch_buffer *b)
{
	free(b->data);
}

static inline bool scratch_buffer_grow(struct scratch_buffer *b)
{
	free(b->data);
	b->length *= 2;
	b->data = malloc(b->length);
	return b->data != NULL;
}

static inline bool scratch_buffer_grow_preserve(struct scratch_buffer *b)
{
	b->length *= 2;
	b->data = realloc(b->data, b->length);
	return b->data != NULL;
}

static inline bool scratch_buffer_set_array_size(struct scratch_buffer *b, size_t n, size_t size)
{
	free(b->data);
	b->length = n * size;
	b->data = malloc(b->length);
	return b->data != NULL;
}

#endif
