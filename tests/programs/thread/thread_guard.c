/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/thread/thread_guard.c - threads that guard their own stacks, as Java's do.
 *
 * Each maps and protects the lowest pages of what pthread_getattr_np says, finds
 * by them that its stack has overflowed, and leaves them there for whoever has
 * that stack next.
 */
#include "check.h"

#include <setjmp.h>
#include <sys/mman.h>

#define GUARD 16384
#define KB ((size_t)1 << 10)
#define MB ((size_t)1 << 20)

static __thread sigjmp_buf back;
static __thread char *bottom;
static __thread volatile int hits;

static void overflow(int sig, siginfo_t *info, void *context)
{
	char *address = info->si_addr;

	(void)sig;
	(void)context;
	if (address < bottom || address >= bottom + GUARD) {
		static const char text[] = "a fault that is not in its guard\n";

		_exit(write(2, text, sizeof(text) - 1) < 0 ? 2 : 3);
	}
	hits++;
	siglongjmp(back, 1);
}

static size_t find_stack(char *middle)
{
	pthread_attr_t attr;
	size_t size;
	void *low;

	CHECK_OK(pthread_getattr_np(pthread_self(), &attr));
	CHECK_OK(pthread_attr_getstack(&attr, &low, &size));
	CHECK_OK(pthread_attr_destroy(&attr));
	CHECK_INT((uintptr_t)low % (uintptr_t)sysconf(_SC_PAGESIZE), 0);
	CHECK((char *)low < middle);
	CHECK(middle < (char *)low + size);
	bottom = low;
	return size;
}

static void *guarded(void *arg)
{
	static _Thread_local char alternate[65536];
	stack_t stack = { .ss_sp = alternate, .ss_size = sizeof(alternate) };
	size_t want = *(size_t *)arg;
	size_t size = find_stack((char *)&stack);

	CHECK(size >= want);
	CHECK(mmap(bottom, GUARD, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == bottom);
	CHECK_INT(mprotect(bottom, GUARD, PROT_NONE), 0);
	CHECK_INT(sigaltstack(&stack, NULL), 0);
	hits = 0;
	for (int i = 0; i < 3; i++) {
		if (sigsetjmp(back, 1) == 0) {
			dig(size + MB);
			CHECK(!"no overflow");
		}
		usleep(100);
	}
	CHECK_INT(hits, 3);
	stack.ss_flags = SS_DISABLE;
	CHECK_INT(sigaltstack(&stack, NULL), 0);
	return arg;
}

/* Needs almost all that it asked for. */
static void *deep(void *arg)
{
	char here;

	find_stack(&here);
	/* Its TLS is in there, too, and what may be left of a guard. */
	dig(*(size_t *)arg - 160 * KB);
	return arg;
}

static void run(size_t size, int count, void *(*start)(void *))
{
	pthread_attr_t attr;
	pthread_t t[16];

	CHECK_OK(pthread_attr_init(&attr));
	CHECK_OK(pthread_attr_setstacksize(&attr, size));
	/* Java asks for none. */
	CHECK_OK(pthread_attr_setguardsize(&attr, 0));
	for (int i = 0; i < count; i++)
		CHECK_OK(pthread_create(&t[i], &attr, start, &size));
	for (int i = 0; i < count; i++)
		CHECK(finish(t[i]) == &size);
	CHECK_OK(pthread_attr_destroy(&attr));
}

int main(void)
{
	struct sigaction action = { .sa_sigaction = overflow,
				    .sa_flags = SA_SIGINFO | SA_ONSTACK };

	CHECK_INT(sigaction(SIGSEGV, &action, NULL), 0);
	for (int i = 0; i < 3; i++) {
		run(2 * MB, 16, guarded);
		/* These may have the stacks of the others, which are larger. */
		run(MB + 256 * KB, 16, guarded);
		run(2 * MB, 16, deep);
		run(MB + 100001, 16, guarded);
		run(2 * MB, 16, deep);
	}
	puts("EXIT-SUCCESS");
	return 0;
}
