/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/signal/signal_suspend.c - calls with a mask of their own: which of many pending signals they let in, in which order; and none if they need not wait.
 */
#include "check.h"

#include <poll.h>
#include <setjmp.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <ucontext.h>

enum { INSTANCES = 3, MAX_CALLS = 40 };

static sigset_t all, none;

/* ---- what the handlers see ------------------------------------------------ */

static char seen[4096];

static char *name_of(int sig, char *at)
{
	if (sig == SIGUSR1 || sig == SIGUSR2)
		return at + sprintf(at, "USR%d", sig == SIGUSR1 ? 1 : 2);
	return at + sprintf(at, "RT%d", sig - SIGRTMIN);
}

static char *names_of(const sigset_t *set, char *at)
{
	at += sprintf(at, "%s%s", sigismember(set, SIGUSR1) ? "1" : "-",
		      sigismember(set, SIGUSR2) ? "2" : "-");
	for (int i = 0; i < 3; i++)
		at += sprintf(at, "%s", sigismember(set, SIGRTMIN + i) ? "r" : "-");
	return at;
}

/* Synchronous with the code it interrupts: so it may use stdio. */
static void note(int sig, siginfo_t *info, void *context)
{
	const ucontext_t *uc = context;
	char *at = seen + strlen(seen);
	sigset_t now;

	CHECK_OK(pthread_sigmask(SIG_SETMASK, NULL, &now));
	at = name_of(sig, at);
	at += sprintf(at, "(%d) blocks ", info->si_code == SI_QUEUE ? info->si_value.sival_int : -1);
	at = names_of(&now, at);
	at += sprintf(at, " then ");
	at = names_of(&uc->uc_sigmask, at);
	sprintf(at, "; ");
}

static void say(const char *what, int ret)
{
	int err = errno;

	printf("%s: %d %s; %s\n", what, ret, ret < 0 ? strerror(err) : "", seen);
	seen[0] = 0;
}

static void handle(int flags, const sigset_t *mask)
{
	struct sigaction sa = { .sa_sigaction = note, .sa_flags = SA_SIGINFO | flags, .sa_mask = *mask };

	CHECK_OK(sigaction(SIGUSR1, &sa, NULL));
	CHECK_OK(sigaction(SIGUSR2, &sa, NULL));
	for (int i = 0; i < 3; i++)
		CHECK_OK(sigaction(SIGRTMIN + i, &sa, NULL));
}

/* ---- many pending, until none is ------------------------------------------ */

static int one_call(int kind, const sigset_t *mask, const char **ret_what)
{
	static const struct timespec at_once = { 0, 0 };
	struct epoll_event event;
	int fd, ret, err;

	switch (kind) {
	case 0:
		*ret_what = "sigsuspend";
		return sigsuspend(mask);
	case 1:
		*ret_what = "ppoll";
		return ppoll(NULL, 0, &at_once, mask);
	case 2:
		*ret_what = "ppoll, for ever";
		return ppoll(NULL, 0, NULL, mask);
	case 3:
		*ret_what = "pselect";
		return pselect(0, NULL, NULL, NULL, &at_once, mask);
	default:
		*ret_what = kind == 4 ? "epoll_pwait" : "epoll_pwait, for ever";
		fd = epoll_create1(EPOLL_CLOEXEC);
		ret = epoll_pwait(fd, &event, 1, kind == 4 ? 0 : -1, mask);
		err = errno;
		close(fd);
		errno = err;
		return ret;
	}
}

static bool any_pending(void)
{
	sigset_t set;

	CHECK_OK(sigpending(&set));
	for (int sig = 1; sig <= SIGRTMAX; sig++)
		if (sigismember(&set, sig) == 1)
			return true;
	return false;
}

