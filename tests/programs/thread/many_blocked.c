/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/thread/many_blocked.c - more threads wait in the kernel, for locks of files and
 * for FIFOs to be opened, than there may be kernel threads; others go on, and end their waiting.
 */
#include "check.h"

#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>

enum { LOCKS = 12, FIFOS = 4, ROUNDS = 10 };

static char file[] = "/tmp/check-XXXXXX", fifos[FIFOS][64];
static int stream[2];
static struct event ready = EVENT_INIT;

static void *lock(void *arg)
{
	int fd = open(file, O_RDWR);

	CHECK(fd >= 0);
	event_post(&ready);
	CHECK_OK(flock(fd, LOCK_EX));
	CHECK_OK(close(fd));
	return arg;
}

static void *read_fifo(void *arg)
{
	int fd;
	char c;

	event_post(&ready);
	fd = open((char *)arg, O_RDONLY);
	CHECK(fd >= 0);
	CHECK_INT(read(fd, &c, 1), 1);
	CHECK_OK(close(fd));
	return arg;
}

static void *echo(void *arg)
{
	char c;

	while (read(stream[0], &c, 1) == 1) {
		CHECK_INT(write(stream[0], &c, 1), 1);
		usleep(100);
	}
	return arg;
}

/* What ends the waiting is itself a thread. */
static void *release(void *arg)
{
	const int *fd = arg;

	for (int i = 0; i < FIFOS; i++) {
		int to = open(fifos[i], O_WRONLY);

		CHECK(to >= 0);
		CHECK_INT(write(to, "x", 1), 1);
		CHECK_OK(close(to));
	}
	CHECK_OK(flock(*fd, LOCK_UN));
	return arg;
}

int main(void)
{
	pthread_t locking[LOCKS], reading[FIFOS], echoing;
	int fd = mkstemp(file);
	char c = 'e';

	CHECK(fd >= 0);
	CHECK_OK(flock(fd, LOCK_EX));
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, stream));
	echoing = start(echo, NULL);
	for (int i = 0; i < LOCKS; i++)
		locking[i] = start(lock, &ready);
	for (int i = 0; i < FIFOS; i++) {
		snprintf(fifos[i], sizeof(fifos[i]), "%s.%d", file, i);
		CHECK_OK(mkfifo(fifos[i], 0600));
		reading[i] = start(read_fifo, fifos[i]);
	}
	event_wait(&ready, LOCKS + FIFOS);
	settle();
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_INT(write(stream[1], &c, 1), 1);
		CHECK_INT(read(stream[1], &c, 1), 1);
	}
	CHECK(finish(start(release, &fd)) == &fd);
	for (int i = 0; i < FIFOS; i++) {
		CHECK(finish(reading[i]) == fifos[i]);
		CHECK_OK(unlink(fifos[i]));
	}
	for (int i = 0; i < LOCKS; i++)
		CHECK(finish(locking[i]) == &ready);
	CHECK_OK(shutdown(stream[1], SHUT_WR));
	CHECK(finish(echoing) == NULL);
	CHECK_OK(unlink(file));
	return success();
}
