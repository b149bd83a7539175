/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/signal/signal_sysv.c - System V's and BSD's words: sigset, sighold,
 * sigpause, sigblock, bsd_signal, sysv_signal, siginterrupt.
 */
#include "check.h"

#include <dlfcn.h>

extern int __sigpause(int sig_or_mask, int is_sig);
extern int __xpg_sigpause(int sig);
extern int bsd_sigpause(int mask) __asm__("sigpause");
extern __sighandler_t sysv_signal(int sig, __sighandler_t handler);
extern __sighandler_t bsd_signal(int sig, __sighandler_t handler);

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static __thread volatile sig_atomic_t handled;

static void count(int sig)
{
	(void)sig;
	handled++;
}

static int is_blocked(int sig)
{
	sigset_t set;

	CHECK_OK(pthread_sigmask(SIG_BLOCK, NULL, &set));
	return sigismember(&set, sig);
}

static pthread_t target;

static void *pokes(void *arg)
{
	usleep(2000);
	CHECK_OK(pthread_kill(target, (int)(intptr_t)arg));
	return NULL;
}

/* Nobody can wait for a signal that has come before. */
static volatile sig_atomic_t paused;

static void *pokes_until(void *arg)
{
	while (!paused)
		pokes(arg);
	return NULL;
}

static pthread_t poke(int sig)
{
	target = pthread_self();
	return start(pokes, (void *)(intptr_t)sig);
}

static void holding(void)
{
	handled = 0;
	CHECK(sigset(SIGUSR1, count) == SIG_DFL);
	CHECK_OK(sighold(SIGUSR1));
	CHECK_INT(is_blocked(SIGUSR1), 1);
	CHECK_OK(raise(SIGUSR1));
	CHECK_INT(handled, 0);
	CHECK_OK(sigrelse(SIGUSR1));
	CHECK_INT(handled, 1);
	CHECK(sigset(SIGUSR1, SIG_HOLD) == count);
	CHECK(sigset(SIGUSR1, SIG_HOLD) == SIG_HOLD);
	CHECK_INT(is_blocked(SIGUSR1), 1);
	CHECK(sigset(SIGUSR1, count) == SIG_HOLD);
	CHECK_INT(is_blocked(SIGUSR1), 0);
	CHECK_OK(sigignore(SIGUSR1));
	CHECK_OK(raise(SIGUSR1));
	CHECK_INT(handled, 1);
	CHECK(sigset(SIGUSR1, SIG_DFL) == SIG_IGN);
	CHECK_ERR(sighold(1000), EINVAL);
	CHECK_ERR(sigignore(0), EINVAL);
	CHECK(sigset(1000, count) == SIG_ERR);
}

static void pausing(void)
{
	pthread_t t;
	int old;

	CHECK(signal(SIGUSR2, count) == SIG_DFL);
	handled = 0;
	CHECK_OK(sighold(SIGUSR2));
	t = poke(SIGUSR2);
	CHECK_ERR(__xpg_sigpause(SIGUSR2), EINTR);
	CHECK_INT(handled, 1);
	CHECK_INT(is_blocked(SIGUSR2), 1);
	finish(t);
	t = poke(SIGUSR2);
	CHECK_ERR(__sigpause(SIGUSR2, 1), EINTR);
	finish(t);
	t = poke(SIGUSR2);
	CHECK_ERR(bsd_sigpause(0), EINTR);
	CHECK_INT(handled, 3);
	finish(t);
	CHECK_OK(sigrelse(SIGUSR2));
	old = sigblock(1 << (SIGUSR2 - 1));
	CHECK_INT(old, 0);
	/* By name, since the linker warns of it. */
	int (*get_mask)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "siggetmask");

	CHECK(get_mask != NULL);
	CHECK_INT(get_mask(), 1 << (SIGUSR2 - 1));
	CHECK_OK(raise(SIGUSR2));
	CHECK_INT(handled, 3);
	CHECK_INT(sigsetmask(0), 1 << (SIGUSR2 - 1));
	CHECK_INT(handled, 4);
	paused = 0;
	t = start(pokes_until, (void *)(intptr_t)SIGUSR2);
	CHECK_ERR(pause(), EINTR);
	paused = 1;
	CHECK(handled >= 5);
	finish(t);
}

/* Does a read go on after a handler?  Asked by the flags alone. */
static void flags(void)
{
	struct sigaction sa;

	CHECK(bsd_signal(SIGHUP, count) == SIG_DFL);
	CHECK_OK(sigaction(SIGHUP, NULL, &sa));
	CHECK(sa.sa_handler == count);
	CHECK_INT(sa.sa_flags & SA_RESTART, SA_RESTART);
	CHECK_OK(siginterrupt(SIGHUP, 1));
	CHECK_OK(sigaction(SIGHUP, NULL, &sa));
	CHECK_INT(sa.sa_flags & SA_RESTART, 0);
	CHECK(signal(SIGHUP, count) == count);
	CHECK_OK(sigaction(SIGHUP, NULL, &sa));
	CHECK_INT(sa.sa_flags & SA_RESTART, 0);
	CHECK_OK(siginterrupt(SIGHUP, 0));
	CHECK_OK(sigaction(SIGHUP, NULL, &sa));
	CHECK_INT(sa.sa_flags & SA_RESTART, SA_RESTART);
	/* Once, and not blocked meanwhile. */
	handled = 0;
	CHECK(sysv_signal(SIGHUP, count) == count);
	CHECK_OK(raise(SIGHUP));
	CHECK_INT(handled, 1);
	CHECK_OK(sigaction(SIGHUP, NULL, &sa));
	CHECK(sa.sa_handler == SIG_DFL);
	CHECK_ERR(siginterrupt(1000, 1), EINVAL);
	CHECK(signal(SIGKILL, count) == SIG_ERR);
	CHECK(gsignal(SIGUSR2) == 0);
}

static volatile sig_atomic_t depth, deepest, raised;

static void nests(int sig)
{
	if (++depth > deepest)
		deepest = depth;
	if (raised++ < 2)
		raise(sig);
	depth--;
}

static void nodefer(void)
{
	struct sigaction sa = { .sa_handler = nests, .sa_flags = SA_NODEFER };

	CHECK_OK(sigaction(SIGHUP, &sa, NULL));
	CHECK_OK(raise(SIGHUP));
	CHECK_INT(deepest, 3);
	CHECK_INT(raised, 3);
	deepest = raised = 0;
	sa.sa_flags = 0;
	CHECK_OK(sigaction(SIGHUP, &sa, NULL));
	CHECK_OK(raise(SIGHUP));
	/* Each as soon as the one before has returned. */
	CHECK_INT(raised, 3);
	CHECK_INT(deepest, 1);
	deepest = raised = 0;
	signal(SIGHUP, SIG_DFL);
}

static void *all(void *arg)
{
	holding();
	pausing();
	flags();
	nodefer();
	signal(SIGUSR2, SIG_DFL);
	return arg;
}

int main(void)
{
	finish(start(all, NULL));
	puts("in a thread");
	all(NULL);
	puts("in the main thread");
	return success();
}
