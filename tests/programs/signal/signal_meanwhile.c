/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/signal/signal_meanwhile.c - a signal that is sent while its handler runs is
 * blocked, and is handled before the interrupted code continues. A signal that a change of the
 * mask lets in is handled at once, too. All other threads block these signals.
 */
#include "check.h"

#include <setjmp.h>
#include <stdatomic.h>

enum { ROUNDS = 20, QUEUED = 5 };
enum { NOTHING, KILL, QUEUE, THREAD, LEAVE };

static volatile sig_atomic_t handled, ignores;
static int values[QUEUED + 1];
static int self_sends, other_sends;
static _Atomic int wanted, sent;
static int queued_sig;
static pthread_t target;
static sigjmp_buf out;

static void queue(int how_many)
{
	for (int i = 1; i <= how_many; i++) {
		const union sigval value = { .sival_int = i };

		CHECK_OK(sigqueue(getpid(), queued_sig, value));
	}
}

static void send_one_kind(int what, int sig)
{
	switch (what) {
	case KILL: CHECK_OK(kill(getpid(), sig)); break;
	case QUEUE: queue(QUEUED); break;
	case THREAD: CHECK_OK(pthread_kill(target, sig)); break;
	default: break;
	}
}

/* By another thread, while this one waits. */
static void have_sent(int what)
{
	sent = 0;
	wanted = what;
	while (!sent)
		sched_yield();
}

static void on_signal(int sig, siginfo_t *info, void *context)
{
	int n = handled++;

	(void)context;
	if (sig == queued_sig && n <= QUEUED)
		values[n] = info->si_value.sival_int;
	if (n)
		return;
	if (other_sends)
		have_sent(other_sends);
	if (self_sends == LEAVE) {
		send_one_kind(KILL, sig);
		siglongjmp(out, 1);
	}
	send_one_kind(self_sends, sig);
	if (ignores)
		signal(sig, SIG_IGN);
}

static void *other(void *arg)
{
	int what;

	while ((what = wanted) >= 0) {
		if (!what) {
			usleep(100);
			continue;
		}
		wanted = NOTHING;
		send_one_kind(what, SIGUSR1);
		sent = 1;
	}
	return arg;
}

static void install(int sig)
{
	struct sigaction sa = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART };

	CHECK_OK(sigaction(sig, &sa, NULL));
}

/* ---- while the handler runs ------------------------------------------------- */

static void expect(int sig, int by_itself, int by_other, int count)
{
	self_sends = by_itself;
	other_sends = by_other;
	handled = 0;
	CHECK_OK(raise(sig));
	CHECK_INT(handled, count);
	if (sig == queued_sig)
		for (int i = 1; i < count; i++)
			CHECK_INT(values[i], i);
}

static void in_handler(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		expect(SIGUSR1, KILL, NOTHING, 2);
		expect(SIGUSR1, THREAD, NOTHING, 2);
		expect(SIGUSR1, NOTHING, KILL, 2);
		expect(SIGUSR1, NOTHING, THREAD, 2);
		/* One is pending for the process and one for the thread. */
		expect(SIGUSR1, KILL, THREAD, 3);
		expect(SIGUSR1, KILL, KILL, 2);
		expect(queued_sig, QUEUE, NOTHING, 1 + QUEUED);
		expect(queued_sig, NOTHING, QUEUE, 1 + QUEUED);
	}
}

static void ignored(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		ignores = 1;
		expect(SIGUSR1, i % 2 ? KILL : THREAD, NOTHING, 1);
		ignores = 0;
		install(SIGUSR1);
		expect(SIGUSR1, KILL, NOTHING, 2);
		expect(SIGUSR1, THREAD, NOTHING, 2);
	}
}

static void left(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		self_sends = LEAVE;
		other_sends = NOTHING;
		handled = 0;
		if (!sigsetjmp(out, 1)) {
			CHECK_OK(raise(SIGUSR1));
			CHECK(0);
		}
		CHECK_INT(handled, 2);
	}
}

/* ---- while the mask has it ---------------------------------------------------- */

static void masked(void)
{
	sigset_t set, none, before;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, queued_sig);
	self_sends = other_sends = NOTHING;
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_OK(pthread_sigmask(SIG_BLOCK, &set, &before));
		handled = 0;
		/* Each of these may be one signal with the one before. */
		send_one_kind(i % 2 ? KILL : THREAD, SIGUSR1);
		if (i % 3)
			have_sent(i % 2 ? KILL : THREAD);
		queue(QUEUED);
		CHECK_INT(handled, 0);
		if (i % 4) {
			CHECK_OK(pthread_sigmask(SIG_SETMASK, &before, NULL));
		} else {
			none = before;
			CHECK_ERR(sigsuspend(&none), EINTR);
		}
		CHECK_INT(handled, 1 + QUEUED);
		CHECK_OK(pthread_sigmask(SIG_SETMASK, &before, NULL));
		CHECK_INT(handled, 1 + QUEUED);
	}
}

static void *all(void *arg)
{
	sigset_t set;
	pthread_t t;

	target = pthread_self();
	wanted = NOTHING;
	t = start(other, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, queued_sig);
	CHECK_OK(pthread_sigmask(SIG_UNBLOCK, &set, NULL));
	in_handler();
	puts("in the handler");
	ignored();
	puts("ignored");
	left();
	puts("left by siglongjmp");
	masked();
	puts("by the mask");
	CHECK_OK(pthread_sigmask(SIG_BLOCK, &set, NULL));
	wanted = -1;
	finish(t);
	return arg;
}

int main(void)
{
	sigset_t set;

	queued_sig = SIGRTMIN + 3;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, queued_sig);
	CHECK_OK(pthread_sigmask(SIG_BLOCK, &set, NULL));
	install(SIGUSR1);
	install(queued_sig);
	all(NULL);
	finish(start(all, NULL));
	return success();
}
