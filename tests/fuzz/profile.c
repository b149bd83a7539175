/* SPDX-License-Identifier: MIT */
/*
 * tests/fuzz/profile.c - a profile: what the reader that the launcher and preload/stub share finds in its lines, and what
 * it sets for the launcher.
 */
#include "fuzz.h"

#include <fnmatch.h>

#define main look_at_files
#include "tests/helpers/fuzz.c"
#undef main

#include "runtime/base/pattern.h"

/* libc reads [. and [= otherwise where they do not end, and takes a [ without an end behind a star for none. */
static bool is_plain(const char *pattern)
{
	return strlen(pattern) < 64 && !strpbrk(pattern, ".=:*");
}

static bool inside(const char *string, const char *text, size_t size)
{
	return string >= text && string + strlen(string) <= text + size;
}

static void check_line(const struct fz_profile *p, enum fz_profile_found found, const char *text, size_t size)
{
	uint64_t value;

	if (found == FZ_PROFILE_SECTION) {
		FUZZ_CHECK(*p->value && inside(p->value, text, size));
		if (is_plain(p->value) && !strchr(p->value, '/'))
			FUZZ_CHECK(p->applies == !fnmatch(p->value, "program", 0));
	} else if (found == FZ_PROFILE_EVERYWHERE) {
		FUZZ_CHECK(inside(p->value, text, size) && strspn(p->value, "01") == 1 && !p->value[1]);
	} else if (found == FZ_PROFILE_OPTION) {
		FUZZ_CHECK(inside(p->name, text, size) && inside(p->value, text, size));
		FUZZ_CHECK(p->option == fz_option_of_flag(p->name, strlen(p->name)));
		FUZZ_CHECK(fz_option_parse(p->option, p->value, &value));
	}
}

static void read_lines(char *text, size_t size)
{
	static const struct fz_profile_program program = {
		.name = "some/program", .path = "/some/program", .file = "/some/program", .arguments = "some arguments",
	};
	struct fz_profile p = fz_profile_begin(text, size, &program);
	enum fz_profile_found found;
	size_t line = 0;

	while ((found = fz_profile_next(&p)) != FZ_PROFILE_END) {
		FUZZ_CHECK(p.line > line && p.line <= size + 1);
		line = p.line;
		check_line(&p, found, text, size);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	char *text = fuzz_text(bytes, size);

	read_lines(text, size);
	free(text);
	current = fuzz_file(bytes, size);
	read_as_profile(current);
	return 0;
}