static void send_all(bool to_process)
{
	for (int i = 0; i < INSTANCES; i++)
		for (int rt = 0; rt < 3; rt++) {
			union sigval v = { .sival_int = i };

			if (to_process)
				CHECK_OK(sigqueue(getpid(), SIGRTMIN + rt, v));
			else
				CHECK_OK(pthread_sigqueue(pthread_self(), SIGRTMIN + rt, v));
		}
	if (to_process) {
		CHECK_OK(kill(getpid(), SIGUSR1));
		CHECK_OK(kill(getpid(), SIGUSR2));
	} else {
		CHECK_OK(pthread_kill(pthread_self(), SIGUSR1));
		CHECK_OK(pthread_kill(pthread_self(), SIGUSR2));
	}
}

static void many(const char *title, int flags, const sigset_t *mask, const sigset_t *during,
		 bool to_process)
{
	printf("-- %s, to the %s\n", title, to_process ? "process" : "thread");
	handle(flags, mask);
	CHECK_OK(pthread_sigmask(SIG_SETMASK, &all, NULL));
	send_all(to_process);
	for (int i = 0; any_pending() && i < MAX_CALLS; i++) {
		const char *what;
		int kind = i % 6, ret;
		sigset_t after;

		ret = one_call(kind, during, &what);
		say(what, ret);
		CHECK_OK(pthread_sigmask(SIG_SETMASK, NULL, &after));
		CHECK_INT(sigismember(&after, SIGUSR1), 1);
		CHECK_INT(sigismember(&after, SIGRTMIN), 1);
	}
	CHECK(!any_pending());
}

/* ---- no need to wait --------------------------------------------------------- */

static void ready_at_once(void)
{
	static const struct timespec bad = { 0, -1 };
	struct epoll_event event = { .events = EPOLLIN };
	int pipe_fds[2], fd = epoll_create1(EPOLL_CLOEXEC);
	struct pollfd p;
	sigset_t set;
	fd_set r;

	puts("-- ready");
	CHECK_OK(pipe(pipe_fds));
	CHECK_INT(write(pipe_fds[1], "x", 1), 1);
	CHECK_OK(epoll_ctl(fd, EPOLL_CTL_ADD, pipe_fds[0], &event));
	CHECK_OK(pthread_sigmask(SIG_SETMASK, &all, NULL));
	CHECK_OK(pthread_kill(pthread_self(), SIGUSR1));
	p = (struct pollfd){ .fd = pipe_fds[0], .events = POLLIN };
	say("ppoll", ppoll(&p, 1, NULL, &none));
	FD_ZERO(&r);
	FD_SET(pipe_fds[0], &r);
	say("pselect", pselect(pipe_fds[0] + 1, &r, NULL, NULL, NULL, &none));
	CHECK(FD_ISSET(pipe_fds[0], &r));
	say("epoll_pwait", epoll_pwait(fd, &event, 1, -1, &none));
	p.fd = 1000;
	say("ppoll of no descriptor", ppoll(&p, 1, NULL, &none));
	say("epoll_pwait of none", epoll_pwait(1000, &event, 1, -1, &none));
	say("ppoll, bad timeout", ppoll(NULL, 0, &bad, &none));
	CHECK_OK(sigpending(&set));
	CHECK_INT(sigismember(&set, SIGUSR1), 1);
	/* What is not ready stays as it was in the sets. */
	CHECK_INT(read(pipe_fds[0], &p, 1), 1);
	say("pselect, not ready", pselect(pipe_fds[0] + 1, &r, NULL, NULL, NULL, &none));
	CHECK(FD_ISSET(pipe_fds[0], &r));
	close(fd);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
}

/* ---- handlers that leave, or change what is to be restored ----------------------- */

static sigjmp_buf jump;

static void leaves(int sig)
{
	siglongjmp(jump, sig);
}

static void unblocks(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	note(sig, info, context);
	sigdelset(&uc->uc_sigmask, SIGUSR2);
}

