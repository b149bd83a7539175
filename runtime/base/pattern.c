/* SPDX-License-Identifier: MIT */
#include "runtime/base/pattern.h"

size_t fz_pattern_takes(const char *pattern, const char *end, char c)
{
	(void)end;
	return *pattern == '?' || *pattern == c;
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
