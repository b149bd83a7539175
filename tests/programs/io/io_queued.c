/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/io/io_queued.c - another thread closes descriptors some time after calls have begun to wait with them, and
 * opens other files under their numbers: each call gets what comes from its own file.
 */
#include "sockets.h"

enum { CLOSERS = 6, ROUNDS = 6, WAITING = 8 };

struct waiting {
	struct event begun;
	pid_t tid;
	int fd;
	void (*waits)(int fd);
};

static void receives(int fd)
{
	char c = 0;

	CHECK_INT(recv(fd, &c, 1, 0), 1);
	CHECK_INT(c, 'x');
}

static void reads(int fd)
{
	char c = 0;

	CHECK_INT(read(fd, &c, 1), 1);
	CHECK_INT(c, 'x');
}

static void (*const ways[])(int) = { receives, reads };

static void *waits(void *arg)
{
	struct waiting *w = arg;

	w->tid = gettid();
	event_post(&w->begun);
	w->waits(w->fd);
	return NULL;
}

static void closes(int fd)
{
	CHECK_OK(close(fd));
}

static void replaces(int fd)
{
	const int null = open("/dev/null", O_RDONLY);

	CHECK(null >= 0);
	CHECK_INT(dup2(null, fd), fd);
	CHECK_OK(close(null));
	CHECK_OK(close(fd));
}

static void closes_range(int fd)
{
	CHECK_OK(close_range((unsigned)fd, (unsigned)fd, 0));
}

static void (*const ends[])(int) = { closes, replaces, closes_range };

static void round_of(void (*const way)(int), void (*const end)(int))
{
	struct waiting w[WAITING];
	pthread_t t[WAITING];
	int own[WAITING][2], other[WAITING][2];

	for (int i = 0; i < WAITING; i++) {
		w[i] = (struct waiting){ .begun = EVENT_INIT, .waits = way };
		make_pair(SOCKET, own[i]);
		w[i].fd = own[i][0];
		t[i] = start(waits, &w[i]);
	}
	for (int i = 0; i < WAITING; i++)
		event_wait(&w[i].begun, 1);
	usleep(20 * 1000);
	for (int i = 0; i < WAITING; i++)
		await_sleep(w[i].tid);
	for (int i = 0; i < WAITING; i++) {
		end(own[i][0]);
		make_pair(SOCKET, other[i]);
		CHECK_INT(write(other[i][1], "y", 1), 1);
	}
	for (int i = 0; i < WAITING; i++)
		CHECK_INT(write(own[i][1], "x", 1), 1);
	for (int i = 0; i < WAITING; i++) {
		finish(t[i]);
		CHECK_OK(close(own[i][1]));
		CHECK_OK(close(other[i][0]));
		CHECK_OK(close(other[i][1]));
	}
}

static void *rounds(void *arg)
{
	for (int i = 0; i < ROUNDS; i++)
		round_of(ways[i % 2], ends[i / 2 % 3]);
	return arg;
}

int main(void)
{
	pthread_t t[CLOSERS];

	for (int i = 0; i < CLOSERS; i++)
		t[i] = start(rounds, NULL);
	for (int i = 0; i < CLOSERS; i++)
		finish(t[i]);
	return success();
}
