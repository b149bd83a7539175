/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/signal/signal_masked_calls.c [TURNS] - sigsuspend, ppoll, pselect, epoll_pwait
 * and sigwaitinfo lose no signal that comes just before they sleep. Threads may leave these
 * calls by siglongjmp or be cancelled in them; later calls are not affected.
 */
#include "check.h"

#include <poll.h>
#include <setjmp.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/select.h>

enum { SIG = SIGUSR1, OTHER = SIGUSR2, REALTIME = 40, PLAYERS = 8, ROUNDS = 20 };

enum way { BY_SIGSUSPEND, BY_PPOLL, BY_PPOLL_LIMIT, BY_PPOLL_PIPE, BY_PSELECT, BY_EPOLL,
	   BY_SIGWAITINFO, WAYS };

static const char *const names[WAYS] = { "sigsuspend", "ppoll", "ppoll, limited", "ppoll, a pipe",
	"pselect", "epoll_pwait", "sigwaitinfo" };

static int turns = 1000;
static __thread volatile sig_atomic_t handled, leaves;
static __thread sigjmp_buf back;

static void handler(int sig)
{
	(void)sig;
	handled++;
	if (leaves) {
		leaves = 0;
		siglongjmp(back, 1);
	}
}

/* ---- turn by turn ---------------------------------------------------------- */

struct player {
	enum way way;
	bool serves;
	struct player *other;
	pthread_t thread;
	int pipe_fd[2], epoll_fd;
};

static pthread_barrier_t all_there;

/* One call, which ends by a signal only. */
static void call(const struct player *p, const sigset_t *mask)
{
	const struct timespec limit = { 60, 0 };
	struct pollfd fds = { .fd = p->pipe_fd[0], .events = POLLIN };
	struct epoll_event event;
	fd_set set;

	switch (p->way) {
	case BY_SIGSUSPEND:
		CHECK_ERR(sigsuspend(mask), EINTR);
		break;
	case BY_PPOLL:
		CHECK_ERR(ppoll(NULL, 0, NULL, mask), EINTR);
		break;
	case BY_PPOLL_LIMIT:
		CHECK_ERR(ppoll(NULL, 0, &limit, mask), EINTR);
		break;
	case BY_PPOLL_PIPE:
		CHECK_ERR(ppoll(&fds, 1, &limit, mask), EINTR);
		break;
	case BY_PSELECT:
		FD_ZERO(&set);
		FD_SET(p->pipe_fd[0], &set);
		CHECK_ERR(pselect(p->pipe_fd[0] + 1, &set, NULL, NULL, &limit, mask), EINTR);
		break;
	default:
		CHECK_ERR(epoll_pwait(p->epoll_fd, &event, 1, -1, mask), EINTR);
		break;
	}
}

static void wait_for_turn(const struct player *p)
{
	sigset_t mask, only;

	CHECK_OK(pthread_sigmask(SIG_BLOCK, NULL, &mask));
	CHECK_OK(sigdelset(&mask, SIG));
	if (p->way == BY_SIGWAITINFO) {
		CHECK_OK(sigemptyset(&only));
		CHECK_OK(sigaddset(&only, SIG));
		CHECK_INT(sigwaitinfo(&only, NULL), SIG);
		handled++;
	}
	while (!handled)
		call(p, &mask);
	/* Whoever gave it waits for us. */
	CHECK_INT(handled, 1);
	handled = 0;
}

static void *plays(void *arg)
{
	struct player *p = arg;

	mask_signal(SIG_BLOCK, SIG);
	CHECK_OK(pipe(p->pipe_fd));
	p->epoll_fd = epoll_create1(0);
	CHECK(p->epoll_fd >= 0);
	p->thread = pthread_self();
	pthread_barrier_wait(&all_there);
	for (int i = 0; i < turns; i++) {
		if (!p->serves)
			wait_for_turn(p);
		CHECK_OK(pthread_kill(p->other->thread, SIG));
		if (p->serves)
			wait_for_turn(p);
	}
	CHECK_OK(close(p->epoll_fd));
	CHECK_OK(close(p->pipe_fd[0]));
	CHECK_OK(close(p->pipe_fd[1]));
	return arg;
}

