/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/signal/signal_wired_process.c - signals for the process, where the threads that
 * accept them have used a mutex with priority inheritance: all of them, one beside
 * others that block it, one that has changed its mask since, one that waits by sigwaitinfo.
 */
#include "check.h"

#include <stdbool.h>

#include <sys/wait.h>

enum { SIG = SIGUSR1, THREADS = 4, ROUNDS = 100 };

static _Atomic int begun, handled, slow;
static _Atomic bool done;
static pid_t sender;
static __thread bool accepts;

static void check_source(const siginfo_t *info, int i)
{
	CHECK_INT(info->si_code, i % 2 ? SI_QUEUE : SI_USER);
	CHECK_INT(info->si_pid, sender);
	if (i % 2)
		CHECK_INT(info->si_value.sival_int, i);
}

static void handler(int sig, siginfo_t *info, void *context)
{
	(void)context;
	CHECK_INT(sig, SIG);
	CHECK(accepts);
	check_source(info, handled);
	begun++;
	if (slow)
		usleep(30000);
	handled++;
}

static void change_mask(int how)
{
	accepts = how == SIG_UNBLOCK;
	mask_signal(how, SIG);
}

struct role {
	bool inherits, accepts, changes, waits;
	struct event ready;
};

static void *plays(void *arg)
{
	struct role *role = arg;

	change_mask(role->accepts && !role->changes ? SIG_UNBLOCK : SIG_BLOCK);
	if (role->inherits)
		use_inheriting_mutex();
	if (role->changes)
		change_mask(role->accepts ? SIG_UNBLOCK : SIG_BLOCK);
	event_post(&role->ready);
	while (role->waits && !done) {
		struct timespec limit = { 0, 20 * MS };
		sigset_t set;
		siginfo_t info;

		sigemptyset(&set);
		sigaddset(&set, SIG);
		if (sigtimedwait(&set, &info, &limit) == SIG) {
			check_source(&info, handled);
			begun++;
			handled++;
		} else {
			CHECK_INT(errno, EAGAIN);
		}
	}
	while (!done)
		usleep(1000);
	return arg;
}

/* A process of its own, so that what it sends comes from outside. */
static void send_all(int rounds, int burst)
{
	int commands[2];
	char byte = 0;
	int status;

	CHECK_INT(pipe(commands), 0);
	sender = fork();
	CHECK(sender >= 0);
	if (sender == 0) {
		close(commands[1]);
		for (int i = 0; read(commands[0], &byte, 1) == 1; i++) {
			union sigval value = { .sival_int = i };

			if (i % 2 ? sigqueue(getppid(), SIG, value) : kill(getppid(), SIG))
				_exit(1);
		}
		_exit(0);
	}
	close(commands[0]);
	for (int i = 0; i < rounds; i++) {
		CHECK_INT((int)write(commands[1], &byte, 1), 1);
		/* The last of a burst comes while the handler of the one before runs. */
		while (((i + 1) % burst ? begun : handled) < i + 1)
			usleep(100);
	}
	close(commands[1]);
	while (waitpid(sender, &status, 0) < 0)
		CHECK_INT(errno, EINTR);
	CHECK_INT(status, 0);
	CHECK_INT(handled, rounds);
}

static void play(const char *what, struct role roles[THREADS], int rounds, int burst)
{
	pthread_t threads[THREADS];

	begun = handled = 0;
	done = false;
	slow = burst > 1;
	for (int i = 0; i < THREADS; i++) {
		roles[i].ready = (struct event)EVENT_INIT;
		threads[i] = start(plays, &roles[i]);
		event_wait(&roles[i].ready, 1);
	}
	send_all(rounds, burst);
	done = true;
	for (int i = 0; i < THREADS; i++)
		CHECK(finish(threads[i]) == &roles[i]);
	printf("%s\n", what);
}

static void play_all(void)
{
	play("one of a kind accepts", (struct role[THREADS]){ { true, true }, { true }, { true },
							      { true } }, ROUNDS, 1);
	play("beside others", (struct role[THREADS]){ { true, true }, { 0 }, { 0 }, { 0 } },
	     ROUNDS, 1);
	play("opened later", (struct role[THREADS]){ { true, true, true }, { 0 }, { 0 }, { 0 } },
	     ROUNDS, 1);
	play("closed later", (struct role[THREADS]){ { true, false, true }, { 0, true }, { 0 },
						     { 0 } }, ROUNDS, 1);
	play("all accept", (struct role[THREADS]){ { true, true }, { true, true },
						   { true, true }, { true, true } }, ROUNDS, 1);
	play("sigtimedwait", (struct role[THREADS]){ { true, false, false, true }, { 0 }, { 0 },
						     { 0 } }, ROUNDS, 1);
	play("during its handler", (struct role[THREADS]){ { true, true }, { 0 }, { 0 }, { 0 } },
	     20, 2);
	play("during a fiber's handler", (struct role[THREADS]){ { 0, true }, { true }, { 0 },
								 { 0 } }, 20, 2);
}

int main(void)
{
	struct sigaction sa = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART };

	CHECK_INT(sigaction(SIG, &sa, NULL), 0);
	change_mask(SIG_BLOCK);
	play_all();
	use_inheriting_mutex();
	puts("main, too");
	play_all();
	return success();
}
