/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/signal/signal_restart.c - signal(7): which calls continue after a handler,
 * depending on SA_RESTART and timeouts; in the main thread and in another thread, interrupted
 * by a signal to that thread.
 */
#include "sockets.h"

#include <poll.h>
#include <semaphore.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/wait.h>

static __thread volatile sig_atomic_t handled;

static int handler_pipe[2];

/* It makes calls of its own, which go on or end by themselves. */
static void count(int sig)
{
	char c;

	(void)sig;
	if (write(handler_pipe[1], "x", 1) != 1 || read(handler_pipe[0], &c, 1) != 1)
		abort();
	handled++;
}

/* ---- calls: each answers 0, if it was let go on, or the errno --------------- */

static int pipe_fd[2], full_fd[2], part_fd[2], part_sock[2], sock[2], timed_sock[2], listener, epoll, queue, lock_fd;
static sem_t sem;
static char lock_name[] = "/tmp/signal_restart.XXXXXX";

/* What lets each go on; by the helper. */
static int byte_to, drain_from, post_sem, connect_to, send_msg, unlock, end_child;
static pid_t child;
static struct sockaddr_in address;

static sem_t begin;

/* The helper may start: what it needs to let the call go on is known. */
static void ready(void)
{
	sem_post(&begin);
}

static int outcome(long ret)
{
	return ret < 0 ? errno : 0;
}

static int call_read(void)
{
	char c;

	byte_to = pipe_fd[1];
	ready();
	return outcome(read(pipe_fd[0], &c, 1));
}

static int call_write(void)
{
	char block[4096] = { 0 };

	drain_from = full_fd[0];
	ready();
	return outcome(write(full_fd[1], block, sizeof(block)));
}

/* A part of it is done when the signal comes: its count, whatever the handler's flags are. */
static int outcome_in_part(ssize_t n, ssize_t all)
{
	return n > 0 && n < all ? EINTR : outcome(n);
}

static char large[8 << 20];

static int call_write_in_part(void)
{
	ready();
	return outcome_in_part(write(part_fd[1], large, sizeof(large)), sizeof(large));
}

static int call_send_in_part(void)
{
	ready();
	return outcome_in_part(send(part_sock[1], large, sizeof(large), 0), sizeof(large));
}

static int call_recv(void)
{
	char c;

	byte_to = sock[1];
	ready();
	return outcome(recv(sock[0], &c, 1, 0));
}

/* With a timeout set on the socket: never restarted. */
static int call_recv_timed(void)
{
	char c;

	byte_to = timed_sock[1];
	ready();
	return outcome(recv(timed_sock[0], &c, 1, 0));
}

static int call_accept(void)
{
	int fd;

	connect_to = 1;
	ready();
	fd = accept(listener, NULL, NULL);
	if (fd >= 0)
		close(fd);
	return outcome(fd);
}

static int call_poll(void)
{
	struct pollfd p = { .fd = pipe_fd[0], .events = POLLIN };

	byte_to = pipe_fd[1];
	ready();
	return outcome(poll(&p, 1, 10000));
}

static int call_select(void)
{
	fd_set set;

	FD_ZERO(&set);
	FD_SET(pipe_fd[0], &set);
	byte_to = pipe_fd[1];
	ready();
	return outcome(select(pipe_fd[0] + 1, &set, NULL, NULL, NULL));
}

static int call_epoll(void)
{
	struct epoll_event event;

	byte_to = pipe_fd[1];
	ready();
	return outcome(epoll_wait(epoll, &event, 1, 10000));
}

static int call_nanosleep(void)
{
	ready();
	return outcome(nanosleep(&(struct timespec){ .tv_sec = 10 }, NULL));
}

static int call_sem_wait(void)
{
	post_sem = 1;
	ready();
	return outcome(sem_wait(&sem));
}

static int call_sem_timedwait(void)
{
	struct timespec when = in(CLOCK_REALTIME, 10000 * MS);

	post_sem = 1;
	ready();
	return outcome(sem_timedwait(&sem, &when));
}

static int call_waitpid(void)
{
	int ret, p[2];
	char c;

	CHECK_OK(pipe(p));
	child = fork();
	if (child == 0) {
		close(p[1]);
		_exit(read(p[0], &c, 1) == 0 ? 5 : 6);
	}
	close(p[0]);
	end_child = p[1];
	ready();
	ret = outcome(waitpid(child, NULL, 0));
	return ret;
}

static int call_flock(void)
{
	int fd = open(lock_name, O_RDWR), ret;

	CHECK_OK(flock(lock_fd, LOCK_EX));
	unlock = 1;
	ready();
	ret = outcome(flock(fd, LOCK_EX));
	close(fd);
	return ret;
}

static int call_msgrcv(void)
{
	struct { long type; char c; } msg;

	send_msg = 1;
	ready();
	return outcome(msgrcv(queue, &msg, 1, 0, 0));
}

static const struct {
	const char *name;
	int (*call)(void);
	int restarts;		/* with SA_RESTART */
} calls[] = {
	{ "read", call_read, 1 },
	{ "write", call_write, 1 },
	{ "write in part", call_write_in_part, 0 },
	{ "send in part", call_send_in_part, 0 },
	{ "recv", call_recv, 1 },
	{ "recv with SO_RCVTIMEO", call_recv_timed, 0 },
	{ "accept", call_accept, 1 },
	{ "poll", call_poll, 0 },
	{ "select", call_select, 0 },
	{ "epoll_wait", call_epoll, 0 },
	{ "nanosleep", call_nanosleep, 0 },
	{ "sem_wait", call_sem_wait, 1 },
	{ "sem_timedwait", call_sem_timedwait, 0 },
	{ "waitpid", call_waitpid, 1 },
	{ "flock", call_flock, 1 },
	{ "msgrcv", call_msgrcv, 0 },
};

