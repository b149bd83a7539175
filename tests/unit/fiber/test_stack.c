/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/features.h"
#include "runtime/fiber/stack.h"
#include "runtime_setup.h"

enum { PAGE = 4096 };

static char *alloc(size_t size, size_t guard, size_t *ret_size)
{
	void *low = NULL;
	int err = fz_stack_alloc(size, guard, &low, ret_size);

	cr_assert_eq(err, 0, "size %zu guard %zu: error %d", size, guard, err);
	cr_assert_eq((uintptr_t)low % PAGE, 0);
	cr_assert_geq(*ret_size, size);
	return low;
}

/* What writing one byte at p ends a child with: 0, or the signal. */
static int touch(volatile char *p)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		struct rlimit no_core = { 0, 0 };

		setrlimit(RLIMIT_CORE, &no_core);
		signal(SIGSEGV, SIG_DFL);
		signal(SIGBUS, SIG_DFL);
		*p = 1;
		_exit(0);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void guard_works(void)
{
	const size_t guards[] = { 1, 4096, 5000, 65536 };

	for (size_t i = 0; i < sizeof(guards) / sizeof(*guards); i++) {
		size_t size, rounded = FZ_ROUND_UP(guards[i], PAGE);
		char *low = alloc(100000, guards[i], &size);

		cr_assert_eq(touch(low), 0);
		cr_assert_eq(touch(low + size - 1), 0);
		cr_assert_eq(touch(low - 1), SIGSEGV);
		cr_assert_eq(touch(low - rounded), SIGSEGV);
	}
}

Test(stack, guard_faults)
{
	guard_works();
}

Test(stack, guard_faults_by_mprotect)
{
	fz_features_without = 1 << FZ_FEATURE_GUARD_INSTALL;
	guard_works();
}

Test(stack, no_guard_asked_none_given)
{
	size_t size;
	char *low = alloc(65536, 0, &size), *next = alloc(65536, 0, &size);

	memset(low, 1, size);
	memset(next, 2, size);
	cr_assert_eq(low[0], 1);
	cr_assert_eq(next[size - 1], 2);
}

Test(stack, sizes_are_never_less_than_asked)
{
	const size_t sizes[] = { 1, 4095, 4096, 4097, 16384, 65537, 1 << 20, (2 << 20) - 1,
				 2 << 20, (8 << 20) + 1, (size_t)200 << 20 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		for (int n = 0; n < 5; n++) {
			size_t size;
			char *low = alloc(sizes[i], 4096, &size);

			low[0] = 1;
			low[size - 1] = 1;
			low[size / 2] = 1;
		}
}

Test(stack, impossible_sizes_are_refused)
{
	void *low = (void *)1;
	size_t size = 7;

	cr_assert_lt(fz_stack_alloc(SIZE_MAX, 0, &low, &size), 0);
	cr_assert_lt(fz_stack_alloc(SIZE_MAX - 100, 4096, &low, &size), 0);
	cr_assert_lt(fz_stack_alloc(4096, SIZE_MAX, &low, &size), 0);
	cr_assert_lt(fz_stack_alloc((size_t)1 << 48, 4096, &low, &size), 0);
	/* Untouched on failure. */
	cr_assert_eq(low, (void *)1);
	cr_assert_eq(size, 7);
}

/*
 * One per slab: it must lie in the slab as a whole, wherever that was mapped.
 * The small mapping in between varies the alignment.
 */
Test(stack, huge_ones_are_mapped_to_the_top)
{
	for (size_t i = 0; i < 24; i++) {
		size_t size, want = ((size_t)1100 << 20) + i * PAGE;
		char *low = alloc(want, 4096, &size);

		cr_assert_eq(touch(low + size - 1), 0, "stack %zu: its top is not mapped", i);
		mmap(NULL, (7 * i + 3) * 64 * 1024, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	}
}

struct piece {
	char *low, *high;
};

static int by_address(const void *a, const void *b)
{
	const struct piece *x = a, *y = b;

	return x->low < y->low ? -1 : x->low > y->low;
}

/* Sizes of more kinds than there are classes, mixed: nothing overlaps. */
Test(stack, stacks_are_disjoint)
{
	enum { N = 3000 };
	static struct piece pieces[N];
	uint64_t seed = 5;

	for (size_t i = 0; i < N; i++) {
		size_t size, guard = random_next(&seed) % 3 * PAGE;

		pieces[i].low = alloc((random_next(&seed) % 25 + 1) * 3 * PAGE, guard, &size);
		pieces[i].high = pieces[i].low + size;
		pieces[i].low -= guard;
	}
	qsort(pieces, N, sizeof(*pieces), by_address);
	for (size_t i = 1; i < N; i++)
		cr_assert_leq(pieces[i - 1].high, pieces[i].low);
}

static unsigned mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned n = 0;
	int c;

	cr_assert_not_null(f);
	while ((c = getc(f)) != EOF)
		n += c == '\n';
	fclose(f);
	return n;
}

Test(stack, many_stacks_few_mappings)
{
	enum { N = 10000 };
	unsigned before = mappings(), after;
	size_t size;
	char *probe = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);

	if (madvise(probe, PAGE, 102 /* MADV_GUARD_INSTALL */) != 0)
		cr_skip_test("this kernel cannot install guards");
	for (unsigned i = 0; i < N; i++)
		alloc(65536, 4096, &size)[100] = 1;
	after = mappings();
	cr_assert_lt(after - before, N / 20, "%u mappings became %u", before, after);
}

