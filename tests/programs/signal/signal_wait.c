/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/signal/signal_wait.c - sigwait and its kin, while other threads do not block
 * the signals; and signalfd.
 */
#include "check.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

static sigset_t set_of(int a, int b)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, a);
	if (b)
		sigaddset(&set, b);
	return set;
}

static volatile int stop;

static void *sleeps(void *arg)
{
	while (!stop)
		usleep(2000);
	return arg;
}

static void *computes(void *arg)
{
	while (!stop)
		sched_yield();
	return arg;
}

/* ---- the main thread waits, the workers would die of it ------------------- */

static volatile int about_to_wait = 1;

/*
 * Long enough after the main thread was about to wait: before it does, a thread that
 * has the signal unblocked would take it, and the process end.
 */
static void *sends_later(void *arg)
{
	while (!about_to_wait)
		usleep(1000);
	usleep(stop ? 2000 : 50000);
	CHECK_OK(kill(getpid(), (int)(intptr_t)arg));
	return NULL;
}

static void workers_unblocked(void)
{
	sigset_t set = set_of(SIGTERM, SIGINT);
	pthread_t workers[6], t;
	int sig;

	stop = 0;
	for (int i = 0; i < 6; i++)
		workers[i] = start(i % 2 ? computes : sleeps, NULL);
	CHECK_OK(pthread_sigmask(SIG_BLOCK, &set, NULL));
	for (int i = 0; i < 8; i++) {
		int want = i % 2 ? SIGTERM : SIGINT;
		siginfo_t info;

		about_to_wait = 0;
		t = start(sends_later, (void *)(intptr_t)want);
		about_to_wait = 1;
		if (i % 3) {
			CHECK_OK(sigwait(&set, &sig));
			CHECK_INT(sig, want);
		} else {
			CHECK_INT(sigwaitinfo(&set, &info), want);
			CHECK_INT(info.si_signo, want);
			CHECK_INT(info.si_pid, getpid());
			CHECK_INT(info.si_code, SI_USER);
		}
		finish(t);
	}
	stop = 1;
	for (int i = 0; i < 6; i++)
		finish(workers[i]);
	puts("workers have it unblocked");
}

/* ---- everything in the set ------------------------------------------------ */

static void whole_set(void)
{
	pthread_t t;
	sigset_t set, old;
	int sig, status;
	pid_t pid;

	sigfillset(&set);
	CHECK_OK(pthread_sigmask(SIG_BLOCK, &set, &old));
	t = start(sends_later, (void *)(intptr_t)SIGHUP);
	CHECK_OK(sigwait(&set, &sig));
	CHECK_INT(sig, SIGHUP);
	finish(t);
	pid = fork();
	if (pid == 0)
		_exit(3);
	do {
		CHECK_OK(sigwait(&set, &sig));
	} while (sig != SIGCHLD);
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK_INT(WEXITSTATUS(status), 3);
	CHECK_OK(pthread_sigmask(SIG_SETMASK, &old, NULL));
	/* By default it is ignored again, and a call is not interrupted. */
	pid = fork();
	if (pid == 0)
		_exit(4);
	CHECK_INT(waitpid(pid, &status, 0), pid);
	puts("whole set");
}

/* ---- ignored, as nohup leaves SIGHUP -------------------------------------- */

static void ignored(void)
{
	sigset_t set = set_of(SIGHUP, 0);
	struct sigaction sa;
	pthread_t t;
	int sig, status;
	pid_t pid;

	CHECK(signal(SIGHUP, SIG_IGN) == SIG_DFL);
	mask_signal(SIG_BLOCK, SIGHUP);
	t = start(sends_later, (void *)(intptr_t)SIGHUP);
	CHECK_OK(sigwait(&set, &sig));
	CHECK_INT(sig, SIGHUP);
	finish(t);
	CHECK_OK(sigaction(SIGHUP, NULL, &sa));
	CHECK(sa.sa_handler == SIG_IGN);
	mask_signal(SIG_UNBLOCK, SIGHUP);
	CHECK_OK(kill(getpid(), SIGHUP));
	/* A child, and what it executes, ignore it, too. */
	pid = fork();
	if (pid == 0) {
		raise(SIGHUP);
		_exit(5);
	}
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK_INT(status, 5 << 8);
	CHECK_INT(system("kill -HUP $$; exit 6"), 6 << 8);
	CHECK(signal(SIGHUP, SIG_DFL) == SIG_IGN);
	pid = fork();
	if (pid == 0) {
		raise(SIGHUP);
		_exit(7);
	}
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK_INT(status, SIGHUP);
	puts("ignored");
}

