/* SPDX-License-Identifier: MIT */
/* tests/programs/thread/thread_attr.c - stacks, guards and states asked for by attributes. */
#include "check.h"

#include <limits.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

static struct event gone = EVENT_INIT;

struct want {
	size_t size, guard;
	void *stack;
	int state;
};

static void *inspect(void *arg)
{
	struct want *want = arg;
	pthread_attr_t attr;
	size_t size, guard;
	void *base;
	int state;

	CHECK_OK(pthread_getattr_np(pthread_self(), &attr));
	CHECK_OK(pthread_attr_getstack(&attr, &base, &size));
	CHECK_OK(pthread_attr_getguardsize(&attr, &guard));
	CHECK_OK(pthread_attr_getdetachstate(&attr, &state));
	CHECK((char *)base < (char *)&attr);
	CHECK((char *)&attr < (char *)base + size);
	CHECK(size >= want->size);
	CHECK_INT(state, want->state);
	if (want->stack) {
		CHECK(base == want->stack);
		CHECK_INT(size, want->size);
	} else if (want->guard) {
		CHECK_INT(guard, (want->guard + 4095) & ~(size_t)4095);
	}
	CHECK_OK(pthread_attr_destroy(&attr));
	/* libc and its TLS take a little of it. */
	dig(want->size > 65536 ? want->size - 16384 : want->size / 4);
	event_post(&gone);
	return arg;
}

static void *nothing(void *arg)
{
	return arg;
}

static void try_sizes(const char *what, size_t stack, size_t guard)
{
	pthread_attr_t attr;
	pthread_t t;
	int err;

	CHECK_OK(pthread_attr_init(&attr));
	CHECK_OK(pthread_attr_setstacksize(&attr, stack));
	CHECK_OK(pthread_attr_setguardsize(&attr, guard));
	err = pthread_create(&t, &attr, nothing, NULL);
	if (!err)
		CHECK(finish(t) == NULL);
	CHECK_OK(pthread_attr_destroy(&attr));
	printf("%s: %s\n", what, err ? strerrorname_np(err) : "made");
}

/* More than any memory could hold, and no more than an address space can. */
static void huge(void)
{
	const size_t some = 1 << 20, giga = 1 << 30, tera = giga << 10;

	try_sizes("a stack of 64 TB", 64 * tera, 4096);
	try_sizes("a stack of 1 EB", tera << 20, 4096);
	try_sizes("a stack that wraps", (size_t)-4096, 4096);
	try_sizes("a guard of 64 GB", some, 64 * giga);
	try_sizes("a guard of 1 EB", some, tera << 20);
	try_sizes("a guard that wraps", some, (size_t)-1);
}

static void sizes(void)
{
	static const size_t size[] = { 16384, 20000, 65536, 100001, 262144,
				       1 << 20, 8 << 20, 64 << 20 };
	pthread_attr_t attr;
	size_t got;

	CHECK_OK(pthread_attr_init(&attr));
	CHECK_INT(pthread_attr_setstacksize(&attr, PTHREAD_STACK_MIN - 1), EINVAL);
	CHECK_INT(pthread_attr_setstacksize(&attr, 0), EINVAL);
	for (size_t i = 0; i < COUNT(size); i++) {
		/* Twice: what ended first may serve the second. */
		for (int j = 0; j < 2; j++) {
			struct want want = { size[i] & ~(size_t)4095, 0, NULL,
					     PTHREAD_CREATE_JOINABLE };
			pthread_t t;

			CHECK_OK(pthread_attr_setstacksize(&attr, size[i]));
			CHECK_OK(pthread_attr_getstacksize(&attr, &got));
			CHECK_INT(got, size[i]);
			CHECK_OK(pthread_create(&t, &attr, inspect, &want));
			CHECK(finish(t) == &want);
		}
	}
	/* A large one after small ones, never smaller than asked. */
	for (int i = 0; i < 40; i++) {
		struct want want = { i % 2 ? 65536 : 1 << 20, 0, NULL,
				     PTHREAD_CREATE_JOINABLE };
		pthread_t t;

		CHECK_OK(pthread_attr_setstacksize(&attr, want.size));
		CHECK_OK(pthread_create(&t, &attr, inspect, &want));
		finish(t);
	}
	CHECK_OK(pthread_attr_destroy(&attr));
	puts("sizes");
}

static void guards(void)
{
	static const size_t guard[] = { 0, 4096, 5000, 65536 };
	pthread_attr_t attr;
	size_t got;

	CHECK_OK(pthread_attr_init(&attr));
	CHECK_OK(pthread_attr_setstacksize(&attr, 1 << 20));
	for (size_t i = 0; i < COUNT(guard); i++) {
		struct want want = { (1 << 20) - guard[i], guard[i], NULL,
				     PTHREAD_CREATE_JOINABLE };
		pthread_t t;

		CHECK_OK(pthread_attr_setguardsize(&attr, guard[i]));
		CHECK_OK(pthread_attr_getguardsize(&attr, &got));
		CHECK_INT(got, guard[i]);
		CHECK_OK(pthread_create(&t, &attr, inspect, &want));
		finish(t);
	}
	CHECK_OK(pthread_attr_destroy(&attr));
	puts("guards");
}

