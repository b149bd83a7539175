/* SPDX-License-Identifier: MIT */
#include "preload/stub/text.h"

#include <string.h>

/*
 * The stub has no libc, but the compiler may call memset() and memcpy() for structures. The compiler may also replace a
 * loop by a call of memset(), memcpy() or strlen(), even in the body of that function itself; the empty asm in these
 * loops prevents that.
 */
void *memset(void *to, int byte, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		((unsigned char *)to)[i] = (unsigned char)byte;
		__asm__ volatile("");
	}
	return to;
}

void *memcpy(void *restrict to, const void *restrict from, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		((unsigned char *)to)[i] = ((const unsigned char *)from)[i];
		__asm__ volatile("");
	}
	return to;
}

size_t strlen(const char *text)
{
	size_t length = 0;

	while (text[length]) {
		__asm__ volatile("");
		length++;
	}
	return length;
}

int memcmp(const void *a, const void *b, size_t size)
{
	const unsigned char *x = a, *y = b;

	for (; size && *x == *y; size--) {
		x++;
		y++;
	}
	return size ? *x - *y : 0;
}

int strcmp(const char *a, const char *b)
{
	for (; *a && *a == *b; a++)
		b++;
	return (unsigned char)*a - (unsigned char)*b;
}

char *strchr(const char *text, int c)
{
	for (; *text != (char)c; text++)
		if (!*text)
			return NULL;
	return (char *)text;
}

size_t strcspn(const char *text, const char *set)
{
	size_t length = 0;

	while (text[length] && !strchr(set, text[length]))
		length++;
	return length;
}

const char *fz_text_after(const char *text, const char *prefix)
{
	while (*prefix)
		if (*text++ != *prefix++)
			return NULL;
	return text;
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
