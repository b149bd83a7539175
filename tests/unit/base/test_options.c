/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/features.h"
#include "runtime/base/options.h"

TestSuite(options, .timeout = 120);

static const struct fz_option an_int = { .type = FZ_OPTION_int, .min = 1, .max = 256 };
static const struct fz_option from_zero = { .type = FZ_OPTION_int, .initial = 7, .max = 9 };
static const struct fz_option a_bool = { .type = FZ_OPTION_bool, .max = 1 };
static const struct fz_option a_size = { .type = FZ_OPTION_size, .min = 16384, .max = 1 << 30 };
static const struct fz_option largest = { .type = FZ_OPTION_size, .initial = 3 << 20,
					  .max = (uint64_t)1 << 40 };
static const struct fz_option a_path = { .type = FZ_OPTION_path };
static const struct fz_option a_list = { .type = FZ_OPTION_list, .min = 1, .max = 4 };
static const struct fz_option a_choice = { .type = FZ_OPTION_choice, .words = "auto,a-1,z" };
static const struct fz_option a_set = { .type = FZ_OPTION_set, .words = "one,two,three" };

static void takes(const struct fz_option *o, const char *text, uint64_t wanted)
{
	uint64_t value = ~wanted;

	cr_assert(fz_option_parse(o, text, &value), "<%s> is refused", text);
	cr_assert_eq(value, wanted, "<%s> is %lu", text, (unsigned long)value);
}

static void refuses(const struct fz_option *o, const char *text)
{
	uint64_t value = 4711;

	cr_assert_not(fz_option_parse(o, text, &value), "<%s> is taken", text);
	cr_assert_eq(value, 4711, "<%s> is refused, and a value is set", text);
}

Test(options, an_int_is_digits_within_its_range)
{
	static const char *const bad[] = { "", "0", "257", "-1", "+1", " 1", "1 ", "1k", "0x4", "1.5",
					   "k", "1\n", "18446744073709551617",
					   "99999999999999999999999999999999" };

	takes(&an_int, "1", 1);
	takes(&an_int, "256", 256);
	takes(&an_int, "000000000000000000000000000000003", 3);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		refuses(&an_int, bad[i]);
	takes(&from_zero, "0", 0);
	refuses(&from_zero, "");
	refuses(&from_zero, "10");
}

Test(options, a_bool_is_one_digit)
{
	static const char *const bad[] = { "", "2", "01", "yes", "00", "1 ", "-0" };

	takes(&a_bool, "0", 0);
	takes(&a_bool, "1", 1);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		refuses(&a_bool, bad[i]);
}

Test(options, a_size_may_have_a_unit)
{
	static const char *const bad[] = { "", "k", "16383", "15k", "2g", "1025m", "64kb", "64x", "-64k",
					   "1.5m", "64 k", "1073741825", "k64",
					   /* 2^64 and more, once it is multiplied */
					   "17179869185g", "18014398509481985k", "9999999999999999g" };

	takes(&a_size, "16384", 16384);
	takes(&a_size, "16k", 16384);
	takes(&a_size, "16K", 16384);
	takes(&a_size, "3m", 3 << 20);
	takes(&a_size, "3M", 3 << 20);
	takes(&a_size, "1g", 1 << 30);
	takes(&a_size, "1G", 1 << 30);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		refuses(&a_size, bad[i]);
	takes(&largest, "1024g", (uint64_t)1 << 40);
	takes(&largest, "1099511627776", (uint64_t)1 << 40);
	takes(&largest, "0k", 0);
	refuses(&largest, "1025g");
	refuses(&largest, "k");
}

Test(options, texts_are_their_own_value)
{
	static const char path[] = "/a b", four[] = "abcd";

	takes(&a_path, path, (uintptr_t)path);
	refuses(&a_path, "");
	takes(&a_list, four, (uintptr_t)four);
	refuses(&a_list, "");
	refuses(&a_list, "abcde");
}

Test(options, a_choice_is_the_place_of_its_word)
{
	static const char *const bad[] = { "", "Auto", "aut", "autoo", "a", "a-1,z", "z,", ",z", "auto,a-1,z" };

	takes(&a_choice, "auto", 0);
	takes(&a_choice, "a-1", 1);
	takes(&a_choice, "z", 2);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		refuses(&a_choice, bad[i]);
}