/* ---- the helper: interrupts until a handler has run, then lets it go on ------- */

static pthread_t target;
static sem_t ended;
static volatile int done;
/* The call is to end by the signal; it has. */
static volatile sig_atomic_t ends, returned;

static void let_go(void)
{
	char block[4096];

	if (byte_to)
		CHECK_INT(write(byte_to, "x", 1), 1);
	if (drain_from)
		for (int i = 0; i < 8; i++)
			CHECK(read(drain_from, block, sizeof(block)) > 0);
	if (post_sem)
		CHECK_OK(sem_post(&sem));
	if (connect_to) {
		int fd = socket(AF_INET, SOCK_STREAM, 0);

		CHECK_OK(connect(fd, (struct sockaddr *)&address, sizeof(address)));
		close(fd);
	}
	if (send_msg) {
		struct { long type; char c; } msg = { 1, 'x' };

		CHECK_OK(msgsnd(queue, &msg, 1, 0));
	}
	if (unlock)
		CHECK_OK(flock(lock_fd, LOCK_UN));
	if (end_child)
		close(end_child);
}

static void *helps(void *arg)
{
	for (;;) {
		sem_wait(&begin);
		if (done)
			return arg;
		/* Long enough that it blocks; a signal that comes before ends nothing. */
		do {
			usleep(8000);
			CHECK_OK(pthread_kill(target, SIGUSR1));
		} while (ends && !returned);
		usleep(8000);
		let_go();
		sem_post(&ended);
	}
}

/* What was to let it go on has not been used up. */
static void tidy_up(void)
{
	char block[4096];
	struct { long type; char c; } msg;
	int fd;

	fcntl(pipe_fd[0], F_SETFL, O_NONBLOCK);
	while (read(pipe_fd[0], block, 1) == 1)
		continue;
	fcntl(pipe_fd[0], F_SETFL, 0);
	while (recv(sock[0], block, 1, MSG_DONTWAIT) == 1 ||
	       recv(timed_sock[0], block, 1, MSG_DONTWAIT) == 1)
		continue;
	while (recv(part_sock[0], large, sizeof(large), MSG_DONTWAIT) > 0)
		continue;
	fcntl(part_fd[0], F_SETFL, O_NONBLOCK);
	while (read(part_fd[0], large, sizeof(large)) > 0)
		continue;
	fcntl(full_fd[1], F_SETFL, O_NONBLOCK);
	while (write(full_fd[1], block, sizeof(block)) > 0)
		continue;
	fcntl(full_fd[1], F_SETFL, 0);
	while (sem_trywait(&sem) == 0)
		continue;
	fcntl(listener, F_SETFL, O_NONBLOCK);
	while ((fd = accept(listener, NULL, NULL)) >= 0)
		close(fd);
	fcntl(listener, F_SETFL, 0);
	while (msgrcv(queue, &msg, 1, 0, IPC_NOWAIT) >= 0)
		continue;
	flock(lock_fd, LOCK_UN);
	if (child) {
		while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
			continue;
		child = 0;
	}
	byte_to = drain_from = post_sem = connect_to = send_msg = unlock = end_child = 0;
}

static void *tries_all(void *arg)
{
	bool quiet = arg != NULL;

	target = pthread_self();
	for (int flags = 0; flags < 2; flags++) {
		struct sigaction sa = { .sa_handler = count, .sa_flags = flags ? SA_RESTART : 0 };

		CHECK_OK(sigaction(SIGUSR1, &sa, NULL));
		for (size_t i = 0; i < COUNT(calls); i++) {
			int err, want = flags && calls[i].restarts ? 0 : EINTR;

			handled = returned = 0;
			ends = want == EINTR;
			err = calls[i].call();
			returned = 1;
			while (sem_wait(&ended) < 0)
				CHECK_INT(errno, EINTR);
			if (err != want)
				fail(__FILE__, __LINE__, "%s with flags %d: %d, not %d\n",
				     calls[i].name, flags, err, want);
			if (ends ? handled < 1 : handled != 1)
				fail(__FILE__, __LINE__, "%s with flags %d: handled %d times\n",
				     calls[i].name, flags, handled);
			tidy_up();
			if (!quiet)
				printf("%s, %s: %s\n", calls[i].name,
				       flags ? "SA_RESTART" : "no flags",
				       err ? "EINTR" : "goes on");
		}
	}
	return NULL;
}

int main(void)
{
	struct timeval tv = { .tv_sec = 10 };
	struct epoll_event event = { .events = EPOLLIN };
	pthread_t t;

	CHECK_OK(pipe(handler_pipe));
	CHECK_OK(pipe(pipe_fd));
	CHECK_OK(pipe(full_fd));
	CHECK_OK(pipe(part_fd));
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, part_sock));
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, sock));
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, timed_sock));
	CHECK_OK(setsockopt(timed_sock[0], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)));
	listener = listening_socket(0, &address);
	epoll = epoll_create1(0);
	CHECK_OK(epoll_ctl(epoll, EPOLL_CTL_ADD, pipe_fd[0], &event));
	queue = msgget(IPC_PRIVATE, 0600);
	CHECK(queue >= 0);
	lock_fd = mkstemp(lock_name);
	CHECK_OK(sem_init(&sem, 0, 0));
	CHECK_OK(sem_init(&begin, 0, 0));
	CHECK_OK(sem_init(&ended, 0, 0));
	tidy_up();
	t = start(helps, NULL);
	tries_all(NULL);
	finish(start(tries_all, ""));
	done = 1;
	sem_post(&begin);
	finish(t);
	unlink(lock_name);
	msgctl(queue, IPC_RMID, NULL);
	return success();
}
