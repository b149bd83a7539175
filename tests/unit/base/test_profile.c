/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/profile.h"

TestSuite(profile, .timeout = 120);

static unsigned searches;

static const char *find_file(void)
{
	searches++;
	return "/usr/lib/server-2";
}

static const struct fz_profile_program server = {
	.name = "bin/server", .path = "/usr/bin/server", .find_file = find_file, .arguments = "-p 8080",
};

/* A copy that has no zero behind it yet, as a buffer that is used again. */
static struct fz_profile begin(const char *bytes, size_t length)
{
	char *text = malloc(length + 1);

	cr_assert(text);
	memcpy(text, bytes, length);
	text[length] = '#';
	return fz_profile_begin(text, length, &server);
}

#define BEGIN(literal) begin(literal, sizeof(literal) - 1)

static void finds(struct fz_profile *p, enum fz_profile_found wanted, size_t line)
{
	cr_assert_eq(fz_profile_next(p), wanted, "line %zu: not %d", p->line, (int)wanted);
	cr_assert_eq(p->line, line, "line %zu, not %zu", p->line, line);
}

/* An option of the program, in this line. */
static void sets(struct fz_profile *p, size_t line, const char *name, const char *value)
{
	finds(p, FZ_PROFILE_OPTION, line);
	cr_assert(p->applies);
	cr_assert_str_eq(p->name, name);
	cr_assert_str_eq(p->value, value);
}

static void ends(struct fz_profile *p)
{
	cr_assert_eq(fz_profile_next(p), FZ_PROFILE_END);
	cr_assert_eq(fz_profile_next(p), FZ_PROFILE_END);
}

/* What the only line of a section for the program has. */
static enum fz_profile_found found_in(const char *line)
{
	char text[256] = "[server]\n";
	struct fz_profile p;

	strcat(text, line);
	p = begin(text, strlen(text));
	finds(&p, FZ_PROFILE_SECTION, 1);
	return fz_profile_next(&p);
}

static bool is_for_server(const char *pattern)
{
	char text[256] = "[";
	struct fz_profile p;

	strcat(strcat(text, pattern), "]");
	p = begin(text, strlen(text));
	finds(&p, FZ_PROFILE_SECTION, 1);
	cr_assert_str_eq(p.value, pattern);
	return p.applies;
}

Test(profile, an_empty_file_has_nothing)
{
	struct fz_profile empty = BEGIN(""), mark = BEGIN("\357\273\277"), blank = BEGIN("\n \t\r\n\r\n");

	ends(&empty);
	ends(&mark);
	ends(&blank);
}

Test(profile, comments_blanks_and_carriage_returns_do_not_count)
{
	struct fz_profile p = BEGIN("# [x]\n\n ; = \r\n\t[ server ]\t\r\n  processors =\t4 \r\nstack-size=64k\r\n");

	finds(&p, FZ_PROFILE_SECTION, 4);
	cr_assert_str_eq(p.value, "server");
	sets(&p, 5, "processors", "4");
	sets(&p, 6, "stack-size", "64k");
	cr_assert_str_eq(p.option->variable, "FIBERIZE_STACK_SIZE");
	ends(&p);
}

Test(profile, the_last_line_needs_no_newline)
{
	struct fz_profile p = BEGIN("[server]\nverbose = 1");

	finds(&p, FZ_PROFILE_SECTION, 1);
	sets(&p, 2, "verbose", "1");
	ends(&p);
}

Test(profile, a_byte_order_mark_counts_for_nothing_at_the_beginning_alone)
{
	struct fz_profile p = BEGIN("\357\273\277[server]\n\357\273\277verbose = 1\n"), part = BEGIN("\357\273");

	finds(&p, FZ_PROFILE_SECTION, 1);
	finds(&p, FZ_PROFILE_NO_OPTION, 2);
	ends(&p);
	finds(&part, FZ_PROFILE_NEITHER, 1);
}

Test(profile, a_line_does_not_continue)
{
	struct fz_profile p = BEGIN("[server]\nlibrary = a \\\n = b\n");

	finds(&p, FZ_PROFILE_SECTION, 1);
	sets(&p, 2, "library", "a \\");
	finds(&p, FZ_PROFILE_NO_OPTION, 3);
	cr_assert_str_eq(p.name, "");
}