Test(stack, trim_keeps_the_top)
{
	size_t size;
	char *low = alloc(256 * 1024, 4096, &size);
	unsigned char there[64];

	memset(low, 0x55, size);
	fz_stack_trim(low, low + size - 16384);
	for (size_t i = size - 16384; i < size; i++)
		cr_assert_eq(low[i], 0x55);
	cr_assert_eq(mincore(low, 64 * PAGE, there), 0);
	cr_assert_eq(low[0], 0);
	cr_assert_eq(low[size - 16384 - 2 * PAGE], 0);
	/* The red zone below the stack pointer may be in use. */
	for (size_t i = size - 16384 - 128; i < size - 16384; i++)
		cr_assert_eq(low[i], 0x55);
	/* All in use: nothing happens. */
	memset(low, 0x66, size);
	fz_stack_trim(low, low + 100);
	cr_assert_eq(low[0], 0x66);
}

enum { THREADS = 4, EACH = 400 };
static struct piece shared[THREADS * EACH];

static void *allocate_many(void *arg)
{
	struct piece *mine = &shared[(uintptr_t)arg * EACH];

	for (int i = 0; i < EACH; i++) {
		void *low;
		size_t size;

		if (fz_stack_alloc(32768, 4096, &low, &size))
			return (void *)1;
		memset(low, (int)(uintptr_t)arg, size);
		mine[i].low = low;
		mine[i].high = mine[i].low + size;
	}
	return NULL;
}

Test(stack, concurrent_allocation)
{
	pthread_t threads[THREADS];

	for (uintptr_t i = 0; i < THREADS; i++)
		threads[i] = native(allocate_many, (void *)i);
	for (int i = 0; i < THREADS; i++) {
		void *failed;

		pthread_join(threads[i], &failed);
		cr_assert_null(failed);
	}
	qsort(shared, THREADS * EACH, sizeof(*shared), by_address);
	for (size_t i = 1; i < THREADS * EACH; i++)
		cr_assert_leq(shared[i - 1].high, shared[i].low);
}

/* With little address space left it makes do with a smaller slab. */
Test(stack, limited_address_space)
{
	struct rlimit limit;
	unsigned long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");
	size_t size;

	cr_assert_eq(fscanf(f, "%lu", &pages), 1);
	fclose(f);
	limit.rlim_cur = limit.rlim_max = pages * PAGE + ((size_t)48 << 20);
	cr_assert_eq(setrlimit(RLIMIT_AS, &limit), 0);
	for (int i = 0; i < 3; i++) {
		void *low;
		int err = fz_stack_alloc(8 << 20, 4096, &low, &size);

		cr_assert_eq(err, 0, "stack %d: error %d", i, err);
		memset(low, 1, size);
	}
}
