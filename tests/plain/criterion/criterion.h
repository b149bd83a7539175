/* SPDX-License-Identifier: MIT */
#ifndef FZ_TESTS_PLAIN_CRITERION_CRITERION_H
#define FZ_TESTS_PLAIN_CRITERION_CRITERION_H

/*
 * tests/plain/criterion/criterion.h - what tests/unit/ uses of Criterion, for another
 * CPU: there the tests run under an emulator, and tests/plain/plain.c has their main().
 */

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/plain/harness.h"

#define Test(suite_, name_, ...)					\
	static void suite_##_##name_(void);				\
	__attribute__((constructor)) static void			\
	register_##suite_##_##name_(void)				\
	{								\
		static struct plain_test t = {				\
			.name = #suite_ "/" #name_, .fn = suite_##_##name_ \
		};							\
		plain_register(&t);					\
	}								\
	static void suite_##_##name_(void)

#define cr_fail_(cond_, ...) \
	(plain_failed(__FILE__, __LINE__, cond_, " " __VA_ARGS__), plain_abort())
#define cr_assert(cond_, ...) ((cond_) ? (void)0 : cr_fail_(#cond_, __VA_ARGS__))
#define cr_assert_not(cond_, ...) cr_assert(!(cond_), __VA_ARGS__)
#define cr_assert_eq(a_, b_, ...) \
	((a_) == (b_) ? (void)0 : cr_fail_(#a_ " == " #b_, __VA_ARGS__))
#define cr_assert_neq(a_, b_, ...) \
	((a_) != (b_) ? (void)0 : cr_fail_(#a_ " != " #b_, __VA_ARGS__))
#define cr_assert_lt(a_, b_, ...) \
	((a_) < (b_) ? (void)0 : cr_fail_(#a_ " < " #b_, __VA_ARGS__))
#define cr_assert_leq(a_, b_, ...) \
	((a_) <= (b_) ? (void)0 : cr_fail_(#a_ " <= " #b_, __VA_ARGS__))
#define cr_assert_gt(a_, b_, ...) \
	((a_) > (b_) ? (void)0 : cr_fail_(#a_ " > " #b_, __VA_ARGS__))
#define cr_assert_geq(a_, b_, ...) \
	((a_) >= (b_) ? (void)0 : cr_fail_(#a_ " >= " #b_, __VA_ARGS__))
#define cr_assert_null(a_, ...) \
	((a_) == NULL ? (void)0 : cr_fail_(#a_ " == NULL", __VA_ARGS__))
#define cr_assert_not_null(a_, ...) \
	((a_) != NULL ? (void)0 : cr_fail_(#a_ " != NULL", __VA_ARGS__))
#define cr_assert_str_eq(a_, b_, ...) \
	(strcmp(a_, b_) == 0 ? (void)0 : cr_fail_(#a_ " is " #b_, __VA_ARGS__))
#define cr_skip_test(...) _exit(77)

#endif
