/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/signal/signal_flood.c [SIGNALS] - real-time signals from another process, by
 * sigqueue and by kill, and between threads: each arrives exactly once, next to I/O
 * that loses nothing.  Standard ones arrive at least once.
 */
#include "check.h"

#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum { PAIRS = 6, TO_THREADS = 3 };

static int signals;
static int queued_sig, counted_sig, thread_sig;

/* By value: how often it came. */
static _Atomic unsigned char *seen;
static atomic_int queued, counted, plain;
static pthread_t receivers[TO_THREADS];
static atomic_int received[TO_THREADS], wrong;
static volatile int stop;

static void on_queued(int sig, siginfo_t *info, void *context)
{
	int n = info->si_value.sival_int;

	(void)sig;
	(void)context;
	if (info->si_code != SI_QUEUE || n < 0 || n >= signals ||
	    atomic_fetch_add(&seen[n], 1))
		atomic_fetch_add(&wrong, 1);
	atomic_fetch_add(&queued, 1);
}

static void on_counted(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	if (info->si_code != SI_USER)
		atomic_fetch_add(&wrong, 1);
	atomic_fetch_add(&counted, 1);
}

static void on_plain(int sig)
{
	(void)sig;
	atomic_fetch_add(&plain, 1);
}

static void on_thread(int sig, siginfo_t *info, void *context)
{
	int i = info->si_value.sival_int;

	(void)sig;
	(void)context;
	if (i < 0 || i >= TO_THREADS || !pthread_equal(pthread_self(), receivers[i]))
		atomic_fetch_add(&wrong, 1);
	else
		atomic_fetch_add(&received[i], 1);
}

static void handle(int sig, void (*fn)(int, siginfo_t *, void *), int flags)
{
	struct sigaction sa = { .sa_sigaction = fn, .sa_flags = SA_SIGINFO | flags };

	CHECK_OK(sigaction(sig, &sa, NULL));
}

/* ---- the I/O, interrupted or not -------------------------------------------- */

static void send_all(int fd, const char *p, size_t n)
{
	while (n) {
		ssize_t r = send(fd, p, n, 0);

		if (r < 0) {
			CHECK_INT(errno, EINTR);
			continue;
		}
		p += r;
		n -= (size_t)r;
	}
}

static size_t recv_all(int fd, char *p, size_t n)
{
	size_t have = 0;

	while (have < n) {
		ssize_t r = recv(fd, p + have, n - have, 0);

		if (r < 0) {
			CHECK_INT(errno, EINTR);
			continue;
		}
		if (!r)
			break;
		have += (size_t)r;
	}
	return have;
}

static void *echoes(void *arg)
{
	int fd = *(int *)arg;
	char text[64];

	while (recv_all(fd, text, sizeof(text)) == sizeof(text))
		send_all(fd, text, sizeof(text));
	CHECK_OK(close(fd));
	return NULL;
}

static void *asks(void *arg)
{
	int fd = *(int *)arg;
	char text[64], got[64];
	long rounds = 0;

	for (; !stop || rounds < 100; rounds++) {
		memset(text, (int)('a' + rounds % 26), sizeof(text));
		send_all(fd, text, sizeof(text));
		CHECK_INT(recv_all(fd, got, sizeof(got)), sizeof(got));
		CHECK_OK(memcmp(text, got, sizeof(got)));
	}
	CHECK_OK(close(fd));
	return NULL;
}

/* ---- the senders ---------------------------------------------------------------- */

static void queue_one(pid_t pid, int sig, int n)
{
	const union sigval value = { .sival_int = n };

	/* There are so many only: let them be handled. */
	while (sigqueue(pid, sig, value) != 0) {
		CHECK_INT(errno, EAGAIN);
		usleep(1000);
	}
}

static void child(pid_t parent)
{
	for (int i = 0; i < signals; i++) {
		queue_one(parent, queued_sig, i);
		if (i % 4 == 0)
			CHECK_OK(kill(parent, SIGUSR1));
	}
	_exit(0);
}

