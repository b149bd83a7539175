/* SPDX-License-Identifier: MIT */
#ifndef DENIED_H
#define DENIED_H

/*
 * tests/programs/denied.h - the descriptors of denied_calls.c, and threads that do what its calls wait
 * for.  To be included after check.h, by it alone.
 */

#include <arpa/inet.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>

enum { LARGE = 300000 };

static int pipes[2], nonblocking[2], fifo, streams[2], datagrams[2], timed[2], counter, listener,
	epoll, file;
static struct sockaddr_in address;
static char sent[LARGE], received[LARGE];

static void make_descriptors(void)
{
	struct timeval short_time = { .tv_usec = 1000 };
	char name[] = "/tmp/denied-XXXXXX";
	socklen_t size = sizeof(address);
	struct epoll_event event = { .events = EPOLLIN };

	CHECK_OK(pipe(pipes));
	CHECK_OK(pipe2(nonblocking, O_NONBLOCK));
	CHECK(mkdtemp(name));
	CHECK_OK(chdir(name));
	CHECK_OK(mkfifo("fifo", 0600));
	fifo = open("fifo", O_RDWR);
	CHECK(fifo >= 0);
	file = open("file", O_RDWR | O_CREAT, 0600);
	CHECK_INT(write(file, sent, 4096), 4096);
	CHECK_OK(unlink("fifo") || unlink("file") || chdir("/") || rmdir(name));
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, streams));
	CHECK_OK(socketpair(AF_UNIX, SOCK_DGRAM, 0, datagrams));
	CHECK_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, timed));
	CHECK_OK(setsockopt(timed[0], SOL_SOCKET, SO_RCVTIMEO, &short_time, sizeof(short_time)));
	counter = eventfd(0, 0);
	CHECK(counter >= 0);
	listener = socket(AF_INET, SOCK_STREAM, 0);
	address.sin_family = AF_INET;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK_OK(bind(listener, (const struct sockaddr *)&address, sizeof(address)));
	CHECK_OK(listen(listener, 8));
	CHECK_OK(getsockname(listener, (struct sockaddr *)&address, &size));
	epoll = epoll_create1(0);
	CHECK(epoll >= 0);
	CHECK_OK(epoll_ctl(epoll, EPOLL_CTL_ADD, pipes[0], &event));
}

/* What a partner does while the caller waits. */
struct partner {
	void (*act)(void);
	pthread_t thread;
};

static void *partner_main(void *arg)
{
	const struct partner *p = arg;

	/* Long enough that the other mostly waits. */
	usleep(200);
	p->act();
	return NULL;
}

static struct partner meanwhile(void (*act)(void))
{
	return (struct partner){ .act = act };
}

static void write_pipe(void)
{
	CHECK_INT(write(pipes[1], "p", 1), 1);
}

static void drain_pipe(void)
{
	CHECK_INT(read_all(pipes[0], received, LARGE), LARGE);
}

static void write_fifo(void)
{
	CHECK_INT(write(fifo, "f", 1), 1);
}

static void write_counter(void)
{
	const uint64_t three = 3;

	CHECK_INT(write(counter, &three, sizeof(three)), sizeof(three));
}

static void write_stream(void)
{
	CHECK_INT(write(streams[1], "s", 1), 1);
}

static void write_stream_large(void)
{
	write_all(streams[1], sent, LARGE / 2);
	usleep(200);
	write_all(streams[1], sent + LARGE / 2, LARGE / 2);
}

/* While the other waits to receive, a third thread's call ends. */
static void write_stream_slowly(void)
{
	write_all(streams[1], sent, LARGE / 3);
	usleep(500);
	write_pipe();
	usleep(500);
	write_all(streams[1], sent + LARGE / 3, LARGE - LARGE / 3);
}

static void drain_stream(void)
{
	CHECK_INT(read_all(streams[1], received, LARGE), LARGE);
}

/* While the other waits to send, a third thread's call ends. */
static void drain_stream_slowly(void)
{
	CHECK_INT(read_all(streams[1], received, LARGE / 3), LARGE / 3);
	usleep(500);
	write_pipe();
	usleep(500);
	CHECK_INT(read_all(streams[1], received + LARGE / 3, LARGE - LARGE / 3), LARGE - LARGE / 3);
}

static void write_datagram(void)
{
	CHECK_INT(write(datagrams[1], "d", 1), 1);
}

static void connect_to(void)
{
	const int fd = socket(AF_INET, SOCK_STREAM, 0);

	CHECK_OK(connect(fd, (const struct sockaddr *)&address, sizeof(address)));
	CHECK_OK(close(fd));
}

#define WHILE(act_, e)							\
	do {								\
		struct partner p_ = meanwhile(act_);			\
									\
		p_.thread = start(partner_main, &p_);			\
		e;							\
		finish(p_.thread);					\
	} while (0)

#endif
