/* SPDX-License-Identifier: MIT */
#include "preload/stub/text.h"

size_t fz_text_length(const char *text)
{
	size_t length = 0;

	while (text[length]) {
		/* Keeps the compiler from making a call of strlen() of this loop. */
		__asm__ volatile("");
		length++;
	}
	return length;
}

const char *fz_text_after(const char *text, const char *prefix)
{
	while (*prefix)
		if (*text++ != *prefix++)
			return NULL;
	return text;
}

bool fz_text_equal(const char *a, const char *b)
{
	const char *rest = fz_text_after(a, b);

	return rest && !*rest;
}

bool fz_text_contains(const char *text, const char *word)
{
	for (; *text; text++)
		if (fz_text_after(text, word))
			return true;
	return false;
}

const char *fz_text_base(const char *path)
{
	const char *base = path;

	for (; *path; path++)
		if (*path == '/')
			base = path + 1;
	return base;
}

void fz_text_put(struct fz_text_buffer *b, const char *text)
{
	for (; *text; text++) {
		if (b->end - b->at < 2) {
			b->full = true;
			break;
		}
		*b->at++ = *text;
	}
	if (b->at < b->end)
		*b->at = '\0';
	else
		b->full = true;
}

void fz_text_put_number(struct fz_text_buffer *b, unsigned long number)
{
	char digits[24], *at = digits + sizeof(digits) - 1;

	*at = '\0';
	do
		*--at = (char)('0' + number % 10);
	while (number /= 10);
	fz_text_put(b, at);
}

char *fz_text_next(struct fz_text_buffer *b)
{
	if (b->at + 1 >= b->end)
		b->full = true;
	else
		*++b->at = '\0';
	return b->at;
}
