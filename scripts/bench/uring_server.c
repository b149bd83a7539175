/* SPDX-License-Identifier: MIT */
/*
 * scripts/bench/uring_server.c - the work of "legacy_server -e", written directly for io_uring.
 *
 * An echo server: one thread, one ring, one state machine: the upper limit against which fibers
 * are measured.  Each connection has one request in flight: a recv, then a send.
 * All requests that a batch of completions leads to are submitted by the one
 * io_uring_enter that waits for the next batch.
 *
 *	uring_server [-p PORT]
 */
#include <arpa/inet.h>
#include <errno.h>
#include <liburing.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "scripts/bench/number.h"

#define ENTRIES 4096
#define REQUEST_MAX 8192

/* Owned by the request in flight, freed when there is none. */
struct conn {
	int fd;
	int sending;		/* the request in flight is the send */
	size_t have;		/* bytes in `in` */
	char in[REQUEST_MAX];
};

static struct io_uring ring;
static volatile sig_atomic_t stop;
static struct conn acceptor;	/* only its address is used */

static void on_stop(int sig)
{
	(void)sig;
	stop = 1;
}

static void die(const char *what, int err)
{
	fprintf(stderr, "%s: %s\n", what, strerror(err));
	exit(1);
}

static struct io_uring_sqe *get_sqe(void)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

	while (!sqe) {
		io_uring_submit(&ring);
		sqe = io_uring_get_sqe(&ring);
	}
	return sqe;
}

static void start_accept(int listener)
{
	struct io_uring_sqe *sqe = get_sqe();

	io_uring_prep_multishot_accept(sqe, listener, NULL, NULL, 0);
	io_uring_sqe_set_data(sqe, &acceptor);
}

static void start_recv(struct conn *c)
{
	struct io_uring_sqe *sqe = get_sqe();

	c->sending = 0;
	io_uring_prep_recv(sqe, c->fd, c->in, REQUEST_MAX, 0);
	io_uring_sqe_set_data(sqe, c);
}

static void start_send(struct conn *c)
{
	struct io_uring_sqe *sqe = get_sqe();

	c->sending = 1;
	io_uring_prep_send(sqe, c->fd, c->in, c->have, MSG_WAITALL | MSG_NOSIGNAL);
	io_uring_sqe_set_data(sqe, c);
}

static void conn_free(struct conn *c)
{
	close(c->fd);
	free(c);
}

static void conn_new(int fd)
{
	struct conn *c = malloc(sizeof(*c));
	int one = 1;

	if (!c)
		die("malloc", ENOMEM);
	c->fd = fd;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	start_recv(c);
}

static void on_completion(struct conn *c, int res)
{
	if (res == -EINTR || res == -EAGAIN) {
		if (c->sending)
			start_send(c);
		else
			start_recv(c);
	} else if (res <= 0 || (c->sending && (size_t)res < c->have)) {
		/* MSG_WAITALL: short only when the connection broke. */
		conn_free(c);
	} else if (c->sending) {
		start_recv(c);
	} else {
		c->have = (size_t)res;
		start_send(c);
	}
}

static void run(int listener)
{
	while (!stop) {
		struct io_uring_cqe *cqe;
		unsigned head, seen = 0;
		int r = io_uring_submit_and_wait(&ring, 1);

		if (r < 0 && r != -EINTR && r != -EBUSY && r != -EAGAIN)
			die("io_uring_submit_and_wait", -r);
		io_uring_for_each_cqe(&ring, head, cqe) {
			struct conn *c = io_uring_cqe_get_data(cqe);

			seen++;
			if (c != &acceptor) {
				on_completion(c, cqe->res);
				continue;
			}
			if (cqe->res >= 0)
				conn_new(cqe->res);
			else if (cqe->res == -EINVAL)
				die("accept: multishot, which the kernel lacks", EINVAL);
			if (!(cqe->flags & IORING_CQE_F_MORE))
				start_accept(listener);
		}
		io_uring_cq_advance(&ring, seen);
	}
}

static void ring_init(void)
{
	static const unsigned kinds[] = {
		IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
		IORING_SETUP_COOP_TASKRUN,
		0,
	};
	int r = -EINVAL;

	for (unsigned i = 0; i < 3 && r == -EINVAL; i++) {
		struct io_uring_params params = {
			.flags = kinds[i] | IORING_SETUP_CQSIZE |
				 IORING_SETUP_CLAMP,
			.cq_entries = 16 * ENTRIES,
		};

		r = io_uring_queue_init_params(ENTRIES, &ring, &params);
	}
	if (r)
		die("io_uring_queue_init", -r);
}

int main(int argc, char **argv)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t address_len = sizeof(address);
	struct sigaction action = { .sa_handler = on_stop };
	struct rlimit limit;
	int port = 0, listener, one = 1, opt;

	while ((opt = getopt(argc, argv, "p:")) == 'p')
		port = (int)to_number(optarg, "-p", 0, 65535);
	if (opt != -1 || optind != argc) {
		fputs("usage: uring_server [-p PORT]\n", stderr);
		return 2;
	}

	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	if (!getrlimit(RLIMIT_NOFILE, &limit)) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	listener = socket(AF_INET, SOCK_STREAM, 0);
	if (listener < 0)
		die("socket", errno);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	address.sin_addr.s_addr = htonl(INADDR_ANY);
	address.sin_port = htons((unsigned short)port);
	if (bind(listener, (struct sockaddr *)&address, sizeof(address)))
		die("bind", errno);
	if (listen(listener, 65535))
		die("listen", errno);
	getsockname(listener, (struct sockaddr *)&address, &address_len);
	printf("listening on %d\n", ntohs(address.sin_port));
	fflush(stdout);

	ring_init();
	start_accept(listener);
	run(listener);
	io_uring_queue_exit(&ring);
	return 0;
}
