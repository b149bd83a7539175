/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <fnmatch.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/pattern.h"

TestSuite(pattern, .timeout = 120);

static bool matches(const char *pattern, const char *text)
{
	return fz_pattern_matches(pattern, pattern + strlen(pattern), text, fz_pattern_takes);
}

/* The text number n of those that consist of these letters, in the order of their lengths. */
static void write_text(char *text, unsigned n, const char *letters)
{
	const unsigned count = (unsigned)strlen(letters);

	for (; n; n = (n - 1) / count)
		*text++ = letters[(n - 1) % count];
	*text = '\0';
}

Test(pattern, matches_as_fnmatch_does)
{
	char pattern[16], text[16];

	/* Up to six characters of ?, *, a, b against up to five of a, b. */
	for (unsigned p = 0; p < 5461; p++)
		for (unsigned t = 0; t < 63; t++) {
			write_text(pattern, p, "?*ab");
			write_text(text, t, "ab");
			cr_assert_eq(matches(pattern, text), fnmatch(pattern, text, 0) == 0,
				     "<%s> <%s>", pattern, text);
		}
}

static bool matches_shell(const char *pattern, const char *text)
{
	return fz_pattern_matches(pattern, pattern + strlen(pattern), text, fz_pattern_takes_shell);
}

Test(pattern, of_the_shell_match_as_fnmatch_does)
{
	char pattern[16], text[16];

	/* Up to five characters of those that brackets are made of, against up to two. */
	for (unsigned p = 0; p < 19608; p++)
		for (unsigned t = 0; t < 57; t++) {
			write_text(pattern, p, "[]!-ab\\");
			write_text(text, t, "ab]-!\\[");
			cr_assert_eq(matches_shell(pattern, text), fnmatch(pattern, text, 0) == 0,
				     "<%s> <%s>", pattern, text);
		}
}

Test(pattern, of_the_shell_have_classes)
{
	static const char *const patterns[] = {
		"[[:alnum:]]", "[[:alpha:]]", "[[:blank:]]", "[[:cntrl:]]", "[[:digit:]]", "[[:graph:]]", "[[:lower:]]",
		"[[:print:]]", "[[:punct:]]", "[[:space:]]", "[[:upper:]]", "[[:xdigit:]]", "[![:digit:]a-f]", "[[.-.]x]",
		"[[=a=]]", "[[.a.]-[.c.]]", "[^a]",
	};

	for (size_t i = 0; i < sizeof(patterns) / sizeof(*patterns); i++)
		for (int c = 1; c < 256; c++) {
			const char text[] = { (char)c, '\0' };

			cr_assert_eq(matches_shell(patterns[i], text), fnmatch(patterns[i], text, 0) == 0,
				     "%s %d", patterns[i], c);
		}
	cr_assert(matches_shell("p[^a-q]*[[:alpha:]]?v", "printenv"));
	cr_assert(matches_shell("*[*]*", "a*"));
	cr_assert_not(matches_shell("*[*]*", "ab"));
	cr_assert(matches_shell("\\*", "*"));
	cr_assert_not(matches_shell("\\*", "a"));
}

Test(pattern, of_wildcards_alone)
{
	static const char *const wild[] = { "", "*", "?*", "*/*", "[a-z]*", "[!x][[:alpha:]]*", "[]]" };
	static const char *const names[] = { "a*", "*.py", "[a", "\\*", "*[0-9]x", "[]" };

	for (size_t i = 0; i < sizeof(wild) / sizeof(*wild); i++)
		cr_assert(fz_pattern_is_wild(wild[i]), "<%s>", wild[i]);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		cr_assert_not(fz_pattern_is_wild(names[i]), "<%s>", names[i]);
}

/* Two characters of the pattern stand for one of the text. */
static size_t takes_pairs(const char *pattern, const char *end, char c)
{
	return pattern + 1 < end && pattern[1] == c ? 2 : 0;
}

Test(pattern, a_part_of_the_pattern_may_be_longer_than_a_character)
{
	static const char pattern[] = "-a*-b";

	cr_assert(fz_pattern_matches(pattern, pattern + 5, "ab", takes_pairs));
	cr_assert(fz_pattern_matches(pattern, pattern + 5, "abbbab", takes_pairs));
	cr_assert_not(fz_pattern_matches(pattern, pattern + 5, "aba", takes_pairs));
	cr_assert_not(fz_pattern_matches(pattern, pattern + 4, "ab", takes_pairs));
}

/* Trying each star at each place would take some 10^20 steps. */
Test(pattern, many_stars_take_no_longer_than_the_product_of_the_lengths)
{
	char pattern[64] = "", text[256];

	for (int i = 0; i < 20; i++)
		strcat(pattern, "a*");
	strcat(pattern, "b");
	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	cr_assert_not(matches(pattern, text));
	text[sizeof(text) - 2] = 'b';
	cr_assert(matches(pattern, text));
}

Test(pattern, a_list_has_patterns_of_names_and_of_files)
{
	static const char list[] = "one,@lib*.so,t?o,,@,three*";

	cr_assert(fz_pattern_in_list(list, false, "one"));
	cr_assert(fz_pattern_in_list(list, false, "two"));
	cr_assert(fz_pattern_in_list(list, false, "three-and-more"));
	cr_assert(fz_pattern_in_list(list, false, ""));
	cr_assert(fz_pattern_in_list(list, true, "libx.so"));
	cr_assert(fz_pattern_in_list(list, true, ""));
	cr_assert_not(fz_pattern_in_list(list, false, "one,"));
	cr_assert_not(fz_pattern_in_list(list, false, "on"));
	cr_assert_not(fz_pattern_in_list(list, false, "libx.so"));
	cr_assert_not(fz_pattern_in_list(list, false, "@lib.so"));
	cr_assert_not(fz_pattern_in_list(list, true, "one"));
	cr_assert_not(fz_pattern_in_list("", false, ""));
	cr_assert_not(fz_pattern_in_list("one", true, ""));
}