Test(profile, a_mistake_has_a_name)
{
	struct fz_profile p = BEGIN("processors = 1\narguments = x\n[server]\n");

	finds(&p, FZ_PROFILE_NO_SECTION, 1);
	finds(&p, FZ_PROFILE_NO_SECTION, 2);
	finds(&p, FZ_PROFILE_SECTION, 3);
	cr_assert_eq(found_in("processors"), FZ_PROFILE_NEITHER);
	cr_assert_eq(found_in("processors 4 # = 4"), FZ_PROFILE_NO_OPTION);
	cr_assert_eq(found_in("stack_size = 64k"), FZ_PROFILE_NO_OPTION);
	cr_assert_eq(found_in("Verbose = 1"), FZ_PROFILE_NO_OPTION);
	cr_assert_eq(found_in("--verbose = 1"), FZ_PROFILE_NO_OPTION);
	cr_assert_eq(found_in("="), FZ_PROFILE_NO_OPTION);
	cr_assert_eq(found_in("verbose ="), FZ_PROFILE_BAD_VALUE);
	cr_assert_eq(found_in("verbose = 1 # on"), FZ_PROFILE_BAD_VALUE);
	cr_assert_eq(found_in("everywhere = yes"), FZ_PROFILE_NOT_0_OR_1);
	cr_assert_eq(found_in("everywhere ="), FZ_PROFILE_NOT_0_OR_1);
	cr_assert_eq(found_in("everywhere = 1"), FZ_PROFILE_EVERYWHERE);
	cr_assert_eq(found_in("["), FZ_PROFILE_NEITHER);
	cr_assert_eq(found_in("[x] # y"), FZ_PROFILE_NEITHER);
	cr_assert_eq(found_in("[x = y"), FZ_PROFILE_NEITHER);
	cr_assert_eq(found_in("[]"), FZ_PROFILE_NO_PROGRAM);
	cr_assert_eq(found_in("[ \t]"), FZ_PROFILE_NO_PROGRAM);
}

/* The stub goes on behind a mistake: then nobody may have the settings of another program. */
Test(profile, what_may_have_been_a_section_ends_the_one_before)
{
	static const struct {
		const char *text;
		size_t length;
		enum fz_profile_found found;
	} lines[] = {
		{ "[other", 6, FZ_PROFILE_NEITHER }, { "[]", 2, FZ_PROFILE_NO_PROGRAM }, { "[a\0b]", 5, FZ_PROFILE_ZERO_BYTE },
	};
	char text[64];

	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		struct fz_profile p;
		size_t length = 0;

		memcpy(text, "[server]\n", length = 9);
		memcpy(text + length, lines[i].text, lines[i].length);
		length += lines[i].length;
		memcpy(text + length, "\nverbose = 1", 12);
		p = begin(text, length + 12);
		finds(&p, FZ_PROFILE_SECTION, 1);
		cr_assert(p.applies);
		finds(&p, lines[i].found, 2);
		finds(&p, FZ_PROFILE_OPTION, 3);
		cr_assert_not(p.applies);
		ends(&p);
	}
}

Test(profile, a_zero_byte_spoils_its_line)
{
	struct fz_profile p = BEGIN("\0\n[server]\nverbose = 1\0\n[server]\n# \0\n[ser\0ver]\n[server]\nverbose = 1\n\0");

	finds(&p, FZ_PROFILE_ZERO_BYTE, 1);
	finds(&p, FZ_PROFILE_SECTION, 2);
	finds(&p, FZ_PROFILE_ZERO_BYTE, 3);
	finds(&p, FZ_PROFILE_SECTION, 4);
	finds(&p, FZ_PROFILE_ZERO_BYTE, 5);
	finds(&p, FZ_PROFILE_ZERO_BYTE, 6);
	finds(&p, FZ_PROFILE_SECTION, 7);
	sets(&p, 8, "verbose", "1");
	finds(&p, FZ_PROFILE_ZERO_BYTE, 9);
	ends(&p);
}

