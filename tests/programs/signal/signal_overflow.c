/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/signal/signal_overflow.c [dies] - a stack that overflows, in a thread's own code and in
 * calls: a handler on an alternate stack learns where, and may leave by siglongjmp; without
 * one the process dies of SIGSEGV.
 */
#include "check.h"

#include <poll.h>
#include <semaphore.h>
#include <setjmp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <ucontext.h>

#ifdef __x86_64__
#define SP_OF(uc) ((uintptr_t)(uc)->uc_mcontext.gregs[REG_RSP])
#else
#define SP_OF(uc) ((uintptr_t)(uc)->uc_mcontext.sp)
#endif

enum { STACK = 256 * 1024, GUARD = 65536, ALT = 65536, THREADS = 2, OFFSETS = 8 };

static __thread sigjmp_buf back;
static __thread char *low;
static __thread pthread_t me;
static __thread volatile int overflows;
static int pipe_fd[2], sock[2], null;
static sem_t never;

/* ---- ways to use up a stack --------------------------------------------------- */

static void computes(void)
{
}

static void yields(void)
{
	sched_yield();
}

static void sleeps(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 1 }, NULL);
}

static void polls(void)
{
	struct pollfd p = { .fd = pipe_fd[0], .events = POLLIN };

	poll(&p, 1, 0);
}

static void receives(void)
{
	char c;

	recv(sock[0], &c, 1, MSG_DONTWAIT);
}

static void waits(void)
{
	sem_timedwait(&never, &(struct timespec){ 1, 0 });
}

static void reads(void)
{
	char c;

	CHECK_INT(read(null, &c, 1), 0);
}

static const struct {
	const char *name;
	void (*call)(void);
} ways[] = {
	{ "code", computes },
	{ "sched_yield", yields },
	{ "nanosleep", sleeps },
	{ "poll", polls },
	{ "recv", receives },
	{ "sem_timedwait", waits },
	{ "read", reads },
};

/* Not inlined: a frame larger than the guard page would step over it. */
static __attribute__((noinline)) int deeper(void (*call)(void), int n)
{
	volatile char room[512];

	room[0] = (char)n;
	/* Only where it may be the last one. */
	if ((uintptr_t)room - (uintptr_t)low < 6144)
		call();
	if (n < 0)
		return 0;
	return deeper(call, n + 1) + room[0];
}

/* With so much more on the stack, for the end to be met elsewhere. */
static void overflow(void (*call)(void), int more)
{
	volatile char room[more + 1];

	room[0] = room[more] = 0;
	deeper(call, 0);
}

/* ---- handled -------------------------------------------------------------------- */

static void overflowed(int sig, siginfo_t *info, void *context)
{
	uintptr_t address = (uintptr_t)info->si_addr, sp = SP_OF((ucontext_t *)context);
	char here;

	CHECK_INT(sig, SIGSEGV);
	CHECK(info->si_code == SEGV_ACCERR || info->si_code == SEGV_MAPERR);
	CHECK(pthread_equal(me, pthread_self()));
	/* In the guard area, where the stack pointer is; we are elsewhere. */
	CHECK(address >= (uintptr_t)low - GUARD);
	CHECK(address < (uintptr_t)low + 4096);
	CHECK(sp + 8192 > address && sp < address + 8192);
	CHECK((uintptr_t)&here - sp + STACK > 2 * STACK);
	overflows++;
	siglongjmp(back, 1);
}

static void find_low(void)
{
	pthread_attr_t attr;
	void *base;
	size_t size;

	CHECK_OK(pthread_getattr_np(pthread_self(), &attr));
	CHECK_OK(pthread_attr_getstack(&attr, &base, &size));
	CHECK_OK(pthread_attr_destroy(&attr));
	low = base;
}

static void *overflows_often(void *arg)
{
	stack_t stack = { .ss_sp = malloc(ALT), .ss_size = ALT };

	me = pthread_self();
	find_low();
	CHECK_OK(sigaltstack(&stack, NULL));
	for (size_t i = 0; i < COUNT(ways); i++) {
		overflows = 0;
		for (volatile int more = 0; more < OFFSETS; more++)
			if (sigsetjmp(back, 1) == 0)
				overflow(ways[i].call, more * 112);
		CHECK_INT(overflows, OFFSETS);
		/* Nothing is the worse for it. */
		usleep(100);
	}
	stack.ss_flags = SS_DISABLE;
	CHECK_OK(sigaltstack(&stack, NULL));
	free(stack.ss_sp);
	return arg;
}

static pthread_t start_small(void *(*fn)(void *), void *arg)
{
	pthread_attr_t attr;
	pthread_t t;

	CHECK_OK(pthread_attr_init(&attr));
	CHECK_OK(pthread_attr_setstacksize(&attr, STACK));
	CHECK_OK(pthread_attr_setguardsize(&attr, GUARD));
	CHECK_OK(pthread_create(&t, &attr, fn, arg));
	CHECK_OK(pthread_attr_destroy(&attr));
	return t;
}

static void handled(void)
{
	struct sigaction sa = { .sa_sigaction = overflowed, .sa_flags = SA_SIGINFO | SA_ONSTACK };
	pthread_t t[THREADS];

	CHECK_OK(sigaction(SIGSEGV, &sa, NULL));
	for (int i = 0; i < THREADS; i++)
		t[i] = start_small(overflows_often, NULL);
	overflows_often(NULL);
	for (int i = 0; i < THREADS; i++)
		finish(t[i]);
	for (size_t i = 0; i < COUNT(ways); i++)
		printf("%s: handled\n", ways[i].name);
}

/* ---- not handled ------------------------------------------------------------------ */

static void *dies(void *arg)
{
	find_low();
	pthread_setname_np(pthread_self(), "digger");
	overflow(ways[*(size_t *)arg].call, 0);
	return arg;
}

static void *pauses(void *arg)
{
	pause();
	return arg;
}

static void ignored(int sig)
{
	(void)sig;
	_exit(1);
}

/* A handler has no stack to run on. */
static void not_handled(size_t way, int handler, int by_main)
{
	int status;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		struct rlimit none = { 0, 0 };

		CHECK_OK(setrlimit(RLIMIT_CORE, &none));
		signal(SIGSEGV, handler ? ignored : SIG_DFL);
		if (by_main) {
			start(pauses, NULL);
			dies(&way);
		}
		finish(start_small(dies, &way));
		_exit(0);
	}
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK(WIFSIGNALED(status));
	CHECK_INT(WTERMSIG(status), SIGSEGV);
}

int main(int argc, char **argv)
{
	size_t way = 0;

	(void)argv;
	CHECK_OK(pipe(pipe_fd));
	null = open("/dev/null", O_RDONLY);
	CHECK(null >= 0);
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, sock));
	CHECK_OK(sem_init(&never, 0, 0));
	if (argc > 1) {
		finish(start_small(dies, &way));
		return 1;
	}
	handled();
	for (way = 0; way < COUNT(ways); way++)
		for (int handler = 0; handler < 2; handler++)
			for (int by_main = 0; by_main < 2; by_main++)
				not_handled(way, handler, by_main);
	puts("not handled");
	return success();
}
