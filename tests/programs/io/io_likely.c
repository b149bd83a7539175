/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/io/io_likely.c - receives where data seems to be there: after poll or select has
 * said so, or after a receive that got all that it had room for.  The data may be gone, or be the
 * last; then the call waits, or ends, as any other.
 */
#include "sockets.h"

#include <netinet/tcp.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/uio.h>

enum { SIZE = 64, ROUNDS = 100, LARGE = 1000000 };

static int pair[2];
static pthread_barrier_t polled, taken;
static atomic_bool interrupted;

static void wait_for_data(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	CHECK_INT(poll(&p, 1, -1), 1);
	CHECK_INT(p.revents, POLLIN);
}

/* What was ready is gone when this thread reads: it waits for the next. */
static void *reads_what_is_gone(void *arg)
{
	char c;

	for (int i = 0; i < ROUNDS; i++) {
		wait_for_data(pair[0]);
		pthread_barrier_wait(&polled);
		pthread_barrier_wait(&taken);
		CHECK_INT(i % 2 ? recv(pair[0], &c, 1, 0) : read(pair[0], &c, 1), 1);
		CHECK_INT(c, 'b');
	}
	return arg;
}

static void test_gone(void)
{
	pthread_t reader;
	char c;

	tcp_pair(pair);
	pthread_barrier_init(&polled, NULL, 2);
	pthread_barrier_init(&taken, NULL, 2);
	reader = start(reads_what_is_gone, NULL);
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_INT(write(pair[1], "a", 1), 1);
		pthread_barrier_wait(&polled);
		CHECK_INT(recv(pair[0], &c, 1, 0), 1);
		CHECK_INT(c, 'a');
		pthread_barrier_wait(&taken);
		settle();
		CHECK_INT(write(pair[1], "b", 1), 1);
	}
	CHECK_OK(pthread_join(reader, NULL));
	CHECK_OK(close(pair[0]) | close(pair[1]));
	puts("waits for the next if the data is gone");
}

/* ---- after a receive that got all --------------------------------------- */

static void fill(int fd)
{
	char buf[SIZE] = { 0 };

	CHECK_INT(write(pair[1], buf, SIZE), SIZE);
	CHECK_INT(read(fd, buf, SIZE), SIZE);
}

static void ignore(int sig)
{
	(void)sig;
}

static void *ends_otherwise(void *arg)
{
	struct sigaction action = { .sa_handler = ignore };
	char buf[SIZE];

	CHECK_OK(sigaction(SIGUSR1, &action, NULL));
	set_timeout(pair[0], SO_RCVTIMEO, 20);
	fill(pair[0]);
	CHECK_ERR(read(pair[0], buf, SIZE), EAGAIN);
	set_timeout(pair[0], SO_RCVTIMEO, 0);
	fill(pair[0]);
	CHECK_ERR(recv(pair[0], buf, SIZE, MSG_DONTWAIT), EAGAIN);
	CHECK_OK(fcntl(pair[0], F_SETFL, O_NONBLOCK));
	fill(pair[0]);
	CHECK_ERR(read(pair[0], buf, SIZE), EAGAIN);
	CHECK_OK(fcntl(pair[0], F_SETFL, 0));
	fill(pair[0]);
	pthread_barrier_wait(&polled);
	CHECK_ERR(read(pair[0], buf, SIZE), EINTR);
	mask_signal(SIG_BLOCK, SIGUSR1);
	atomic_store(&interrupted, true);
	fill(pair[0]);
	pthread_barrier_wait(&taken);
	CHECK_INT(recv(pair[0], buf, SIZE, MSG_WAITALL), SIZE);
	CHECK_INT(buf[0], 'x');
	CHECK_INT(buf[SIZE - 1], 'y');
	CHECK_INT(recv(pair[0], buf, SIZE, MSG_PEEK), SIZE);
	CHECK_INT(recv(pair[0], buf, SIZE, MSG_PEEK), SIZE);
	CHECK_INT(readv(pair[0], &(struct iovec){ buf, SIZE }, 1), SIZE);
	CHECK_INT(read(pair[0], buf, SIZE), 0);
	CHECK_INT(read(pair[0], buf, SIZE), 0);
	return arg;
}

static void test_others(void)
{
	char half[SIZE / 2], whole[SIZE] = { 0 };
	pthread_t reader;
	int flag = 1;

	tcp_pair(pair);
	CHECK_OK(setsockopt(pair[1], IPPROTO_TCP, TCP_NODELAY, &flag, sizeof(flag)));
	reader = start(ends_otherwise, NULL);
	pthread_barrier_wait(&polled);
	/* One of them comes in the call. */
	while (!atomic_load(&interrupted)) {
		CHECK_OK(pthread_kill(reader, SIGUSR1));
		settle();
	}
	pthread_barrier_wait(&taken);
	memset(half, 'x', sizeof(half));
	CHECK_INT(write(pair[1], half, sizeof(half)), sizeof(half));
	settle();
	memset(half, 'y', sizeof(half));
	CHECK_INT(write(pair[1], half, sizeof(half)), sizeof(half));
	CHECK_INT(write(pair[1], whole, sizeof(whole)), sizeof(whole));
	CHECK_OK(shutdown(pair[1], SHUT_WR));
	CHECK_OK(pthread_join(reader, NULL));
	CHECK_OK(close(pair[0]) | close(pair[1]));
	puts("timeout, O_NONBLOCK, handler, MSG_WAITALL, MSG_PEEK, end");
}

static void *reads_for_ever(void *arg)
{
	char buf[SIZE];

	fill(pair[0]);
	pthread_barrier_wait(&polled);
	read(pair[0], buf, SIZE);
	return arg;
}

static void test_cancel(void)
{
	pthread_t reader;
	void *result;

	tcp_pair(pair);
	reader = start(reads_for_ever, NULL);
	pthread_barrier_wait(&polled);
	CHECK_OK(pthread_cancel(reader));
	CHECK_OK(pthread_join(reader, &result));
	CHECK(result == PTHREAD_CANCELED);
	CHECK_OK(close(pair[0]) | close(pair[1]));
	puts("cancelled");
}

/* Both directions at once, in pieces that fill the reader's buffer. */
static void *sends_large(void *arg)
{
	static char large[LARGE];

	for (size_t i = 0; i < LARGE; i++)
		large[i] = (char)(i % 251);
	CHECK_INT(write(*(int *)arg, large, LARGE), LARGE);
	return NULL;
}

static void receive_large(int fd)
{
	unsigned char buf[1000];
	size_t done = 0;

	while (done < LARGE) {
		ssize_t n;

		if (done % 2)
			wait_for_data(fd);
		n = read(fd, buf, sizeof(buf));
		CHECK(n > 0);
		for (ssize_t i = 0; i < n; i++)
			CHECK_INT(buf[i], (done + (size_t)i) % 251);
		done += (size_t)n;
	}
}

static void *receives_large(void *arg)
{
	receive_large(*(int *)arg);
	return NULL;
}

static void test_large(void)
{
	pthread_t threads[4];

	tcp_pair(pair);
	for (int i = 0; i < 2; i++) {
		threads[i] = start(sends_large, &pair[i]);
		threads[2 + i] = start(receives_large, &pair[i]);
	}
	for (int i = 0; i < 4; i++)
		CHECK_OK(pthread_join(threads[i], NULL));
	CHECK_OK(close(pair[0]) | close(pair[1]));
	puts("a large transfer in both directions");
}

int main(void)
{
	test_gone();
	test_others();
	test_cancel();
	test_large();
	return success();
}
