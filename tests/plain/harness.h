/* SPDX-License-Identifier: MIT */
#ifndef FZ_TESTS_PLAIN_HARNESS_H
#define FZ_TESTS_PLAIN_HARNESS_H

/*
 * tests/plain/harness.h - one test source, two drivers.
 *
 * Criterion where it is installed; with -DFZ_TEST_PLAIN the small main() in
 * plain.c, for cross-compiled tests that run under an emulator.  Both run each
 * test in a process of its own, so a crash is one failed test.
 *
 *	TEST(name) { ... }
 *	CHECK(cond, fmt, ...)	a failure is counted and the test goes on
 *	REQUIRE(cond, fmt, ...)	a failure ends the test
 *
 * REQUIRE only on the test's own stack.  Neither in a signal handler.
 */

#ifdef FZ_TEST_PLAIN

struct plain_test {
	const char *name;
	void (*fn)(void);
	struct plain_test *next;
};

void plain_register(struct plain_test *t);
void plain_failed(const char *file, int line, const char *cond,
		  const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
_Noreturn void plain_abort(void);

#define TEST(name_)							\
	static void test_##name_(void);					\
	__attribute__((constructor)) static void register_##name_(void)	\
	{								\
		static struct plain_test t = {				\
			.name = #name_, .fn = test_##name_		\
		};							\
		plain_register(&t);					\
	}								\
	static void test_##name_(void)

#define CHECK(cond, ...)						\
	do {								\
		if (!(cond))						\
			plain_failed(__FILE__, __LINE__, #cond, __VA_ARGS__); \
	} while (0)

#define REQUIRE(cond, ...)						\
	do {								\
		if (!(cond)) {						\
			plain_failed(__FILE__, __LINE__, #cond, __VA_ARGS__); \
			plain_abort();					\
		}							\
	} while (0)

#else

#include <criterion/criterion.h>

#define TEST(name_) Test(arch, name_)
#define CHECK(cond, ...) cr_expect(cond, __VA_ARGS__)
#define REQUIRE(cond, ...) cr_assert(cond, __VA_ARGS__)

#endif
#endif
