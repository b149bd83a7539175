/* SPDX-License-Identifier: MIT */
/*
 * tests/fuzz/rules.c - a profile as preload/stub reads it, in each program of the machine: no crash, and
 * what it sets is what the launcher's parser finds in it, if that has nothing to complain of.
 */
#include "fuzz.h"

#include "runtime/base/options.h"
#include "scripts/check/profiles.h"

/* The stub's own of these are not for a program with a libc. */
#define memset stub_memset
#define memcpy stub_memcpy
#include "preload/stub/text.c"
#undef memset
#undef memcpy

#include "preload/stub/rules.h"

/* The value that the stub found for an option; NULL: none. */
static const char *found(const struct fz_rules *r, const struct fz_option *o)
{
	for (size_t i = 0; i < r->count; i++) {
		const char *value = strchr(r->variables[i], '=');

		FUZZ_CHECK(value);
		if (fz_option_of_variable(r->variables[i], (size_t)(value - r->variables[i])) == o)
			return value + 1;
	}
	return NULL;
}

/* Only the launcher knows them. */
static bool has_brackets(const char *profile)
{
	bool begins = true;

	for (const char *at = profile; *at; at++) {
		if (*at == '\\' || (*at == '[' && !begins))
			return true;
		begins = *at == '\n' || (begins && (*at == ' ' || *at == '\t'));
	}
	return false;
}

static void compare(const struct fz_rules *r, const char *file)
{
	const struct subject program = { "some/program", "/some/program", "/some/program", "some arguments" };
	const char *values[FZ_OPTION_COUNT] = { NULL };
	struct profiles p = { .count = 0 };
	bool ignored;
	char *why = profiles_read(&p, values, file, &program, &ignored);

	for (size_t i = 0; i < FZ_OPTION_COUNT && !why; i++) {
		const char *ours = found(r, &fz_options[i]);

		/* The stub is the library that is loaded; another one cannot be chosen then. */
		if (strcmp(fz_options[i].name, "library") == 0)
			continue;
		FUZZ_CHECK(!ours == !values[i]);
		FUZZ_CHECK(!ours || strcmp(ours, values[i]) == 0);
	}
	free(why);
	profiles_free(&p);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static char room[1 << 16];
	struct fz_rules r = { .path = "/some/program", .file = "/some/program", .arguments = "some arguments",
			      .text = { room, room + sizeof(room), false } };
	char *profile = fuzz_text(bytes, size);
	/* The launcher drops zero bytes, and reads files of any size. */
	bool same = !memchr(bytes, '\0', size) && size < sizeof(room) / 4 && !has_brackets(profile);

	fz_rules_read_text(&r, profile, size);
	FUZZ_CHECK(r.count <= FZ_RULES_OPTIONS);
	if (same && r.count < FZ_RULES_OPTIONS)
		compare(&r, fuzz_file(bytes, size));
	free(profile);
	return 0;
}
