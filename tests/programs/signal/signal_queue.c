/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/signal/signal_queue.c - real-time signals: none is lost, each has its value, in order; standard ones coalesce.
 */
#include "check.h"

#include <stdbool.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { N = 200 };

static __thread volatile int got[3 * N];
static __thread volatile sig_atomic_t count;
static __thread volatile siginfo_t last;

static void note(int sig, siginfo_t *info, void *context)
{
	(void)context;
	if (count < 3 * N)
		got[count] = info->si_value.sival_int + sig * 1000;
	count = count + 1;
	last = *info;
}

static void handle(int sig)
{
	struct sigaction sa = { .sa_sigaction = note, .sa_flags = SA_SIGINFO | SA_RESTART };

	sigfillset(&sa.sa_mask);
	CHECK_OK(sigaction(sig, &sa, NULL));
}

static union sigval value(int n)
{
	return (union sigval){ .sival_int = n };
}

/* ---- to a thread that blocks them, then lets them in --------------------- */

static struct event ready = EVENT_INIT, go = EVENT_INIT;

static void *receives_all(void *arg)
{
	mask_signal(SIG_BLOCK, SIGRTMIN + 1);
	mask_signal(SIG_BLOCK, SIGRTMIN + 2);
	mask_signal(SIG_BLOCK, SIGUSR1);
	event_post(&ready);
	event_wait(&go, 1);
	CHECK_INT(count, 0);
	sigset_t set;
	CHECK_OK(sigpending(&set));
	CHECK_INT(sigismember(&set, SIGRTMIN + 1), 1);
	CHECK_INT(sigismember(&set, SIGRTMIN + 2), 1);
	CHECK_INT(sigismember(&set, SIGUSR1), 1);
	mask_signal(SIG_UNBLOCK, SIGRTMIN + 2);
	CHECK_INT(count, N);
	for (int i = 0; i < N; i++)
		CHECK_INT(got[i], (SIGRTMIN + 2) * 1000 + i);
	CHECK_INT(last.si_code, SI_QUEUE);
	CHECK_INT(last.si_pid, getpid());
	CHECK_INT(last.si_uid, getuid());
	mask_signal(SIG_UNBLOCK, SIGRTMIN + 1);
	CHECK_INT(count, 2 * N);
	for (int i = 0; i < N; i++)
		CHECK_INT(got[N + i], (SIGRTMIN + 1) * 1000 + i);
	/* Standard: one of the many. */
	mask_signal(SIG_UNBLOCK, SIGUSR1);
	CHECK_INT(count, 2 * N + 1);
	CHECK_INT(last.si_code, SI_TKILL);
	CHECK_OK(sigpending(&set));
	CHECK_INT(sigismember(&set, SIGUSR1), 0);
	return arg;
}

static void to_a_thread(void)
{
	pthread_t t;

	ready.count = 0;
	t = start(receives_all, NULL);
	event_wait(&ready, 1);
	for (int i = 0; i < N; i++) {
		CHECK_OK(pthread_sigqueue(t, SIGRTMIN + 1, value(i)));
		CHECK_OK(pthread_sigqueue(t, SIGRTMIN + 2, value(i)));
		CHECK_OK(pthread_kill(t, SIGUSR1));
	}
	event_post(&go);
	finish(t);
	CHECK_INT(count, 0);
	puts("to a thread");
}

/* ---- to the process, handled by the main thread while it sleeps ---------- */

static void *sends_many(void *arg)
{
	/* Or some would come here, while the main thread is in its handler. */
	mask_signal(SIG_BLOCK, SIGRTMIN + 3);
	for (int i = 0; i < N; i++)
		while (sigqueue(getpid(), SIGRTMIN + 3, value(i)) < 0)
			CHECK_INT(errno, EAGAIN);
	return arg;
}

/* Several threads may take them: then their order is nobody's promise. */
static void each_once(int sig)
{
	int times[N] = { 0 };

	CHECK_INT(count, N);
	for (int i = 0; i < N; i++) {
		CHECK_INT(got[i] / 1000, sig);
		times[got[i] % 1000]++;
	}
	for (int i = 0; i < N; i++)
		CHECK_INT(times[i], 1);
}

static void to_the_process(void)
{
	pthread_t t;

	count = 0;
	t = start(sends_many, NULL);
	while (count < N)
		usleep(1000);
	finish(t);
	each_once(SIGRTMIN + 3);
	puts("to the process");
}

/* ---- sigwaitinfo takes them one by one ----------------------------------- */

