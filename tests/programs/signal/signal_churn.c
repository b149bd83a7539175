/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/signal/signal_churn.c [SIGNALS] - real-time signals for the process arrive exactly
 * once each while the threads that accept them are made and end, change their masks, wait by
 * sigtimedwait, and become kernel threads by a mutex with priority inheritance or are
 * born as such; main among them.
 */
#include "check.h"

#include <stdbool.h>
#include <sys/wait.h>

enum { SIG = 40, BATCH = 4 };

static int signals = 10000;
static _Atomic unsigned char *seen;
static _Atomic int got, wrong;
static _Atomic bool stop;
static __thread bool blocks;

static void note(const siginfo_t *info)
{
	int n = info->si_value.sival_int;

	if (info->si_code != SI_QUEUE || n < 0 || n >= signals || seen[n]++)
		wrong++;
	got++;
}

static void handler(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	if (blocks)
		wrong++;
	note(info);
}

static void change_mask(int how)
{
	if (how == SIG_UNBLOCK)
		blocks = false;
	mask_signal(how, SIG);
	blocks = how == SIG_BLOCK;
}

static void *lives(void *arg)
{
	uint64_t n = (uintptr_t)arg, random = n * 2 + 1;

	if (n & 1)
		change_mask(SIG_BLOCK);
	for (uint64_t i = random_next(&random) % 5; i > 0; i--) {
		switch (random_next(&random) % 5) {
		case 0: usleep((useconds_t)(random_next(&random) % 300)); break;
		case 1: change_mask(SIG_BLOCK); break;
		case 2: change_mask(SIG_UNBLOCK); break;
		case 3: sched_yield(); break;
		default:
			if (n % 5 == 0)
				use_inheriting_mutex();
			break;
		}
	}
	return NULL;
}

static void *makes_threads(void *arg)
{
	uintptr_t n = (uintptr_t)arg * 100000;

	change_mask(SIG_BLOCK);
	while (!stop) {
		pthread_t threads[BATCH];

		for (int i = 0; i < BATCH; i++, n++)
			threads[i] = start_as(n % 16 == 3, lives, (void *)n);
		for (int i = 0; i < BATCH; i++)
			finish(threads[i]);
	}
	return arg;
}

/* There is always one who accepts it again. */
static void *changes_mask(void *arg)
{
	uint64_t random = (uintptr_t)arg;

	while (!stop) {
		change_mask(SIG_BLOCK);
		if (random_next(&random) & 1)
			usleep(100);
		change_mask(SIG_UNBLOCK);
		if (random_next(&random) & 1)
			usleep(100);
	}
	return arg;
}

static void *waits(void *arg)
{
	const struct timespec limit = { 0, 200000 };
	sigset_t set;

	change_mask(SIG_BLOCK);
	CHECK_OK(sigemptyset(&set));
	CHECK_OK(sigaddset(&set, SIG));
	while (!stop) {
		siginfo_t info;

		if (sigtimedwait(&set, &info, &limit) == SIG)
			note(&info);
	}
	return arg;
}

static void send_all(void)
{
	for (int i = 0; i < signals; i++) {
		union sigval value = { .sival_int = i };

		while (sigqueue(getppid(), SIG, value)) {
			if (errno != EAGAIN)
				_exit(1);
			usleep(100);
		}
		if (i % 64 == 0)
			usleep(500);
	}
	_exit(0);
}

static void play(const char *what, bool main_blocks, bool waiter, bool native)
{
	pthread_t threads[6];
	int n = 0, status;
	long long limit;
	pid_t pid;

	got = 0;
	stop = false;
	memset((void *)seen, 0, (size_t)signals);
	if (main_blocks)
		change_mask(SIG_BLOCK);
	threads[n++] = start(makes_threads, (void *)1);
	threads[n++] = start(makes_threads, (void *)2);
	threads[n++] = start(changes_mask, (void *)1);
	threads[n++] = start(changes_mask, (void *)2);
	if (waiter)
		threads[n++] = start(waits, NULL);
	if (native)
		threads[n++] = start_affine(changes_mask, (void *)3);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		send_all();
	while (waitpid(pid, &status, 0) < 0)
		CHECK_INT(errno, EINTR);
	CHECK_INT(status, 0);
	limit = now(CLOCK_MONOTONIC) + 10000 * MS;
	while (got < signals && now(CLOCK_MONOTONIC) < limit)
		usleep(1000);
	stop = true;
	for (int i = 0; i < n; i++)
		finish(threads[i]);
	CHECK_INT(got, signals);
	CHECK_INT(wrong, 0);
	change_mask(SIG_UNBLOCK);
	printf("%s\n", what);
}

static void play_all(void)
{
	play("main accepts", false, false, false);
	play("one waits", true, true, false);
	play("one is native", true, true, true);
	play("main accepts, one is native", false, false, true);
}

int main(int argc, char **argv)
{
	struct sigaction sa = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART };

	if (argc > 1)
		signals = atoi(argv[1]);
	seen = calloc((size_t)signals, 1);
	CHECK(seen != NULL);
	CHECK_OK(sigaction(SIG, &sa, NULL));
	play_all();
	use_inheriting_mutex();
	puts("main, too");
	play_all();
	return success();
}
