/* SPDX-License-Identifier: MIT */
/*
 * tests/fuzz/options.c - values of options and lists of patterns.  The first byte chooses the option;
 * the rest is its value, and after a newline the text that patterns are matched against.
 */
#include "fuzz.h"

#include <fnmatch.h>

#include "runtime/base/options.h"
#include "runtime/base/pattern.h"

/* A pattern of fnmatch(3) has more that is special. */
static bool is_plain(const char *text)
{
	return !strpbrk(text, "[\\,@") && strlen(text) < 64;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	const struct fz_option *o;
	char *value, *text, help[FZ_OPTION_TEXT];
	uint64_t parsed = 0;

	if (!size)
		return 0;
	o = &fz_options[*bytes % FZ_OPTION_COUNT];
	value = fuzz_text(bytes + 1, size - 1);
	text = strchr(value, '\n');
	if (text)
		*text++ = '\0';
	if (fz_option_parse(o, value, &parsed) && (o->type == FZ_OPTION_int || o->type == FZ_OPTION_size))
		FUZZ_CHECK(parsed == o->initial || (parsed >= o->min && parsed <= o->max));
	fz_option_allowed(o, help, sizeof(help));
	fz_option_default(o, help, size < sizeof(help) ? size : sizeof(help));
	fz_option_of_variable(value, strlen(value));
	fz_option_of_flag(value, strlen(value));
	if (text && is_plain(value) && is_plain(text))
		FUZZ_CHECK(fz_pattern_matches(value, value + strlen(value), text, fz_pattern_takes) ==
			   !fnmatch(value, text, 0));
	if (text) {
		fz_pattern_in_list(value, false, text);
		fz_pattern_in_list(value, true, text);
	}
	free(value);
	return 0;
}
