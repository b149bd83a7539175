/* SPDX-License-Identifier: MIT */
#include "text.h"

#include <locale.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <wchar.h>

/*
 * Ranges of characters to be replaced: control characters, characters that end a line or change its
 * direction, and numbers that are no Unicode character.
 */
static const struct {
	uint32_t first, last;
} refused[] = {
	{ 0, 0x1f }, { 0x7f, 0x9f }, { 0x2028, 0x202e }, { 0x2066, 0x2069 },
	{ 0xd800, 0xdfff }, { 0x110000, UINT32_MAX },
};

static bool is_refused(uint32_t character)
{
	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++)
		if (character >= refused[i].first && character <= refused[i].last)
			return true;
	return false;
}

/* The length in bytes of the UTF-8 character that begins here; 0 if it is invalid or to be replaced. */
static size_t length_of(const unsigned char *text)
{
	/* least[n] is the first character that needs n bytes. */
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const size_t length = *text < 0x80 ? 1 : *text < 0xc0 ? 0 : *text < 0xe0 ? 2 :
			      *text < 0xf0 ? 3 : *text < 0xf8 ? 4 : 0;
	uint32_t character = length > 1 ? *text & (0x7fu >> length) : *text;

	for (size_t i = 1; i < length; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		character = character << 6 | (text[i] & 0x3f);
	}
	return length && character >= least[length] && !is_refused(character) ? length : 0;
}

void text_clean(char *text)
{
	while (*text) {
		const size_t length = length_of((const unsigned char *)text);

		if (!length)
			*text = '?';
		text += length ? length : 1;
	}
}

/* How many columns the text takes in a locale with UTF-8. */
static int columns_of(const char *text)
{
	mbstate_t state = { 0 };
	int columns = 0;

	while (*text) {
		wchar_t wide;
		const size_t length = mbrtowc(&wide, text, strlen(text), &state);
		int width;

		if (length == (size_t)-1 || length == (size_t)-2)
			return columns + (int)strlen(text);
		width = wcwidth(wide);
		/* A character that is newer than libc. */
		columns += width < 0 ? 1 : width;
		text += length;
	}
	return columns;
}

int text_field(const char *text, int columns)
{
	static locale_t utf8;
	locale_t before;
	int width;

	if (!utf8)
		utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
	if (!utf8)
		return columns;
	before = uselocale(utf8);
	width = columns_of(text);
	uselocale(before);
	return columns + (int)strlen(text) - width;
}
