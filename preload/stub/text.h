/* SPDX-License-Identifier: MIT */
#ifndef FZ_PRELOAD_STUB_TEXT_H
#define FZ_PRELOAD_STUB_TEXT_H

/*
 * preload/stub/text.h - texts, without libc. Any context; nothing here allocates. text.c also defines the functions
 * of <string.h> that the sources of the stub call (Makefile, STUB_SRC).
 */

#include <stdbool.h>
#include <stddef.h>

/* What follows prefix in text; NULL if text begins otherwise. */
const char *fz_text_after(const char *text, const char *prefix);

/* Does text contain the word? */
bool fz_text_contains(const char *text, const char *word);

/* The last part of a path. */
const char *fz_text_base(const char *path);

/* A buffer to which text is appended. at: where the next character goes. full: something did not fit. */
struct fz_text_buffer {
	char *at, *end;
	bool full;
};

/* Append to the text, which stays terminated by a null byte. */
void fz_text_put(struct fz_text_buffer *b, const char *text);
void fz_text_put_number(struct fz_text_buffer *b, unsigned long number);

/* Begin another text behind the last one. Returns where it begins. */
char *fz_text_next(struct fz_text_buffer *b);

#endif
