/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/process/fork_daemon.c - daemon(3), and the double fork that closes all
 * descriptors in each way there is; then a server with threads; begun before there are
 * threads, with threads about, and by a thread.
 */
#include "sockets.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { CLIENTS = 12, ROUNDS = 20 };

enum way { BY_DAEMON, BY_CLOSE, BY_CLOSE_LIMIT, BY_CLOSE_RANGE, BY_CLOSEFROM, BY_SYSCALL,
	   BY_LISTING, WAYS };

static const char *const names[WAYS] = { "daemon", "close 0..1023", "close to the limit",
	"close_range", "closefrom", "SYS_close", "/proc/self/fd" };

static char directory[] = "/tmp/fork_daemon.XXXXXX", fifo[64];
static struct event begun = EVENT_INIT;
static int hold[2];

/* ---- the daemon -------------------------------------------------------------- */

static void close_listed(void)
{
	DIR *d = opendir("/proc/self/fd");
	struct dirent *e;

	CHECK(d != NULL);
	while ((e = readdir(d)))
		if (e->d_name[0] != '.' && atoi(e->d_name) != dirfd(d))
			close(atoi(e->d_name));
	closedir(d);
}

static void close_all(enum way way)
{
	struct rlimit limit;

	switch (way) {
	case BY_DAEMON:
	case WAYS:
		break;
	case BY_CLOSE:
		for (int fd = 0; fd < 1024; fd++)
			close(fd);
		break;
	case BY_CLOSE_LIMIT:
		CHECK_OK(getrlimit(RLIMIT_NOFILE, &limit));
		for (int fd = 0; fd < (int)limit.rlim_cur && fd < 1 << 16; fd++)
			close(fd);
		break;
	case BY_CLOSE_RANGE:
		CHECK_OK(close_range(0, ~0U, 0));
		break;
	case BY_CLOSEFROM:
		closefrom(0);
		break;
	case BY_SYSCALL:
		for (int fd = 0; fd < 1024; fd++)
			syscall(SYS_close, fd);
		break;
	case BY_LISTING:
		close_listed();
		break;
	}
}

static int listening = -1;

static void *accepts(void *arg)
{
	pthread_t t[CLIENTS];

	for (int i = 0; i < CLIENTS; i++) {
		int fd = accept(listening, NULL, NULL);

		CHECK(fd > 2);
		t[i] = start(echoes_until_end, (void *)(intptr_t)fd);
	}
	for (int i = 0; i < CLIENTS; i++)
		finish(t[i]);
	return arg;
}

static void serve(enum way way)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t length = sizeof(address);
	pthread_t t;
	int fd;

	/* One that closes everything while it has threads goes on all the same. */
	listening = socket(AF_INET, SOCK_STREAM, 0);
	CHECK_INT(listening, 3);
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK_OK(bind(listening, (struct sockaddr *)&address, length));
	CHECK_OK(listen(listening, CLIENTS));
	CHECK_OK(getsockname(listening, (struct sockaddr *)&address, &length));
	t = start(accepts, NULL);
	settle();
	if (way == BY_CLOSE_RANGE)
		CHECK_OK(close_range(4, ~0U, 0));
	if (way == BY_CLOSEFROM)
		closefrom(4);
	if (way == BY_CLOSE)
		for (int i = 4; i < 2048; i++)
			close(i);
	fd = open(fifo, O_WRONLY);
	CHECK(fd >= 4);
	CHECK_INT(write(fd, &address.sin_port, sizeof(address.sin_port)),
		  sizeof(address.sin_port));
	CHECK_OK(close(fd));
	finish(t);
	CHECK_OK(close(listening));
}

static void daemonise(enum way way)
{
	pid_t pid;

	if (way == BY_DAEMON) {
		CHECK_OK(daemon(0, 0));
		CHECK_OK(close_range(3, ~0U, 0));
		return;
	}
	CHECK(setsid() >= 0);
	signal(SIGHUP, SIG_IGN);
	pid = fork();
	CHECK(pid >= 0);
	if (pid)
		_exit(0);
	umask(0);
	CHECK_OK(chdir("/"));
	close_all(way);
	CHECK_INT(open("/dev/null", O_RDWR), 0);
	CHECK_INT(dup(0), 1);
	CHECK_INT(dup(0), 2);
}