static void changed(void)
{
	struct sigaction sa = { .sa_handler = leaves };
	sigset_t now;

	puts("-- changed");
	CHECK_OK(pthread_sigmask(SIG_SETMASK, &all, NULL));
	sa.sa_mask = all;
	CHECK_OK(sigaction(SIGUSR1, &sa, NULL));
	CHECK_OK(pthread_kill(pthread_self(), SIGUSR1));
	CHECK_OK(pthread_kill(pthread_self(), SIGUSR2));
	if (sigsetjmp(jump, 1) == 0) {
		sigsuspend(&none);
		CHECK(false);
	}
	CHECK_OK(pthread_sigmask(SIG_SETMASK, NULL, &now));
	CHECK_INT(sigismember(&now, SIGUSR1), 1);
	say("left", sigsuspend(&none));
	/* Its mask is the one after the call. */
	sa.sa_sigaction = unblocks;
	sa.sa_flags = SA_SIGINFO;
	CHECK_OK(sigaction(SIGUSR1, &sa, NULL));
	CHECK_OK(pthread_kill(pthread_self(), SIGUSR1));
	CHECK_OK(pthread_kill(pthread_self(), SIGUSR2));
	say("unblocked", sigsuspend(&none));
	CHECK_OK(pthread_sigmask(SIG_SETMASK, NULL, &now));
	CHECK_INT(sigismember(&now, SIGUSR2), 0);
	CHECK_INT(sigismember(&now, SIGUSR1), 1);
}

/* ---- handlers that make such calls themselves ---------------------------------------- */

static void calls(int sig, siginfo_t *info, void *context)
{
	static const struct timespec at_once = { 0, 0 };
	sigset_t before, after, mask;
	struct pollfd none_of_them;

	note(sig, info, context);
	CHECK_OK(pthread_sigmask(SIG_SETMASK, NULL, &before));
	sigemptyset(&mask);
	sigaddset(&mask, SIGTERM);
	CHECK_INT(ppoll(&none_of_them, 0, &at_once, &mask), 0);
	CHECK_OK(pthread_sigmask(SIG_SETMASK, NULL, &after));
	CHECK_INT(memcmp(&before, &after, 8), 0);
	note(sig, info, context);
}

static void nested(void)
{
	struct sigaction sa = { .sa_sigaction = calls, .sa_flags = SA_SIGINFO };
	sigset_t now;

	puts("-- nested");
	CHECK_OK(pthread_sigmask(SIG_SETMASK, &all, NULL));
	CHECK_OK(sigaction(SIGUSR1, &sa, NULL));
	CHECK_OK(sigaction(SIGUSR2, &sa, NULL));
	CHECK_OK(pthread_kill(pthread_self(), SIGUSR1));
	CHECK_OK(pthread_kill(pthread_self(), SIGUSR2));
	say("both", sigsuspend(&none));
	CHECK_OK(pthread_sigmask(SIG_SETMASK, NULL, &now));
	CHECK_INT(sigismember(&now, SIGUSR1), 1);
	CHECK_INT(sigismember(&now, SIGRTMIN), 1);
}

static void *everything(void *arg)
{
	sigset_t some;

	many("no mask", 0, &none, &none, false);
	many("no mask, not deferred", SA_NODEFER | SA_RESTART, &none, &none, false);
	many("all blocked", 0, &all, &none, false);
	many("all blocked, not deferred", SA_NODEFER, &all, &none, false);
	sigemptyset(&some);
	sigaddset(&some, SIGRTMIN + 1);
	sigaddset(&some, SIGUSR2);
	many("some blocked", 0, &some, &none, false);
	many("all blocked", SA_RESTART, &all, &none, true);
	ready_at_once();
	changed();
	nested();
	return arg;
}

static void *nothing(void *arg)
{
	return arg;
}

int main(void)
{
	sigfillset(&all);
	sigemptyset(&none);
	finish(start(nothing, NULL));
	CHECK_OK(pthread_sigmask(SIG_SETMASK, &all, NULL));
	puts("---- a thread");
	finish(start(everything, NULL));
	puts("---- the main thread");
	everything(NULL);
	return success();
}