static void play(enum way way)
{
	struct player players[PLAYERS];
	pthread_t threads[PLAYERS];

	CHECK_OK(pthread_barrier_init(&all_there, NULL, PLAYERS));
	for (int i = 0; i < PLAYERS; i++) {
		players[i] = (struct player){
			.way = way, .serves = i & 1, .other = &players[i ^ 1],
		};
		threads[i] = start(plays, &players[i]);
	}
	for (int i = 0; i < PLAYERS; i++)
		finish(threads[i]);
	CHECK_OK(pthread_barrier_destroy(&all_there));
	printf("%s\n", names[way]);
}

/* ---- left in other ways ------------------------------------------------------ */

static void *suspended(void *arg)
{
	sigset_t none;

	CHECK_OK(sigemptyset(&none));
	sigsuspend(&none);
	return arg;
}

static void *computes_then_sleeps(void *arg)
{
	const struct timespec span = { 0, MS };

	event_post(arg);
	while (!handled)
		continue;
	CHECK_OK(nanosleep(&span, NULL));
	return arg;
}

/* A thread that was cancelled in sigsuspend, and one that comes after it. */
static void cancelled(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		struct event begun = EVENT_INIT;
		pthread_t thread = start(suspended, NULL);

		settle();
		CHECK_OK(pthread_cancel(thread));
		CHECK(finish(thread) == PTHREAD_CANCELED);
		thread = start(computes_then_sleeps, &begun);
		event_wait(&begun, 1);
		CHECK_OK(pthread_kill(thread, OTHER));
		finish(thread);
	}
	puts("cancelled");
}

struct leaver {
	bool limited;
	struct event blocks, left, asked;
};

/* It blocks what it waits for, as it must, and later handles it. */
static void *leaves_sigwait(void *arg)
{
	struct leaver *l = arg;
	const struct timespec limit = { 60, 0 };
	sigset_t set;

	CHECK_OK(sigemptyset(&set));
	CHECK_OK(sigaddset(&set, OTHER));
	CHECK_OK(sigaddset(&set, REALTIME));
	CHECK_OK(pthread_sigmask(SIG_BLOCK, &set, NULL));
	mask_signal(SIG_BLOCK, SIG);
	if (sigsetjmp(back, 1) == 0) {
		leaves = 1;
		event_post(&l->blocks);
		mask_signal(SIG_UNBLOCK, SIG);
		if (l->limited)
			sigtimedwait(&set, NULL, &limit);
		else
			sigwaitinfo(&set, NULL);
		CHECK(!"by the handler only");
	}
	handled = 0;
	event_post(&l->left);
	event_wait(&l->asked, 1);
	CHECK_INT(handled, 0);
	CHECK_OK(pthread_sigmask(SIG_UNBLOCK, &set, NULL));
	CHECK_INT(handled, 2);
	event_post(&l->left);
	event_wait(&l->asked, 2);
	while (handled < 4)
		usleep(100);
	return arg;
}

static void left_by_jump(bool limited)
{
	struct leaver l = { limited, EVENT_INIT, EVENT_INIT, EVENT_INIT };
	pthread_t thread = start(leaves_sigwait, &l);

	event_wait(&l.blocks, 1);
	settle();
	CHECK_OK(pthread_kill(thread, SIG));
	event_wait(&l.left, 1);
	CHECK_OK(pthread_kill(thread, OTHER));
	CHECK_OK(pthread_kill(thread, REALTIME));
	event_post(&l.asked);
	event_wait(&l.left, 2);
	/* To the process now: nobody else accepts it. */
	CHECK_OK(kill(getpid(), OTHER));
	CHECK_OK(kill(getpid(), REALTIME));
	event_post(&l.asked);
	finish(thread);
	printf("left by siglongjmp: %s\n", limited ? "sigtimedwait" : "sigwaitinfo");
}

int main(int argc, char **argv)
{
	struct sigaction sa = { .sa_handler = handler };

	if (argc > 1)
		turns = atoi(argv[1]);
	CHECK_OK(sigaction(SIG, &sa, NULL));
	sa.sa_flags = SA_RESTART;
	CHECK_OK(sigaction(OTHER, &sa, NULL));
	CHECK_OK(sigaction(REALTIME, &sa, NULL));
	for (int way = 0; way < WAYS; way++)
		play(way);
	mask_signal(SIG_BLOCK, OTHER);
	mask_signal(SIG_BLOCK, REALTIME);
	left_by_jump(false);
	left_by_jump(true);
	mask_signal(SIG_UNBLOCK, OTHER);
	cancelled();
	return success();
}
