/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/signal/signal_fault.c - faults are handled on the thread that made them, with
 * address and context; SIGPIPE is for the thread that wrote, and stays its own while
 * it blocks it.
 */
#include "check.h"

#include <setjmp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <ucontext.h>

/* The registers of an interrupted context, and an instruction that no CPU knows. */
#ifdef __x86_64__
#define SP_OF(uc) ((uc)->uc_mcontext.gregs[REG_RSP])
#define PC_OF(uc) ((uc)->uc_mcontext.gregs[REG_RIP])
#define BAD_INSTRUCTION "ud2"
#define BAD_SIZE 2
#else
#define SP_OF(uc) ((uc)->uc_mcontext.sp)
#define PC_OF(uc) ((uc)->uc_mcontext.pc)
#define BAD_INSTRUCTION "udf #0"
#define BAD_SIZE 4
#endif

enum { THREADS = 8, ROUNDS = 30 };

static __thread sigjmp_buf back;
static __thread pthread_t me;
static __thread volatile int expected;
static __thread char *volatile address;
static __thread volatile int seen;

static void fault(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	char here;

	CHECK(pthread_equal(me, pthread_self()));
	CHECK_INT(sig, expected);
	CHECK(info->si_code > 0);
	if (address)
		CHECK(info->si_addr == address);
	/* It was this thread's stack. */
	CHECK((uintptr_t)SP_OF(uc) - (uintptr_t)&here < 1 << 20);
	seen++;
	usleep(50);
	siglongjmp(back, 1);
}

/* Goes on behind the instruction. */
static void skips(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	CHECK_INT(sig, SIGILL);
	CHECK((uintptr_t)info->si_addr == (uintptr_t)PC_OF(uc));
	sched_yield();
	PC_OF(uc) += BAD_SIZE;
	seen++;
}

static char *file_page, *volatile nowhere = (char *)16;

static void one_round(int i)
{
	volatile int zero = 0;

	expected = SIGSEGV;
	address = (char *)(uintptr_t)(0x1000 + 16 * i);
	if (!sigsetjmp(back, 1))
		*(volatile char *)address = 1;
	expected = SIGFPE;
	address = NULL;
	if (!sigsetjmp(back, 1))
		seen += 10 / zero;
	expected = SIGBUS;
	address = file_page + i;
	if (!sigsetjmp(back, 1))
		*(volatile char *)address = 1;
	__asm__ volatile(BAD_INSTRUCTION);
	usleep(100);
}

static void *faults(void *arg)
{
	me = pthread_self();
	seen = 0;
	for (int i = 0; i < ROUNDS; i++)
		one_round(i);
	CHECK_INT(seen, 4 * ROUNDS);
	return arg;
}

static void handle(int sig, void (*fn)(int, siginfo_t *, void *))
{
	struct sigaction sa = { .sa_sigaction = fn, .sa_flags = SA_SIGINFO };

	CHECK_OK(sigaction(sig, &sa, NULL));
}

/* ---- SIGPIPE ------------------------------------------------------------------ */

static void broken(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)info;
	(void)context;
	CHECK(pthread_equal(me, pthread_self()));
	seen++;
}

/* Somebody writes to it, and waits for room or is about to. */
static void *reads_one_and_closes(void *arg)
{
	char c;

	CHECK_INT(read(*(int *)arg, &c, 1), 1);
	CHECK_OK(close(*(int *)arg));
	return NULL;
}

/* SIGPIPE is blocked, and comes when a part is written: with the count. */
static void write_in_part(const sigset_t *set)
{
	static const char large[1 << 20];
	const struct timespec none = { 0 };
	pthread_t t;
	int p[2];

	CHECK_OK(pipe(p));
	t = start(reads_one_and_closes, &p[0]);
	CHECK(write(p[1], large, sizeof(large)) > 0);
	usleep(100);
	CHECK_INT(sigtimedwait(set, NULL, &none), SIGPIPE);
	finish(t);
	CHECK_OK(close(p[1]));
}

