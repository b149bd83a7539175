/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/io/file_fifo.c - opening one end of a FIFO waits for the other, until a signal or a
 * cancellation comes.
 */
#include "check.h"

#include <sys/stat.h>

static struct event blocked = EVENT_INIT;
static char fifo[64];

static void *opens_to_read(void *arg)
{
	char c;
	int fd;

	event_post(&blocked);
	fd = open(fifo, O_RDONLY);
	CHECK(fd >= 0);
	CHECK_INT(read(fd, &c, 1), 1);
	CHECK_INT(read(fd, &c, 1), 0);
	close(fd);
	return arg;
}

static void *opens_to_write(void *arg)
{
	int fd;

	event_post(&blocked);
	fd = open(fifo, O_WRONLY);
	CHECK(fd >= 0);
	if (arg)
		CHECK_INT(write(fd, "x", 1), 1);
	close(fd);
	return NULL;
}

static void handler(int sig)
{
	(void)sig;
}

static void *open_interrupted(void *arg)
{
	event_post(&blocked);
	CHECK_ERR(open(fifo, O_RDONLY), EINTR);
	return arg;
}

static void fifos(void)
{
	struct sigaction sa = { .sa_handler = handler };
	pthread_t r, w;
	void *value;

	CHECK_OK(sigaction(SIGUSR1, &sa, NULL));
	strcpy(fifo, "/tmp/check-XXXXXX");
	CHECK(mkdtemp(fifo) != NULL);
	strcat(fifo, "/fifo");
	CHECK_OK(mkfifo(fifo, 0600));
	CHECK_ERR(open(fifo, O_WRONLY | O_NONBLOCK), ENXIO);
	r = start(opens_to_read, NULL);
	event_wait(&blocked, 1);
	settle();
	w = start(opens_to_write, "write");
	finish(w);
	finish(r);
	w = start(opens_to_write, NULL);
	event_wait(&blocked, 3);
	settle();
	int fd = open(fifo, O_RDONLY);
	CHECK(fd >= 0);
	finish(w);
	close(fd);
	r = start(open_interrupted, NULL);
	event_wait(&blocked, 4);
	settle();
	while (pthread_tryjoin_np(r, NULL) == EBUSY) {
		CHECK_OK(pthread_kill(r, SIGUSR1));
		settle();
	}
	r = start(opens_to_read, NULL);
	event_wait(&blocked, 5);
	settle();
	CHECK_OK(pthread_cancel(r));
	CHECK_OK(pthread_join(r, &value));
	CHECK(value == PTHREAD_CANCELED);
	CHECK_OK(unlink(fifo));
	*strrchr(fifo, '/') = 0;
	CHECK_OK(rmdir(fifo));
}

int main(void)
{
	fifos();
	return success();
}