/* ---- while ignored by all but a waiter, children are made ----------------- */

static void *waits_for_hup(void *arg)
{
	sigset_t set = set_of(SIGHUP, 0);
	int sig;

	CHECK_OK(sigwait(&set, &sig));
	return arg;
}

static void children_meanwhile(void)
{
	pthread_t t;

	mask_signal(SIG_BLOCK, SIGHUP);
	signal(SIGHUP, SIG_IGN);
	t = start(waits_for_hup, NULL);
	settle();
	mask_signal(SIG_UNBLOCK, SIGHUP);
	for (int i = 0; i < 5; i++)
		CHECK_INT(system("kill -HUP $$; exit 6"), 6 << 8);
	signal(SIGHUP, SIG_DFL);
	CHECK_OK(pthread_kill(t, SIGHUP));
	finish(t);
	puts("children meanwhile");
}

/* ---- timeouts and handlers ------------------------------------------------ */

static volatile sig_atomic_t handled;

static void count(int sig)
{
	(void)sig;
	handled++;
}

static void *kills_main(void *arg)
{
	usleep(3000);
	CHECK_OK(pthread_kill(*(pthread_t *)arg, SIGUSR2));
	return NULL;
}

static _Atomic int interrupted;

/* What comes before the call interrupts nothing. */
static void *keeps_killing_main(void *arg)
{
	while (!interrupted)
		kills_main(arg);
	return NULL;
}

static void endings(void)
{
	sigset_t set = set_of(SIGUSR1, 0);
	struct sigaction sa = { .sa_handler = count, .sa_flags = SA_RESTART };
	struct timespec ts = { 0, 3 * MS }, zero = { 0 }, bad = { 0, 1000000000 };
	pthread_t self = pthread_self(), t;
	long long before;
	siginfo_t info;
	int sig;

	mask_signal(SIG_BLOCK, SIGUSR1);
	CHECK_OK(sigaction(SIGUSR2, &sa, NULL));
	before = now(CLOCK_MONOTONIC);
	CHECK_ERR(sigtimedwait(&set, &info, &ts), EAGAIN);
	CHECK(now(CLOCK_MONOTONIC) - before >= 3 * MS);
	CHECK_ERR(sigtimedwait(&set, &info, &zero), EAGAIN);
	CHECK_ERR(sigtimedwait(&set, &info, &bad), EINVAL);
	/* Never restarted, SA_RESTART or not; sigwait knows no EINTR. */
	handled = 0;
	t = start(keeps_killing_main, &self);
	CHECK_ERR(sigwaitinfo(&set, &info), EINTR);
	CHECK(handled >= 1);
	interrupted = 1;
	finish(t);
	interrupted = 0;
	t = start(keeps_killing_main, &self);
	ts.tv_sec = 10;
	CHECK_ERR(sigtimedwait(&set, NULL, &ts), EINTR);
	interrupted = 1;
	finish(t);
	t = start(kills_main, &self);
	pthread_t later = start(sends_later, (void *)(intptr_t)SIGUSR1);
	CHECK_OK(sigwait(&set, &sig));
	CHECK_INT(sig, SIGUSR1);
	finish(t);
	finish(later);
	/* Pending before, for the thread and for the process. */
	CHECK_OK(raise(SIGUSR1));
	CHECK_INT(sigwaitinfo(&set, &info), SIGUSR1);
	CHECK_OK(kill(getpid(), SIGUSR1));
	CHECK_INT(sigtimedwait(&set, &info, &zero), SIGUSR1);
	CHECK_INT(info.si_code, SI_USER);
	sigset_t pending;
	CHECK_OK(kill(getpid(), SIGUSR1));
	CHECK_OK(sigpending(&pending));
	CHECK_INT(sigismember(&pending, SIGUSR1), 1);
	CHECK_OK(sigwait(&set, &sig));
	CHECK_OK(sigpending(&pending));
	CHECK_INT(sigismember(&pending, SIGUSR1), 0);
	puts("endings");
}