/* kill() of a real-time signal that finds no room is lost in silence: a few at a time. */
static void *sends_counted(void *arg)
{
	for (int i = 0; i < signals; i++) {
		while (i - atomic_load(&counted) > 500)
			usleep(200);
		CHECK_OK(kill(getpid(), counted_sig));
	}
	return arg;
}

static void *sends_to_threads(void *arg)
{
	for (int i = 0; i < signals; i++) {
		const union sigval value = { .sival_int = i % TO_THREADS };
		int err;

		while ((err = pthread_sigqueue(receivers[i % TO_THREADS], thread_sig, value))) {
			CHECK_INT(err, EAGAIN);
			usleep(1000);
		}
		if (i % 8 == 0)
			CHECK_OK(pthread_kill(receivers[i % TO_THREADS], SIGUSR2));
	}
	return arg;
}

/* One computes, one sleeps, one reads. */
static void *receives(void *arg)
{
	int i = (int)(intptr_t)arg, p[2];
	char c;

	CHECK_OK(pipe2(p, O_NONBLOCK));
	while (!stop) {
		if (i == 1)
			usleep(100);
		if (i == 2)
			CHECK(read(p[0], &c, 1) < 0);
	}
	close(p[0]);
	close(p[1]);
	return NULL;
}

static void await(const char *what, atomic_int *count, int want)
{
	/* For all that are still on their way; a lost one is a time-out of the test. */
	while (atomic_load(count) < want)
		usleep(1000);
	CHECK_INT(atomic_load(count), want);
	puts(what);
}

int main(int argc, char **argv)
{
	struct sigaction sa = { .sa_handler = on_plain, .sa_flags = SA_RESTART };
	pthread_t a[PAIRS], b[PAIRS], senders[2];
	int fds[PAIRS][2], status;
	pid_t pid;

	signals = argc > 1 ? atoi(argv[1]) : 5000;
	seen = calloc((size_t)signals, sizeof(*seen));
	queued_sig = SIGRTMIN + 3;
	counted_sig = SIGRTMIN + 4;
	thread_sig = SIGRTMIN + 5;
	handle(queued_sig, on_queued, SA_RESTART);
	/* Calls end by this one. */
	handle(counted_sig, on_counted, 0);
	handle(thread_sig, on_thread, SA_RESTART);
	CHECK_OK(sigaction(SIGUSR1, &sa, NULL));
	CHECK_OK(sigaction(SIGUSR2, &sa, NULL));
	for (int i = 0; i < PAIRS; i++) {
		CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, fds[i]));
		a[i] = start(echoes, &fds[i][0]);
		b[i] = start(asks, &fds[i][1]);
	}
	for (int i = 0; i < TO_THREADS; i++)
		receivers[i] = start(receives, (void *)(intptr_t)i);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		child(getppid());
	senders[0] = start(sends_counted, NULL);
	senders[1] = start(sends_to_threads, NULL);
	while (waitpid(pid, &status, 0) < 0)
		CHECK_INT(errno, EINTR);
	CHECK_INT(status, 0);
	finish(senders[0]);
	finish(senders[1]);
	await("queued by a process", &queued, signals);
	await("by kill", &counted, signals);
	for (int i = 0; i < TO_THREADS; i++)
		await("to a thread", &received[i], (signals - i + TO_THREADS - 1) / TO_THREADS);
	stop = 1;
	for (int i = 0; i < TO_THREADS; i++)
		finish(receivers[i]);
	for (int i = 0; i < PAIRS; i++) {
		finish(b[i]);
		finish(a[i]);
	}
	CHECK_INT(atomic_load(&wrong), 0);
	for (int i = 0; i < signals; i++)
		CHECK_INT(seen[i], 1);
	CHECK(atomic_load(&plain) > 0);
	return success();
}
