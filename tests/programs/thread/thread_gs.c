/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/thread/thread_gs.c - the gs base that a thread sets by an instruction stays with
 * the thread, is inherited by threads that it makes, and reaches no other thread.
 */
#include "check.h"

#if defined(__x86_64__)
#include <asm/prctl.h>
#include <stdbool.h>
#include <sys/auxv.h>

enum { THREADS = 12, ROUNDS = 60 };

static bool has_gs_instructions(void)
{
	return getauxval(AT_HWCAP2) & 2;
}

/* libc has it, its headers do not. */
int arch_prctl(int code, unsigned long address);

static void set_gs(unsigned long base)
{
	__asm__ volatile("wrgsbase %0" : : "r"(base));
}

static unsigned long get_gs(void)
{
	unsigned long base;

	__asm__ volatile("rdgsbase %0" : "=r"(base));
	return base;
}

static void *inherits(void *arg)
{
	usleep(500);
	CHECK(get_gs() == (unsigned long)(intptr_t)arg);
	return arg;
}

/* Sleeps where it leaves its kernel thread to others.  Every other thread keeps 0. */
static void *keeps(void *arg)
{
	const unsigned long k = (unsigned long)(intptr_t)arg, base = k % 2 ? 0x12345000UL + k : 0;

	CHECK(get_gs() == 0);
	CHECK_ERR(arch_prctl(-1, 0), EINVAL);
	CHECK_ERR(arch_prctl(ARCH_SET_GS, 1UL << 63), EPERM);
	if (base && k % 4 == 1)
		set_gs(base);
	else if (base)
		CHECK_OK(arch_prctl(ARCH_SET_GS, base));
	for (int i = 0; i < ROUNDS; i++) {
		CHECK(get_gs() == base);
		usleep(50);
	}
	finish(start(inherits, (void *)(intptr_t)base));
	CHECK(get_gs() == base);
	return arg;
}

static void run(void)
{
	pthread_t threads[THREADS];

	for (intptr_t k = 0; k < THREADS; k++)
		threads[k] = start(keeps, (void *)k);
	for (int k = 0; k < THREADS; k++)
		finish(threads[k]);
	CHECK(get_gs() == 0);
}
#endif

int main(void)
{
#if defined(__x86_64__)
	if (has_gs_instructions())
		run();
#endif
	return success();
}
