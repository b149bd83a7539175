/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/signal/signal_place.c - a handler that interrupts a CPU-bound thread learns
 * the interrupted instruction, whichever way the signal was sent, and can make the thread
 * continue elsewhere.
 */
#include "check.h"

#include <sys/time.h>
#include <ucontext.h>

enum { THREADS = 3, ROUNDS = 20, SIG = SIGUSR1, TO_PROCESS = SIGURG, REDIRECT = SIGUSR2 };

#if defined(__x86_64__)
#define PC(uc) ((uc)->uc_mcontext.gregs[REG_RIP])
#elif defined(__aarch64__)
#define PC(uc) ((uc)->uc_mcontext.pc)
#endif

/* Begin and end of the section `computing`. */
extern const char __start_computing[], __stop_computing[];

static _Atomic int begun, inside, outside, redirected;
static volatile int stop;

static int is_inside(const ucontext_t *uc)
{
	uintptr_t pc = (uintptr_t)PC(uc);

	return pc >= (uintptr_t)__start_computing && pc < (uintptr_t)__stop_computing;
}

static void note_place(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)info;
	*(is_inside(context) ? &inside : &outside) += 1;
}

__attribute__((noinline, section("computing"))) static void *compute(void *arg)
{
	begun++;
	while (!stop)
		continue;
	return arg;
}

/* Where no call of this is to return to. */
static void computes_no_more(void)
{
	pthread_exit(&begun);
}

static void redirect(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	(void)sig;
	(void)info;
	if (!is_inside(uc))
		return;
	redirected++;
	/* No return address: pthread_exit() unwinds up to there. */
#if defined(__x86_64__)
	/* Below the red zone, and aligned as on entry of a function. */
	uc->uc_mcontext.gregs[REG_RSP] =
		((uc->uc_mcontext.gregs[REG_RSP] - 256) & ~15LL) - 8;
	*(void **)uc->uc_mcontext.gregs[REG_RSP] = NULL;
#elif defined(__aarch64__)
	uc->uc_mcontext.regs[30] = 0;
#endif
	PC(uc) = (__typeof__(PC(uc)))(uintptr_t)computes_no_more;
}

static void handle(int sig, void (*handler)(int, siginfo_t *, void *))
{
	struct sigaction sa = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART };

	/* It is to interrupt the computing, not a handler that has: there it would find no place to redirect. */
	sigaddset(&sa.sa_mask, REDIRECT);
	CHECK_OK(sigaction(sig, &sa, NULL));
}

static void until(int n)
{
	while (inside + outside < n)
		usleep(500);
}

int main(void)
{
	const struct itimerval often = { { 0, 5000 }, { 0, 5000 } }, never = { { 0, 0 }, { 0, 0 } };
	pthread_t t[THREADS];
	sigset_t set;
	void *result;

	handle(SIG, note_place);
	handle(TO_PROCESS, note_place);
	handle(SIGALRM, note_place);
	handle(REDIRECT, redirect);
	for (int i = 0; i < THREADS; i++)
		t[i] = start(compute, NULL);
	while (begun < THREADS)
		usleep(500);
	/* Now only they accept what is sent to the process. */
	sigemptyset(&set);
	sigaddset(&set, TO_PROCESS);
	sigaddset(&set, SIGALRM);
	CHECK_OK(pthread_sigmask(SIG_BLOCK, &set, NULL));

	for (int i = 0; i < ROUNDS; i++) {
		for (int k = 0; k < THREADS; k++)
			CHECK_OK(pthread_kill(t[k], SIG));
		until((i + 1) * THREADS);
	}
	CHECK_INT(inside, THREADS * ROUNDS);

	inside = outside = 0;
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_OK(kill(getpid(), TO_PROCESS));
		until(i + 1);
	}
	CHECK_INT(inside, ROUNDS);

	inside = outside = 0;
	CHECK_OK(setitimer(ITIMER_REAL, &often, NULL));
	until(ROUNDS);
	CHECK_OK(setitimer(ITIMER_REAL, &never, NULL));
	CHECK_OK(outside);

	for (int i = 0; i < THREADS; i++)
		CHECK_OK(pthread_kill(t[i], REDIRECT));
	for (int i = 0; i < THREADS; i++) {
		CHECK_OK(pthread_join(t[i], &result));
		CHECK(result == &begun);
	}
	CHECK_INT(redirected, THREADS);
	return success();
}