static _Noreturn void be_daemon(enum way way)
{
	daemonise(way);
	serve(way);
	exit(40 + (int)way);
}

/* ---- who starts it and asks it ------------------------------------------------- */

static void *asks(void *arg)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	char text[16];

	CHECK_OK(connect(fd, arg, sizeof(struct sockaddr_in)));
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_INT(write(fd, "0123456789abcdef", 16), 16);
		CHECK_INT(recv(fd, text, 16, MSG_WAITALL), 16);
	}
	CHECK_OK(close(fd));
	return NULL;
}

static int wait_for(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		CHECK_INT(errno, EINTR);
	return status;
}

static void one(enum way way)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	pthread_t t[CLIENTS];
	pid_t pid;
	int fd;

	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		be_daemon(way);
	CHECK_OK(wait_for(pid));
	fd = open(fifo, O_RDONLY);
	CHECK(fd >= 0);
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK_INT(read_all(fd, &address.sin_port, sizeof(address.sin_port)),
		  sizeof(address.sin_port));
	CHECK_OK(close(fd));
	for (int i = 0; i < CLIENTS; i++)
		t[i] = start(asks, &address);
	for (int i = 0; i < CLIENTS; i++)
		finish(t[i]);
	/* It is ours to wait for, being no one else's. */
	CHECK_INT(wait_for(-1), (40 + (int)way) << 8);
}

static void *all(void *arg)
{
	for (int way = 0; way < WAYS; way++) {
		one((enum way)way);
		puts(names[way]);
	}
	return arg;
}

static void *blocked(void *arg)
{
	char c;

	event_post(&begun);
	CHECK_INT(read(hold[0], &c, 1), 0);
	return arg;
}

static volatile int stop;

static void *computes(void *arg)
{
	event_post(&begun);
	while (!stop)
		continue;
	return arg;
}

/* Each step in a process of its own, the first of which never had a thread. */
static void as_process(void (*fn)(void))
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		CHECK_OK(prctl(PR_SET_CHILD_SUBREAPER, 1));
		fn();
		exit(0);
	}
	CHECK_OK(wait_for(pid));
}

/* The asking makes threads: each daemon in a process that has had none. */
static void alone(void)
{
	for (int way = 0; way < WAYS; way++) {
		pid_t pid;

		fflush(stdout);
		pid = fork();
		if (pid == 0) {
			CHECK_OK(prctl(PR_SET_CHILD_SUBREAPER, 1));
			one((enum way)way);
			puts(names[way]);
			exit(0);
		}
		CHECK_OK(wait_for(pid));
	}
}

static void with_threads(void)
{
	pthread_t t[4];

	CHECK_OK(pipe(hold));
	for (int i = 0; i < 3; i++)
		t[i] = start(blocked, NULL);
	t[3] = start(computes, NULL);
	event_wait(&begun, 4);
	settle();
	puts("main");
	fflush(stdout);
	all(NULL);
	puts("a thread");
	fflush(stdout);
	finish(start(all, NULL));
	puts("a thread with an affinity");
	fflush(stdout);
	finish(start_affine(all, NULL));
	stop = 1;
	CHECK_OK(close(hold[1]));
	for (int i = 0; i < 4; i++)
		finish(t[i]);
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	CHECK(mkdtemp(directory) != NULL);
	snprintf(fifo, sizeof(fifo), "%s/port", directory);
	CHECK_OK(mkfifo(fifo, 0600));
	/* Whatever the caller left open is not what this is about. */
	close_range(3, 1023, 0);
	as_process(alone);
	as_process(with_threads);
	CHECK_OK(unlink(fifo));
	CHECK_OK(rmdir(directory));
	return success();
}
