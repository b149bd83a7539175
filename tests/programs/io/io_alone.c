/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/io/io_alone.c - a thread that has waited many times while nobody else had
 * anything to do: its wait then still ends by data, a timeout, a handler, a cancellation, and
 * other threads run meanwhile.
 */
#include "sockets.h"

#include <errno.h>
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/wait.h>

enum { ROUNDS = 250, HELPERS = 6, STEPS = 100 };

enum call { READ, RECV, POLL, SELECT, EPOLL, CALLS };

static int line[2], epoll;
static atomic_int handled, in_wait;
static sem_t turn[HELPERS];
static int steps;

/* Waits until line[0] is readable, or for ms milliseconds.  Returns as poll does. */
static int wait_readable(enum call call, int ms)
{
	struct pollfd p = { .fd = line[0], .events = POLLIN };
	struct timeval span = { .tv_usec = ms * 1000 };
	struct epoll_event event;
	fd_set set;

	switch (call) {
	case POLL:
		return poll(&p, 1, ms);
	case SELECT:
		FD_ZERO(&set);
		FD_SET(line[0], &set);
		return select(line[0] + 1, &set, NULL, NULL, ms < 0 ? NULL : &span);
	case EPOLL:
		return epoll_wait(epoll, &event, 1, ms);
	default:
		return 1;
	}
}

static ssize_t take(enum call call, char *c)
{
	if (wait_readable(call, -1) < 0)
		return -1;
	return call == RECV ? recv(line[0], c, 1, 0) : read(line[0], c, 1);
}

/* The other process gives each byte back. */
static void make_waits(enum call call)
{
	char c;

	for (int i = 0; i < ROUNDS; i++) {
		CHECK_INT(write(line[0], "a", 1), 1);
		CHECK_INT(take(call, &c), 1);
		CHECK_INT(c, 'a');
	}
}

/* ---- how a wait ends ----------------------------------------------------------- */

static void count(int sig)
{
	(void)sig;
	atomic_fetch_add(&handled, 1);
}

static void handle_usr1(int flags)
{
	struct sigaction action = { .sa_handler = count, .sa_flags = flags };

	CHECK_OK(sigaction(SIGUSR1, &action, NULL));
}

static void *is_interrupted(void *arg)
{
	enum call call = (enum call)(intptr_t)arg;
	char c;

	make_waits(call);
	atomic_store(&in_wait, 1);
	CHECK_ERR(take(call, &c), EINTR);
	return NULL;
}

static void *goes_on(void *arg)
{
	char c;

	make_waits(READ);
	atomic_store(&in_wait, 1);
	CHECK_INT(take(READ, &c), 1);
	CHECK_INT(c, 'b');
	return arg;
}

static void *is_cancelled(void *arg)
{
	char c;

	make_waits((enum call)(intptr_t)arg);
	atomic_store(&in_wait, 1);
	take((enum call)(intptr_t)arg, &c);
	return NULL;
}

static void *times_out(void *arg)
{
	enum call call = (enum call)(intptr_t)arg;

	make_waits(call);
	CHECK_INT(wait_readable(call, 20), 0);
	return NULL;
}

/* SO_RCVTIMEO, and O_NONBLOCK, set after many waits. */
static void *is_told_not_to_wait(void *arg)
{
	struct timeval span = { .tv_usec = 20000 };
	char c;

	make_waits(RECV);
	CHECK_OK(setsockopt(line[0], SOL_SOCKET, SO_RCVTIMEO, &span, sizeof(span)));
	CHECK_ERR(recv(line[0], &c, 1, 0), EAGAIN);
	span.tv_usec = 0;
	CHECK_OK(setsockopt(line[0], SOL_SOCKET, SO_RCVTIMEO, &span, sizeof(span)));
	make_waits(RECV);
	CHECK_OK(fcntl(line[0], F_SETFL, fcntl(line[0], F_GETFL) | O_NONBLOCK));
	CHECK_ERR(recv(line[0], &c, 1, 0), EAGAIN);
	CHECK_OK(fcntl(line[0], F_SETFL, fcntl(line[0], F_GETFL) & ~O_NONBLOCK));
	return arg;
}

static pthread_t start_waiting(void *(*fn)(void *), enum call call)
{
	pthread_t t;

	atomic_store(&in_wait, 0);
	t = start(fn, (void *)(intptr_t)call);
	while (!atomic_load(&in_wait))
		settle();
	settle();
	return t;
}

static void test_signal(enum call call)
{
	pthread_t t;

	handle_usr1(call == READ ? 0 : SA_RESTART);
	/* Only reads are restarted. */
	t = start_waiting(is_interrupted, call == RECV ? READ : call);
	if (call == RECV)
		handle_usr1(0);
	CHECK_OK(pthread_kill(t, SIGUSR1));
	finish(t);
}

static void test_restart(void)
{
	pthread_t t;
	int before = atomic_load(&handled);

	handle_usr1(SA_RESTART);
	t = start_waiting(goes_on, READ);
	CHECK_OK(pthread_kill(t, SIGUSR1));
	while (atomic_load(&handled) == before)
		settle();
	CHECK_INT(write(line[0], "b", 1), 1);
	finish(t);
}

static void test_cancel(enum call call)
{
	pthread_t t = start_waiting(is_cancelled, call);
	void *result;

	CHECK_OK(pthread_cancel(t));
	CHECK_OK(pthread_join(t, &result));
	CHECK(result == PTHREAD_CANCELED);
}

/* ---- others meanwhile ------------------------------------------------------------ */

static void *steps_in_turn(void *arg)
{
	sem_t *mine = &turn[(intptr_t)arg], *next = &turn[((intptr_t)arg + 1) % HELPERS];

	for (int i = 0; i < STEPS; i++) {
		while (sem_wait(mine) != 0)
			CHECK_INT(errno, EINTR);
		steps++;
		CHECK_OK(sem_post(next));
	}
	return NULL;
}

/* They need each other, so all of them must run while the first one waits. */
static void test_others(void)
{
	pthread_t waits = start_waiting(goes_on, READ), t[HELPERS];

	for (intptr_t i = 0; i < HELPERS; i++)
		CHECK_OK(sem_init(&turn[i], 0, i == 0));
	for (intptr_t i = 0; i < HELPERS; i++)
		t[i] = start(steps_in_turn, (void *)i);
	for (int i = 0; i < HELPERS; i++)
		finish(t[i]);
	CHECK_INT(steps, HELPERS * STEPS);
	CHECK_INT(write(line[0], "b", 1), 1);
	finish(waits);
}

int main(void)
{
	struct epoll_event event = { .events = EPOLLIN };
	pid_t pid;
	char c;

	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, line));
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		CHECK_OK(close(line[0]));
		while (read(line[1], &c, 1) == 1)
			CHECK_INT(write(line[1], &c, 1), 1);
		_exit(0);
	}
	CHECK_OK(close(line[1]));
	epoll = epoll_create1(0);
	CHECK_OK(epoll_ctl(epoll, EPOLL_CTL_ADD, line[0], &event));
	for (enum call call = READ; call < CALLS; call++) {
		test_signal(call);
		test_cancel(call);
		if (call >= POLL)
			finish(start(times_out, (void *)(intptr_t)call));
	}
	test_restart();
	finish(start(is_told_not_to_wait, NULL));
	test_others();
	CHECK_OK(close(epoll));
	CHECK_OK(close(line[0]));
	CHECK(waitpid(pid, NULL, 0) == pid);
	return success();
}