static void *writes(void *arg)
{
	sigset_t set, old, pending;
	struct timespec none = { 0 };

	me = pthread_self();
	seen = 0;
	sigemptyset(&set);
	sigaddset(&set, SIGPIPE);
	for (int i = 0; i < ROUNDS; i++) {
		int p[2], q[2], s[2];

		CHECK_OK(pipe(p));
		CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, s));
		close(p[0]);
		close(s[0]);
		CHECK_ERR(write(p[1], "x", 1), EPIPE);
		CHECK_INT(seen, 1);
		CHECK_ERR(write(s[1], "x", 1), EPIPE);
		CHECK_INT(seen, 2);
		CHECK_ERR(send(s[1], "x", 1, MSG_NOSIGNAL), EPIPE);
		CHECK_INT(seen, 2);
		/* As libpq does it: block, write, take it away. */
		CHECK_OK(pthread_sigmask(SIG_BLOCK, &set, &old));
		CHECK_ERR(write(i % 2 ? p[1] : s[1], "x", 1), EPIPE);
		usleep(100);
		CHECK_OK(sigpending(&pending));
		CHECK_INT(sigismember(&pending, SIGPIPE), 1);
		CHECK_INT(sigtimedwait(&set, NULL, &none), SIGPIPE);
		CHECK_OK(sigpending(&pending));
		CHECK_INT(sigismember(&pending, SIGPIPE), 0);
		/* Likewise by moving data from where there are some. */
		CHECK_OK(pipe(q));
		CHECK_INT(write(q[1], "x", 1), 1);
		CHECK_ERR(splice(q[0], NULL, p[1], NULL, 1, 0), EPIPE);
		close(q[0]);
		close(q[1]);
		usleep(100);
		CHECK_INT(sigtimedwait(&set, NULL, &none), SIGPIPE);
		write_in_part(&set);
		CHECK_OK(pthread_sigmask(SIG_SETMASK, &old, NULL));
		CHECK_INT(seen, 2);
		seen = 0;
		close(p[1]);
		close(s[1]);
	}
	return arg;
}

/* ---- nobody handles it ----------------------------------------------------------- */

static void *dies(void *arg)
{
	int how = *(int *)arg;
	volatile int zero = 0;
	sigset_t set;

	switch (how) {
	case 0: *(volatile char *)nowhere = 1; break;
	case 1: nowhere += 10 / zero; break;
	case 2: __builtin_trap();
	case 3: abort();
	case 4:
		/* Blocked, a fault ends the process all the same. */
		sigfillset(&set);
		pthread_sigmask(SIG_BLOCK, &set, NULL);
		*(volatile char *)nowhere = 1;
		break;
	case 5: raise(SIGTERM); break;
	case 6: pthread_kill(pthread_self(), SIGKILL); break;
	}
	return arg;
}

static void *sleeps(void *arg)
{
	pause();
	return arg;
}

static void ends_by(int how, int sig)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		for (int s = 1; s < 32; s++)
			signal(s, SIG_DFL);
		start(sleeps, NULL);
		start(dies, &how);
		pause();
		_exit(0);
	}
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK(WIFSIGNALED(status));
	CHECK_INT(WTERMSIG(status), sig);
}

int main(void)
{
	char name[] = "/tmp/signal_fault.XXXXXX";
	int fd = mkstemp(name);
	pthread_t t[THREADS];

	CHECK_OK(unlink(name));
	file_page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(file_page != MAP_FAILED);
	handle(SIGSEGV, fault);
	handle(SIGFPE, fault);
	handle(SIGBUS, fault);
	handle(SIGILL, skips);
	for (int i = 0; i < THREADS; i++)
		t[i] = start(faults, NULL);
	faults(NULL);
	for (int i = 0; i < THREADS; i++)
		finish(t[i]);
	puts("faults");
	handle(SIGPIPE, broken);
	for (int i = 0; i < THREADS; i++)
		t[i] = start(writes, NULL);
	writes(NULL);
	for (int i = 0; i < THREADS; i++)
		finish(t[i]);
	puts("SIGPIPE");
	ends_by(0, SIGSEGV);
	ends_by(1, SIGFPE);
	ends_by(2, SIGILL);
	ends_by(3, SIGABRT);
	ends_by(4, SIGSEGV);
	ends_by(5, SIGTERM);
	ends_by(6, SIGKILL);
	puts("not handled");
	return success();
}