Test(profile, a_line_may_fill_the_file)
{
	static char text[FZ_PROFILE_MAX];
	struct fz_profile p;

	memset(text, 'x', sizeof(text));
	p = begin(text, sizeof(text));
	finds(&p, FZ_PROFILE_NEITHER, 1);
	ends(&p);
	memcpy(text, "[server]\nlibrary=", 17);
	p = begin(text, sizeof(text));
	finds(&p, FZ_PROFILE_SECTION, 1);
	finds(&p, FZ_PROFILE_OPTION, 2);
	cr_assert_eq(strlen(p.value), sizeof(text) - 17);
	ends(&p);
	memset(text, '[', sizeof(text));
	text[sizeof(text) - 1] = ']';
	p = begin(text, sizeof(text));
	finds(&p, FZ_PROFILE_SECTION, 1);
	cr_assert_not(p.applies);
}

Test(profile, a_section_is_for_programs_by_name_or_by_path)
{
	static const char *const yes[] = { "server", "s*", "*", "?erver", "s[a-e]rver", "[[:lower:]]*", "[!x]erver", "\\server",
					   "/usr/bin/server", "/usr/*", "*/server-?", "/usr/lib/server-[0-9]" };
	static const char *const no[] = { "serve", "server?", "bin", "Server", "[x]erver", "[server", "server\\",
					  "bin/server", "/usr/bin", "/usr/lib/server-[a-z]" };

	for (size_t i = 0; i < sizeof(yes) / sizeof(*yes); i++)
		cr_assert(is_for_server(yes[i]), "<%s>", yes[i]);
	for (size_t i = 0; i < sizeof(no) / sizeof(*no); i++)
		cr_assert_not(is_for_server(no[i]), "<%s>", no[i]);
}

/* It costs each program of the machine a system call. */
Test(profile, the_file_is_looked_for_only_if_a_pattern_needs_it)
{
	searches = 0;
	cr_assert(is_for_server("s*"));
	cr_assert(is_for_server("/usr/bin/server"));
	cr_assert_eq(searches, 0);
	cr_assert(is_for_server("/usr/lib/server-2"));
	cr_assert_eq(searches, 1);
}

Test(profile, a_program_that_was_not_found_has_a_name_alone)
{
	const struct fz_profile_program none = { .name = "x", .arguments = "" };
	char text[] = "[/*]\n[x]";
	struct fz_profile p = fz_profile_begin(text, sizeof(text) - 1, &none);

	finds(&p, FZ_PROFILE_SECTION, 1);
	cr_assert_not(p.applies);
	finds(&p, FZ_PROFILE_SECTION, 2);
	cr_assert(p.applies);
}

Test(profile, arguments_restrict_a_section)
{
	struct fz_profile p = BEGIN("[server]\narguments = -p *\nverbose = 1\n[server]\narguments = -x*\narguments = *\n"
				    "verbose = 0\n[server]\nverbose = 1\narguments = *\n");

	finds(&p, FZ_PROFILE_SECTION, 1);
	finds(&p, FZ_PROFILE_ARGUMENTS, 2);
	sets(&p, 3, "verbose", "1");
	finds(&p, FZ_PROFILE_SECTION, 4);
	cr_assert(p.applies);
	finds(&p, FZ_PROFILE_ARGUMENTS, 5);
	cr_assert_not(p.applies);
	finds(&p, FZ_PROFILE_ARGUMENTS, 6);
	finds(&p, FZ_PROFILE_OPTION, 7);
	cr_assert_not(p.applies);
	finds(&p, FZ_PROFILE_SECTION, 8);
	sets(&p, 9, "verbose", "1");
	finds(&p, FZ_PROFILE_LATE, 10);
	ends(&p);
}

Test(profile, a_section_of_wildcards_turns_nothing_on)
{
	struct fz_profile p = BEGIN("[*]\neverywhere = 1\neverywhere = 0\n[[a-z]*]\neverywhere = 1\n[s[a-z]*]\neverywhere = 1\n");

	finds(&p, FZ_PROFILE_SECTION, 1);
	finds(&p, FZ_PROFILE_FOR_ALL, 2);
	finds(&p, FZ_PROFILE_EVERYWHERE, 3);
	cr_assert_str_eq(p.value, "0");
	finds(&p, FZ_PROFILE_SECTION, 4);
	finds(&p, FZ_PROFILE_FOR_ALL, 5);
	finds(&p, FZ_PROFILE_SECTION, 6);
	finds(&p, FZ_PROFILE_EVERYWHERE, 7);
	cr_assert(p.applies);
}
