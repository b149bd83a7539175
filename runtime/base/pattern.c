/* SPDX-License-Identifier: MIT */
#include "runtime/base/pattern.h"

#include <string.h>

/* ---- what stands for one character ---------------------------------------- */

size_t fz_pattern_takes(const char *pattern, const char *end, char c)
{
	(void)end;
	return *pattern == '?' || *pattern == c;
}

/* Read a class, [:name:], at text.  Sets *ret_in if c is in the class.  Returns the length; 0: there is no class. */
static size_t read_class(const char *text, const char *end, unsigned char c, bool *ret_in)
{
	/* Ranges by their two ends; no pointers, which the loader would have to relocate. */
	static const struct {
		char name[11], ranges[9];
	} classes[] = {
		{ "[:alnum:]", "09AZaz" }, { "[:alpha:]", "AZaz" }, { "[:blank:]", "  \t\t" },
		{ "[:cntrl:]", "\1\37\177\177" }, { "[:digit:]", "09" }, { "[:graph:]", "!~" },
		{ "[:lower:]", "az" }, { "[:print:]", " ~" }, { "[:punct:]", "!/:@[`{~" },
		{ "[:space:]", "  \t\r" }, { "[:upper:]", "AZ" }, { "[:xdigit:]", "09AFaf" },
	};

	if (end - text < 2 || text[0] != '[' || text[1] != ':')
		return 0;
	for (size_t i = 0; i < sizeof(classes) / sizeof(*classes); i++) {
		const size_t length = strlen(classes[i].name);

		if ((size_t)(end - text) < length || memcmp(text, classes[i].name, length) != 0)
			continue;
		for (const char *range = classes[i].ranges; *range; range += 2)
			*ret_in |= c >= (unsigned char)range[0] && c <= (unsigned char)range[1];
		return length;
	}
	return 0;
}

/* Read one character between brackets: c, \c, [.c.] or [=c=].  Moves *at behind it. */
static unsigned char read_character(const char **at, const char *end)
{
	const char *text = *at;

	if (end - text >= 5 && *text == '[' && (text[1] == '.' || text[1] == '=') && text[3] == text[1] &&
	    text[4] == ']') {
		*at += 5;
		return (unsigned char)text[2];
	}
	text += *text == '\\' && end - text > 1;
	*at = text + 1;
	return (unsigned char)*text;
}

/* Does the bracket expression at pattern match c?  Returns its length, or 0 if it has no end. */
static size_t read_bracket(const char *pattern, const char *end, unsigned char c, bool *ret_in)
{
	const char *at = pattern + 1, *first;
	bool negated, in = false;

	negated = at < end && (*at == '!' || *at == '^');
	/* A ] at the beginning does not end the expression: it is one of the characters. */
	first = at += negated;
	while (at < end && (*at != ']' || at == first)) {
		const size_t length = read_class(at, end, c, &in);
		unsigned char low, high;

		at += length;
		if (length)
			continue;
		low = high = read_character(&at, end);
		if (end - at > 1 && *at == '-' && at[1] != ']') {
			at++;
			high = read_character(&at, end);
		}
		in |= low <= c && c <= high;
	}
	*ret_in = in != negated;
	return at < end ? (size_t)(at + 1 - pattern) : 0;
}

size_t fz_pattern_takes_shell(const char *pattern, const char *end, char c)
{
	size_t length;
	bool in;

	if (*pattern == '\\')
		return end - pattern > 1 && pattern[1] == c ? 2 : 0;
	if (*pattern == '[' && (length = read_bracket(pattern, end, (unsigned char)c, &in)))
		return in ? length : 0;
	return fz_pattern_takes(pattern, end, c);
}

/* ---- patterns ------------------------------------------------------------- */

bool fz_pattern_is_wild(const char *pattern)
{
	const char *end = pattern + strlen(pattern);
	size_t length;
	bool in;

	for (; *pattern; pattern += length) {
		length = *pattern == '[' ? read_bracket(pattern, end, 'x', &in) : strchr("*?/", *pattern) != NULL;
		if (!length)
			return false;
	}
	return true;
}

bool fz_pattern_matches(const char *pattern, const char *end, const char *text, fz_takes *takes)
{
	const char *after_star = NULL, *rest = NULL;
	size_t length;

	for (;;) {
		if (pattern < end && *pattern == '*') {
			after_star = ++pattern;
			rest = text;
		} else if (*text && pattern < end && (length = takes(pattern, end, *text))) {
			pattern += length;
			text++;
		} else if (!*text && pattern == end) {
			return true;
		} else if (after_star && *rest) {
			pattern = after_star;
			text = ++rest;
		} else {
			return false;
		}
	}
}

bool fz_pattern_in_list(const char *list, bool of_files, const char *text)
{
	const char *end = list;

	for (; *list; list = end + (*end == ',')) {
		const bool of_file = *list == '@';

		for (end = list; *end && *end != ',';)
			end++;
		if (of_file == of_files &&
		    fz_pattern_matches(list + of_file, end, text, fz_pattern_takes))
			return true;
	}
	return false;
}
