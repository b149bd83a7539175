/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/libc/libc_handle.c - libc's functions found by dlsym in libc itself, as
 * foreign-function interfaces do, and used next to those that the linker found.
 */
#include "check.h"

#include <dlfcn.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/wait.h>

static struct {
	__typeof__(read) *read;
	__typeof__(write) *write;
	__typeof__(recv) *recv;
	__typeof__(send) *send;
	__typeof__(poll) *poll;
	__typeof__(nanosleep) *nanosleep;
	__typeof__(close) *close;
	__typeof__(fcntl) *fcntl;
	__typeof__(dup2) *dup2;
	__typeof__(pipe) *pipe;
	__typeof__(waitpid) *waitpid;
	__typeof__(pthread_mutex_lock) *pthread_mutex_lock;
	__typeof__(pthread_mutex_unlock) *pthread_mutex_unlock;
} libc;

static void find(void)
{
	void *handle = dlopen("libc.so.6", RTLD_NOW);

	CHECK(handle != NULL);
#define FIND(name) CHECK((libc.name = (__typeof__(libc.name))dlsym(handle, #name)) != NULL)
	FIND(read);
	FIND(write);
	FIND(recv);
	FIND(send);
	FIND(poll);
	FIND(nanosleep);
	FIND(close);
	FIND(fcntl);
	FIND(dup2);
	FIND(pipe);
	FIND(waitpid);
	FIND(pthread_mutex_lock);
	FIND(pthread_mutex_unlock);
}

/* ---- a ring of pipes, every other end by the one and by the other ---------- */

enum { RING = 60, ROUNDS = 30 };

static int ring[RING][2];

static void *passes_on(void *arg)
{
	int i = (int)(intptr_t)arg, n;

	for (int round = 0; round < ROUNDS; round++) {
		CHECK_INT((i & 1 ? libc.read : read)(ring[i][0], &n, sizeof(n)), sizeof(n));
		n++;
		CHECK_INT((i & 2 ? libc.write : write)(ring[(i + 1) % RING][1], &n, sizeof(n)),
			  sizeof(n));
	}
	return NULL;
}

static void around(void)
{
	pthread_t t[RING];
	int n = 0;

	for (int i = 0; i < RING; i++)
		CHECK_OK((i & 1 ? libc.pipe : pipe)(ring[i]));
	for (int i = 0; i < RING; i++)
		t[i] = start(passes_on, (void *)(intptr_t)i);
	CHECK_INT(write(ring[0][1], &n, sizeof(n)), sizeof(n));
	for (int i = 0; i < RING; i++)
		finish(t[i]);
	CHECK_INT(read(ring[0][0], &n, sizeof(n)), sizeof(n));
	CHECK_INT(n, RING * ROUNDS);
	for (int i = 0; i < RING; i++) {
		CHECK_OK((i & 1 ? libc.close : close)(ring[i][0]));
		CHECK_OK((i & 2 ? libc.close : close)(ring[i][1]));
	}
}

/* ---- what is known of a descriptor must not be stale ----------------------- */

static void *numbers(void *arg)
{
	int fd[2], other[2];
	char c;

	/* Not blocking, said behind our back. */
	CHECK_OK(pipe(fd));
	CHECK_OK(libc.fcntl(fd[0], F_SETFL, O_NONBLOCK));
	CHECK_ERR(read(fd[0], &c, 1), EAGAIN);
	CHECK_ERR(libc.read(fd[0], &c, 1), EAGAIN);
	/* Another thing under the same number. */
	CHECK_OK(libc.close(fd[0]));
	CHECK_OK(libc.close(fd[1]));
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, other));
	CHECK_INT(other[0], fd[0]);
	CHECK_ERR(read(other[0], &c, 1), EAGAIN);
	CHECK_ERR(libc.recv(other[0], &c, 1, 0), EAGAIN);
	CHECK_INT(libc.send(other[1], "x", 1, 0), 1);
	CHECK_INT(recv(other[0], &c, 1, 0), 1);
	/* dup2 over it. */
	CHECK_OK(pipe(fd));
	CHECK_INT(libc.dup2(fd[0], other[0]), other[0]);
	CHECK_INT(write(fd[1], "y", 1), 1);
	CHECK_INT(read(other[0], &c, 1), 1);
	CHECK_INT(c, 'y');
	close(fd[0]);
	close(fd[1]);
	close(other[0]);
	close(other[1]);
	CHECK_ERR(libc.close(other[1]), EBADF);
	return arg;
}

/* ---- many that wait, while one works --------------------------------------- */

enum { SLEEPERS = 40 };

static void *waits(void *arg)
{
	struct pollfd p = { .fd = (int)(intptr_t)arg, .events = POLLIN };
	struct timespec span = to_timespec(20 * MS);
	long long began = now(CLOCK_MONOTONIC);
	char c;

	CHECK_OK(libc.nanosleep(&span, NULL));
	CHECK(now(CLOCK_MONOTONIC) - began >= 20 * MS);
	CHECK_INT(libc.poll(&p, 1, -1), 1);
	CHECK_INT(libc.read(p.fd, &c, 1), 1);
	return NULL;
}

static void many(void)
{
	pthread_t t[SLEEPERS];
	char c[SLEEPERS];
	int fd[2];

	memset(c, 'c', sizeof(c));
	CHECK_OK(pipe(fd));
	for (int i = 0; i < SLEEPERS; i++)
		t[i] = start(waits, (void *)(intptr_t)fd[0]);
	usleep(40000);
	write_all(fd[1], c, sizeof(c));
	for (int i = 0; i < SLEEPERS; i++)
		finish(t[i]);
	close(fd[0]);
	close(fd[1]);
}

/* ---- one lock, by both names ------------------------------------------------ */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long counter;

static void *counts(void *arg)
{
	bool theirs = (intptr_t)arg & 1;

	for (int i = 0; i < 2000; i++) {
		CHECK_OK((theirs ? libc.pthread_mutex_lock : pthread_mutex_lock)(&lock));
		counter++;
		if (i % 50 == 0)
			usleep(10);
		CHECK_OK((i & 1 ? libc.pthread_mutex_unlock : pthread_mutex_unlock)(&lock));
	}
	return NULL;
}

static void *waits_for_child(void *arg)
{
	int status, code = (int)(intptr_t)arg;
	pid_t pid = fork();

	if (pid == 0) {
		struct timespec span = to_timespec(10 * MS);

		libc.nanosleep(&span, NULL);
		_exit(code);
	}
	CHECK_INT(libc.waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status));
	CHECK_INT(WEXITSTATUS(status), code);
	CHECK_ERR(libc.waitpid(pid, &status, 0), ECHILD);
	return NULL;
}

int main(void)
{
	pthread_t t[8];

	find();
	around();
	puts("around");
	finish(start(numbers, NULL));
	puts("numbers");
	many();
	puts("many");
	for (int i = 0; i < 8; i++)
		t[i] = start(counts, (void *)(intptr_t)i);
	for (int i = 0; i < 8; i++)
		finish(t[i]);
	CHECK_INT(counter, 16000);
	puts("one lock");
	for (int i = 0; i < 8; i++)
		t[i] = start(waits_for_child, (void *)(intptr_t)i);
	for (int i = 0; i < 8; i++)
		finish(t[i]);
	puts("children");
	return success();
}