static void detached(void)
{
	struct want want = { 65536, 0, NULL, PTHREAD_CREATE_DETACHED };
	pthread_attr_t attr;
	pthread_t t;
	int state;

	CHECK_OK(pthread_attr_init(&attr));
	CHECK_INT(pthread_attr_setdetachstate(&attr, 77), EINVAL);
	CHECK_OK(pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED));
	CHECK_OK(pthread_attr_getdetachstate(&attr, &state));
	CHECK_INT(state, PTHREAD_CREATE_DETACHED);
	gone.count = 0;
	for (int i = 0; i < 20; i++)
		CHECK_OK(pthread_create(&t, &attr, inspect, &want));
	event_wait(&gone, 20);
	CHECK_OK(pthread_attr_destroy(&attr));
	puts("detached");
}

static void own_stack(void)
{
	enum { SIZE = 1 << 20 };
	struct want want = { SIZE, 0, NULL, PTHREAD_CREATE_JOINABLE };
	pthread_attr_t attr;
	pthread_t t;

	want.stack = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	CHECK(want.stack != MAP_FAILED);
	CHECK_OK(pthread_attr_init(&attr));
	CHECK_INT(pthread_attr_setstack(&attr, want.stack, 100), EINVAL);
	CHECK_OK(pthread_attr_setstack(&attr, want.stack, SIZE));
	for (int i = 0; i < 10; i++) {
		CHECK_OK(pthread_create(&t, &attr, inspect, &want));
		finish(t);
	}
	CHECK_OK(pthread_attr_destroy(&attr));
	/* After the join the stack is the program's again. */
	memset(want.stack, 0xa5, SIZE);
	CHECK_OK(munmap(want.stack, SIZE));
	puts("own stack");
}

static void *overflow(void *arg)
{
	dig((size_t)1 << 30);
	return arg;
}

/* Running off the stack ends in the guard page, not in somebody's memory. */
static void guard_catches(void)
{
	int status;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (!pid) {
		struct rlimit none = { 0, 0 };

		CHECK_OK(setrlimit(RLIMIT_CORE, &none));
		signal(SIGSEGV, SIG_DFL);
		finish(start(overflow, NULL));
		_exit(0);
	}
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK(WIFSIGNALED(status));
	CHECK_INT(WTERMSIG(status), SIGSEGV);
	puts("guard catches");
}

static void others(void)
{
	struct sched_param param = { 0 };
	pthread_attr_t attr;
	int v;

	CHECK_OK(pthread_attr_init(&attr));
	CHECK_INT(pthread_attr_setscope(&attr, PTHREAD_SCOPE_PROCESS), ENOTSUP);
	CHECK_OK(pthread_attr_setscope(&attr, PTHREAD_SCOPE_SYSTEM));
	CHECK_OK(pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED));
	CHECK_OK(pthread_attr_setschedpolicy(&attr, SCHED_OTHER));
	CHECK_OK(pthread_attr_setschedparam(&attr, &param));
	CHECK_INT(pthread_attr_setschedpolicy(&attr, 99), EINVAL);
	CHECK_OK(pthread_attr_getinheritsched(&attr, &v));
	CHECK_INT(v, PTHREAD_EXPLICIT_SCHED);
	struct want want = { 65536, 0, NULL, PTHREAD_CREATE_JOINABLE };
	pthread_t t;

	CHECK_OK(pthread_create(&t, &attr, inspect, &want));
	finish(t);
	CHECK_OK(pthread_attr_destroy(&attr));
	puts("others");
}

/* What threads get that ask for nothing. */
static void defaults(void)
{
	struct want want = { 3 << 20, 3 * 65536, NULL, PTHREAD_CREATE_JOINABLE };
	pthread_attr_t old, attr;
	size_t size;

	CHECK_OK(pthread_getattr_default_np(&old));
	CHECK_OK(pthread_attr_init(&attr));
	CHECK_OK(pthread_attr_setstacksize(&attr, want.size));
	CHECK_OK(pthread_attr_setguardsize(&attr, want.guard));
	CHECK_OK(pthread_setattr_default_np(&attr));
	finish(start(inspect, &want));
	CHECK_OK(pthread_attr_destroy(&attr));
	CHECK_OK(pthread_getattr_default_np(&attr));
	CHECK_OK(pthread_attr_getstacksize(&attr, &size));
	CHECK_INT(size, want.size);
	/* A default can have no stack of its own. */
	CHECK_OK(pthread_attr_setstack(&attr, malloc(1 << 20), 1 << 20));
	CHECK_INT(pthread_setattr_default_np(&attr), EINVAL);
	finish(start(inspect, &want));
	CHECK_OK(pthread_setattr_default_np(&old));
	puts("defaults");
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	sizes();
	huge();
	guards();
	detached();
	own_stack();
	fflush(stdout);
	guard_catches();
	others();
	defaults();
	return success();
}
