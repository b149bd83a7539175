/* SPDX-License-Identifier: MIT */
/*
 * tests/targets/elsewhere.c - threads that wait for what is no descriptor of the process, or by calls that only the
 * kernel knows; names in C that are codes of types in C++; locks
 * held by a reader, and by a thread that has ended.
 *
 *	elsewhere DIR	prints "ready" once the threads have been made, and goes on until killed
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static pthread_mutex_t left = PTHREAD_MUTEX_INITIALIZER;
static const char *directory;
static int word;
static pid_t child;

__attribute__((noinline)) int f(void)
{
	pthread_mutex_lock(&m);
	__asm__ volatile("");
	return 0;
}

static void *locks(void *arg)
{
	f();
	return arg;
}

static void *writes(void *arg)
{
	pthread_rwlock_wrlock(&rw);
	return arg;
}

static void *takes_left(void *arg)
{
	pthread_mutex_lock(&left);
	return arg;
}

static void *shared(void *arg)
{
	syscall(SYS_futex, &word, FUTEX_WAIT, 0, NULL);
	return arg;
}

static void *one(void *arg)
{
	waitpid(child, NULL, 0);
	return arg;
}

static void *any(void *arg)
{
	siginfo_t info;

	waitid(P_ALL, 0, &info, WEXITED);
	return arg;
}

static void *group(void *arg)
{
	waitpid(-child, NULL, 0);
	return arg;
}

static void *own_group(void *arg)
{
	waitpid(0, NULL, 0);
	return arg;
}

static void *polls(void *arg)
{
	struct epoll_event event;

	epoll_wait(epoll_create1(0), &event, 1, -1);
	return arg;
}

static int open_in(const char *name)
{
	char path[200];

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	return open(path, O_RDWR | O_CREAT, 0600);
}

static void *locks_file(void *arg)
{
	const int holder = open_in("locked"), waiter = open_in("locked");

	flock(holder, LOCK_EX);
	flock(waiter, LOCK_EX);
	return arg;
}

static void *watches(void *arg)
{
	char event[4096];

	return read(inotify_init(), event, sizeof(event)) < 0 ? NULL : arg;
}

static void *accepts(void *arg)
{
	const int socket_fd = socket(AF_UNIX, SOCK_STREAM, 0);
	struct sockaddr_un at = { .sun_family = AF_UNIX };

	if (snprintf(at.sun_path, sizeof(at.sun_path), "%s/two words", directory) >= (int)sizeof(at.sun_path))
		return arg;
	unlink(at.sun_path);
	bind(socket_fd, (struct sockaddr *)&at, sizeof(at));
	listen(socket_fd, 1);
	accept(socket_fd, NULL, NULL);
	return arg;
}

static const struct {
	void *(*start)(void *);
	const char *name;
} threads[] = {
	{ locks, "locks" }, { writes, "writes" }, { takes_left, "takes-left" }, { shared, "shared" }, { one, "one" }, { any, "any" }, { group, "group" },
	{ own_group, "own-group" }, { polls, "polls" },
	{ locks_file, "locks-file" }, { watches, "watches" }, { accepts, "accepts" },
};

/* A child that does nothing, in a process group of its own, or in this one. */
static pid_t make_child(bool own)
{
	const pid_t made = fork();

	if (!made) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (own)
			setpgid(0, 0);
		for (;;)
			pause();
	}
	if (own)
		setpgid(made, made);
	return made;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	if (argc != 2)
		return 2;
	directory = argv[1];
	child = make_child(true);
	make_child(false);
	pthread_mutex_lock(&m);
	pthread_rwlock_rdlock(&rw);
	/* The first that takes it ends. */
	pthread_create(&thread, NULL, takes_left, NULL);
	pthread_join(thread, NULL);
	for (size_t i = 0; i < sizeof(threads) / sizeof(*threads); i++) {
		pthread_create(&thread, NULL, threads[i].start, NULL);
		pthread_setname_np(thread, threads[i].name);
	}
	puts("ready");
	fflush(stdout);
	pthread_join(thread, NULL);
	return 0;
}