/* Of two numbers: each in the order of sending, and the lower one, which was sent first. */
static void *takes(void *arg)
{
	int taken[2] = { 0, 0 };
	sigset_t set;
	siginfo_t info;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN + 4);
	sigaddset(&set, SIGRTMIN + 7);
	event_post(&ready);
	for (int i = 0; i < 2 * N; i++) {
		int sig = sigwaitinfo(&set, &info), high = sig == SIGRTMIN + 7;

		CHECK(high || sig == SIGRTMIN + 4);
		CHECK_INT(info.si_value.sival_int, taken[high]);
		CHECK_INT(info.si_code, SI_QUEUE);
		CHECK(!high || taken[0] == N);
		taken[high]++;
	}
	CHECK_ERR(sigtimedwait(&set, &info, &(struct timespec){ 0 }), EAGAIN);
	return arg;
}

static void queue(pthread_t t, bool directed, int sig, int n)
{
	if (directed)
		CHECK_OK(pthread_sigqueue(t, sig, value(n)));
	else
		CHECK_OK(sigqueue(getpid(), sig, value(n)));
}

static void by_sigwaitinfo(bool directed)
{
	enum { ROUNDS = 50 };

	mask_signal(SIG_BLOCK, SIGRTMIN + 4);
	mask_signal(SIG_BLOCK, SIGRTMIN + 7);
	for (int round = 0; round < ROUNDS; round++) {
		pthread_t t;

		ready.count = 0;
		t = start(takes, NULL);
		event_wait(&ready, 1);
		for (int i = 0; i < N; i++)
			queue(t, directed, SIGRTMIN + 4, i);
		for (int i = 0; i < N; i++)
			queue(t, directed, SIGRTMIN + 7, i);
		finish(t);
	}
	mask_signal(SIG_UNBLOCK, SIGRTMIN + 7);
	mask_signal(SIG_UNBLOCK, SIGRTMIN + 4);
	printf("by sigwaitinfo, %s\n", directed ? "to the thread" : "to the process");
}

/* ---- from another process ------------------------------------------------ */

static void from_outside(void)
{
	pid_t parent = getpid(), pid;
	int status;

	count = 0;
	pid = fork();
	if (pid == 0) {
		for (int i = 0; i < N; i++)
			while (sigqueue(parent, SIGRTMIN + 5, value(i)) < 0)
				usleep(100);
		_exit(0);
	}
	while (waitpid(pid, &status, 0) < 0)
		CHECK_INT(errno, EINTR);
	CHECK_INT(status, 0);
	while (count < N)
		usleep(1000);
	each_once(SIGRTMIN + 5);
	CHECK_INT(last.si_pid, pid);
	puts("from outside");
}

/* ---- the limit ------------------------------------------------------------ */

/* The kernel counts for the user, who may have other processes at their limit just now. */
static void queue_one(void)
{
	int err;

	while ((err = pthread_sigqueue(pthread_self(), SIGRTMIN + 6, value(0))) == EAGAIN)
		usleep(100);
	CHECK_INT(err, 0);
}

static void *has_limit(void *arg)
{
	int n = 1, err;

	mask_signal(SIG_BLOCK, SIGRTMIN + 6);
	queue_one();
	while (!(err = pthread_sigqueue(pthread_self(), SIGRTMIN + 6, value(0))))
		n++;
	CHECK_INT(err, EAGAIN);
	CHECK(n <= 64);
	count = 0;
	mask_signal(SIG_UNBLOCK, SIGRTMIN + 6);
	CHECK_INT(count, n);
	queue_one();
	CHECK_INT(count, n + 1);
	return arg;
}

static void limited(void)
{
	struct rlimit before, few;

	CHECK_OK(getrlimit(RLIMIT_SIGPENDING, &before));
	few = before;
	few.rlim_cur = 64;
	CHECK_OK(setrlimit(RLIMIT_SIGPENDING, &few));
	finish(start(has_limit, NULL));
	CHECK_OK(setrlimit(RLIMIT_SIGPENDING, &before));
	puts("limited");
}

static void *nothing(void *arg)
{
	return arg;
}

int main(void)
{
	finish(start(nothing, NULL));
	/* Without handlers, which would block each other. */
	by_sigwaitinfo(false);
	for (int i = 1; i <= 7; i++)
		handle(SIGRTMIN + i);
	handle(SIGUSR1);
	to_a_thread();
	to_the_process();
	by_sigwaitinfo(false);
	by_sigwaitinfo(true);
	from_outside();
	limited();
	CHECK_INT(pthread_sigqueue(pthread_self(), 1000, value(0)), EINVAL);
	return success();
}