Test(options, a_set_has_a_bit_for_each_word)
{
	static const char *const bad[] = { "", ",", "one,", ",one", "one,,two", "one, two", "four", "one,four" };

	takes(&a_set, "one", 1);
	takes(&a_set, "three", 4);
	takes(&a_set, "three,one", 5);
	takes(&a_set, "two,two", 2);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		refuses(&a_set, bad[i]);
}

static void allows(const struct fz_option *o, const char *wanted)
{
	char text[FZ_OPTION_TEXT];

	fz_option_allowed(o, text, sizeof(text));
	cr_assert_str_eq(text, wanted);
	/* Cut wherever there is no more room, and never beyond. */
	for (size_t size = 1; size <= strlen(wanted); size++) {
		memset(text, 'x', sizeof(text));
		fz_option_allowed(o, text, size);
		cr_assert_eq(strlen(text), size - 1);
		cr_assert_eq(strncmp(text, wanted, size - 1), 0);
		cr_assert_eq(text[size], 'x');
	}
}

Test(options, what_is_allowed_is_told)
{
	allows(&an_int, "an integer from 1 to 256");
	allows(&a_bool, "0 or 1");
	allows(&a_size, "a size from 16k to 1g, in bytes or with k, m or g");
	allows(&largest, "a size from 0 to 1024g, in bytes or with k, m or g");
	allows(&a_path, "the name of a file");
	allows(&a_list, "a list of 1 to 4 characters");
	allows(&a_choice, "auto, a-1 or z");
	allows(&a_set, "any of one, two, three");
}

static void by_default(const struct fz_option *o, const char *wanted)
{
	char text[FZ_OPTION_TEXT];

	fz_option_default(o, text, sizeof(text));
	cr_assert_str_eq(text, wanted);
}

Test(options, the_default_is_told)
{
	by_default(&an_int, "automatic");
	by_default(&from_zero, "7");
	by_default(&a_bool, "0");
	by_default(&largest, "3m");
	by_default(&a_path, "automatic");
	by_default(&a_list, "none");
	by_default(&a_choice, "auto");
	by_default(&a_set, "none");
}

Test(options, each_is_found_by_its_variable_and_its_flag)
{
	for (size_t i = 0; i < FZ_OPTION_COUNT; i++) {
		const struct fz_option *o = &fz_options[i];
		char flag[64], text[FZ_OPTION_TEXT];

		cr_assert_lt(snprintf(flag, sizeof(flag), "%s", o->name), (int)sizeof(flag));
		for (char *c = flag; (c = strchr(c, '_'));)
			*c = '-';
		cr_assert_eq(fz_option_of_flag(flag, strlen(flag)), o);
		cr_assert_eq(fz_option_of_variable(o->variable, strlen(o->variable)), o);
		cr_assert_null(fz_option_of_flag(flag, strlen(flag) - 1));
		cr_assert_null(fz_option_of_variable(o->variable, strlen(o->variable) - 1));
		/* A message tells all of it. */
		fz_option_allowed(o, text, sizeof(text));
		cr_assert_lt(strlen(text), sizeof(text) - 1);
	}
	cr_assert_eq(fz_option_of_flag("stack-size=3", 10), &fz_options[FZ_OPTION_ID_stack_size]);
	cr_assert_null(fz_option_of_flag("stack_size", 10));
	cr_assert_null(fz_option_of_flag("", 0));
	cr_assert_null(fz_option_of_variable("FIBERIZE_", 9));
	cr_assert_null(fz_option_of_variable("FIBERIZE_stats", 14));
}

Test(options, features_are_the_words_of_without)
{
	const struct fz_option *o = &fz_options[FZ_OPTION_ID_without];

	takes(o, "no-iowait", (uint64_t)1 << FZ_FEATURE_NO_IOWAIT);
	takes(o, "guard-install", (uint64_t)1 << FZ_FEATURE_GUARD_INSTALL);
	takes(o, "sync-cancel", (uint64_t)1 << FZ_FEATURE_SYNC_CANCEL);
	takes(o, "rwf-nowait", (uint64_t)1 << FZ_FEATURE_RWF_NOWAIT);
	takes(o, "epoll-pwait2", (uint64_t)1 << FZ_FEATURE_EPOLL_PWAIT2);
	takes(o, "fsgsbase", (uint64_t)1 << FZ_FEATURE_FSGSBASE);
}