/* ---- many waiters, each signal to one of them ------------------------------ */

static _Atomic int taken;

static void *waits_many(void *arg)
{
	sigset_t set = set_of(SIGRTMIN + 1, SIGTERM);
	siginfo_t info;

	while (sigwaitinfo(&set, &info) == SIGRTMIN + 1)
		taken++;
	return arg;
}

static void many_waiters(void)
{
	enum { WAITERS = 8, SIGNALS = 400 };
	pthread_t t[WAITERS];

	mask_signal(SIG_BLOCK, SIGRTMIN + 1);
	for (int i = 0; i < WAITERS; i++)
		t[i] = start(waits_many, NULL);
	for (int i = 0; i < SIGNALS; i++)
		CHECK_OK(sigqueue(getpid(), SIGRTMIN + 1, (union sigval){ 0 }));
	while (taken < SIGNALS)
		usleep(500);
	for (int i = 0; i < WAITERS; i++)
		CHECK_OK(pthread_kill(t[i], SIGTERM));
	for (int i = 0; i < WAITERS; i++)
		finish(t[i]);
	CHECK_INT(taken, SIGNALS);
	puts("many waiters");
}

/* ---- cancelled in it ------------------------------------------------------- */

static void *waits_for_ever(void *arg)
{
	sigset_t set = set_of(SIGUSR1, 0);
	int sig;

	sigwait(&set, &sig);
	return arg;
}

static void cancelled(void)
{
	pthread_t t = start(waits_for_ever, NULL);
	sigset_t set = set_of(SIGUSR1, 0);
	int sig;

	settle();
	CHECK_OK(pthread_cancel(t));
	CHECK(finish(t) == PTHREAD_CANCELED);
	CHECK_OK(kill(getpid(), SIGUSR1));
	CHECK_OK(sigwait(&set, &sig));
	puts("cancelled");
}

/* ---- signalfd --------------------------------------------------------------- */

static void *reads_signalfd(void *arg)
{
	int fd = *(int *)arg;
	struct signalfd_siginfo info;

	CHECK_INT(read(fd, &info, sizeof(info)), sizeof(info));
	CHECK_INT(info.ssi_signo, SIGRTMIN + 1);
	CHECK_INT(info.ssi_int, 77);
	CHECK_OK(raise(SIGUSR1));
	CHECK_INT(read(fd, &info, sizeof(info)), sizeof(info));
	CHECK_INT(info.ssi_signo, SIGUSR1);
	return NULL;
}

static void by_descriptor(void)
{
	sigset_t set = set_of(SIGRTMIN + 1, SIGUSR1);
	int fd = signalfd(-1, &set, SFD_CLOEXEC);
	struct signalfd_siginfo info;
	struct pollfd p = { .fd = fd, .events = POLLIN };
	pthread_t t;

	CHECK(fd >= 0);
	t = start(reads_signalfd, &fd);
	settle();
	CHECK_OK(sigqueue(getpid(), SIGRTMIN + 1, (union sigval){ .sival_int = 77 }));
	finish(t);
	CHECK_INT(poll(&p, 1, 0), 0);
	CHECK_OK(raise(SIGUSR1));
	CHECK_INT(poll(&p, 1, 5000), 1);
	CHECK_INT(read(fd, &info, sizeof(info)), sizeof(info));
	CHECK_INT(info.ssi_signo, SIGUSR1);
	CHECK_INT(signalfd(fd, &set, 0), fd);
	close(fd);
	puts("signalfd");
}

static void *nothing(void *arg)
{
	return arg;
}

int main(void)
{
	finish(start(nothing, NULL));
	workers_unblocked();
	whole_set();
	mask_signal(SIG_UNBLOCK, SIGHUP);
	ignored();
	children_meanwhile();
	endings();
	many_waiters();
	cancelled();
	by_descriptor();
	return success();
}
