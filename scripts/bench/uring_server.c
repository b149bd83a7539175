/* SPDX-License-Identifier: MIT */
/*
 * scripts/bench/uring_server.c - the work of "legacy_server -e", written directly for io_uring.
 *
 * An echo server of one thread, with one ring and one state machine.  It is as fast as an echo
 * server on io_uring can be; fibers are compared with it.  One io_uring_enter submits all new
 * requests and waits for the next batch of completions.
 *
 *	uring_server [-m] [-p PORT]
 *
 *	one-shot	each connection has one request in flight: a recv, then a send
 *	-m		multishot: one recv request serves the whole connection, and takes buffers from a
 *			buffer ring that all connections share.  A buffer goes back when it has been
 *			sent.  The io_uring's descriptor is registered; the io_uring has no array of
 *			indices (IORING_SETUP_NO_SQARRAY) if liburing and the kernel know this flag
 */
#include <arpa/inet.h>
#include <errno.h>
#include <liburing.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "scripts/bench/number.h"

#define ENTRIES 4096
#define REQUEST_MAX 8192

/* A connection. It is freed when it has broken, or ended and all is sent, and no request for it is in flight. */
struct conn {
	int fd;
	bool sending;		/* a send is in flight; if not and one-shot, a recv is */
	size_t have;		/* bytes that are being sent */
	/* The next four lines are for multishot. */
	bool receiving, starved, broken;
	bool ended;		/* nothing more comes, but what is in the list is sent */
	int first, last;	/* list of buffers to send; first is being sent, or -1: none */
	struct conn *next;	/* in buffers.starved */
	char in[];		/* one-shot: REQUEST_MAX bytes */
};

static struct io_uring ring;
static volatile sig_atomic_t stop;
static struct conn acceptor;	/* its address is the user data of accept requests */
static bool multishot;

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

	c->sending = false;
	io_uring_prep_recv(sqe, c->fd, c->in, REQUEST_MAX, 0);
	io_uring_sqe_set_data(sqe, c);
}

static void start_send(struct conn *c)
{
	struct io_uring_sqe *sqe = get_sqe();

	c->sending = true;
	io_uring_prep_send(sqe, c->fd, c->in, c->have, MSG_WAITALL | MSG_NOSIGNAL);
	io_uring_sqe_set_data(sqe, c);
}

static void conn_free(struct conn *c)
{
	close(c->fd);
	free(c);
}

/* ---- multishot ---------------------------------------------------------- */

enum {
	BUFFERS = 8192,		/* a power of two */
	BUFFER_SIZE = 2048,
	GROUP = 0,
	TAG_SEND = 1,		/* bit 0 of a request's user data: a send; the rest is the conn */
};

static struct {
	struct io_uring_buf_ring *ring;
	char *memory;
	struct {
		int next;	/* the connection's next buffer to send, or -1 */
		unsigned size;
	} of[BUFFERS];
	struct conn *starved;	/* connections that found no free buffer, and have no recv */
} buffers;

static char *buffer_at(int id)
{
	return buffers.memory + (size_t)id * BUFFER_SIZE;
}

static void buffer_give(int id)
{
	io_uring_buf_ring_add(buffers.ring, buffer_at(id), BUFFER_SIZE, (unsigned short)id,
			      io_uring_buf_ring_mask(BUFFERS), 0);
	io_uring_buf_ring_advance(buffers.ring, 1);
}

static void buffers_init(void)
{
	struct io_uring_buf_reg reg = { .ring_entries = BUFFERS, .bgid = GROUP };
	const size_t size = BUFFERS * sizeof(struct io_uring_buf);
	int r;

	buffers.memory = malloc((size_t)BUFFERS * BUFFER_SIZE);
	if (posix_memalign((void **)&buffers.ring, 4096, size) || !buffers.memory)
		die("malloc", ENOMEM);
	memset(buffers.ring, 0, size);
	reg.ring_addr = (uintptr_t)buffers.ring;
	r = io_uring_register_buf_ring(&ring, &reg, 0);
	if (r)
		die("io_uring_register_buf_ring", -r);
	io_uring_buf_ring_init(buffers.ring);
	for (int i = 0; i < BUFFERS; i++)
		buffer_give(i);
}

static void start_multishot(struct conn *c)
{
	struct io_uring_sqe *sqe = get_sqe();

	c->receiving = true;
	io_uring_prep_recv_multishot(sqe, c->fd, NULL, 0, 0);
	sqe->flags |= IOSQE_BUFFER_SELECT;
	sqe->buf_group = GROUP;
	io_uring_sqe_set_data(sqe, c);
}

static void send_first(struct conn *c)
{
	struct io_uring_sqe *sqe = get_sqe();

	c->sending = true;
	c->have = buffers.of[c->first].size;
	io_uring_prep_send(sqe, c->fd, buffer_at(c->first), c->have, MSG_WAITALL | MSG_NOSIGNAL);
	io_uring_sqe_set_data(sqe, (char *)c + TAG_SEND);
}

static void drop_first(struct conn *c)
{
	const int id = c->first;

	c->first = buffers.of[id].next;
	buffer_give(id);
}

static void end_if_idle(struct conn *c)
{
	const bool over = c->broken || (c->ended && c->first < 0);

	if (!over || c->receiving || c->sending || c->starved)
		return;
	while (c->first >= 0)
		drop_first(c);
	conn_free(c);
}

static void on_sent(struct conn *c, int res)
{
	c->sending = false;
	/* Because of MSG_WAITALL, a send is short only if the connection broke. */
	if (res == -EINTR || res == -EAGAIN) {
		send_first(c);
		return;
	}
	if (res < 0 || (size_t)res < c->have) {
		c->broken = true;
		/* The shutdown completes the recv in flight. */
		shutdown(c->fd, SHUT_RDWR);
	}
	drop_first(c);
	if (c->first >= 0 && !c->broken)
		send_first(c);
	end_if_idle(c);
}

static void on_received(struct conn *c, const struct io_uring_cqe *cqe)
{
	const int id = (int)(cqe->flags >> IORING_CQE_BUFFER_SHIFT);

	c->receiving = cqe->flags & IORING_CQE_F_MORE;
	if (cqe->res > 0) {
		buffers.of[id].next = -1;
		buffers.of[id].size = (unsigned)cqe->res;
		if (c->first < 0)
			c->first = id;
		else
			buffers.of[c->last].next = id;
		c->last = id;
		if (!c->sending && !c->broken)
			send_first(c);
	}
	if (cqe->res == -ENOBUFS && !c->receiving) {
		c->starved = true;
		c->next = buffers.starved;
		buffers.starved = c;
	} else if (cqe->res > 0 || cqe->res == -EINTR || cqe->res == -EAGAIN) {
		if (!c->receiving)
			start_multishot(c);
	} else {
		c->ended = cqe->res == 0;
		c->broken |= !c->ended;
		end_if_idle(c);
	}
}

/* Start a recv again on the connections that had found no buffer: buffers may have come back. */
static void feed_starved(void)
{
	struct conn *c = buffers.starved, *next;

	for (buffers.starved = NULL; c; c = next) {
		next = c->next;
		c->starved = false;
		if (c->broken)
			end_if_idle(c);
		else
			start_multishot(c);
	}
}

/* ---- one-shot and multishot --------------------------------------------- */

static void conn_new(int fd)
{
	struct conn *c = calloc(1, sizeof(*c) + (multishot ? 0 : REQUEST_MAX));
	int one = 1;

	if (!c)
		die("malloc", ENOMEM);
	c->fd = fd;
	c->first = -1;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (multishot)
		start_multishot(c);
	else
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
		/* Because of MSG_WAITALL, a send is short only if the connection broke. */
		conn_free(c);
	} else if (c->sending) {
		start_recv(c);
	} else {
		c->have = (size_t)res;
		start_send(c);
	}
}

/* Handle the completion of a send or recv. */
static void dispatch(const struct io_uring_cqe *cqe)
{
	char *data = io_uring_cqe_get_data(cqe);

	if (!multishot)
		on_completion((struct conn *)data, cqe->res);
	else if ((uintptr_t)data & TAG_SEND)
		on_sent((struct conn *)(data - TAG_SEND), cqe->res);
	else
		on_received((struct conn *)data, cqe);
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
			seen++;
			if (io_uring_cqe_get_data(cqe) != &acceptor) {
				dispatch(cqe);
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
		feed_starved();
	}
}

static void ring_init(void)
{
#ifdef IORING_SETUP_NO_SQARRAY
	const unsigned no_array = IORING_SETUP_NO_SQARRAY;
#else
	const unsigned no_array = 0;
#endif
	const unsigned kinds[] = {
		IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
			(multishot ? no_array : 0),
		IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
		IORING_SETUP_COOP_TASKRUN,
		0,
	};
	int r = -EINVAL;

	for (unsigned i = 0; i < 4 && r == -EINVAL; i++) {
		struct io_uring_params params = {
			.flags = kinds[i] | IORING_SETUP_CQSIZE |
				 IORING_SETUP_CLAMP,
			.cq_entries = 16 * ENTRIES,
		};

		r = io_uring_queue_init_params(ENTRIES, &ring, &params);
	}
	if (r)
		die("io_uring_queue_init", -r);
	if (!multishot)
		return;
	r = io_uring_register_ring_fd(&ring);
	if (r < 0)
		die("io_uring_register_ring_fd", -r);
	buffers_init();
}

/* Returns a socket that listens on *port. If *port is 0, the kernel chooses a port, stored in *port. */
static int listen_on(int *port)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t address_len = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	if (listener < 0)
		die("socket", errno);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	address.sin_addr.s_addr = htonl(INADDR_ANY);
	address.sin_port = htons((unsigned short)*port);
	if (bind(listener, (struct sockaddr *)&address, sizeof(address)))
		die("bind", errno);
	if (listen(listener, 65535))
		die("listen", errno);
	getsockname(listener, (struct sockaddr *)&address, &address_len);
	*port = ntohs(address.sin_port);
	return listener;
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_stop };
	struct rlimit limit;
	int port = 0, listener, opt;

	while ((opt = getopt(argc, argv, "mp:")) == 'p' || opt == 'm') {
		if (opt == 'm')
			multishot = true;
		else
			port = (int)to_number(optarg, "-p", 0, 65535);
	}
	if (opt != -1 || optind != argc) {
		fputs("usage: uring_server [-m] [-p PORT]\n", stderr);
		return 2;
	}

	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	if (!getrlimit(RLIMIT_NOFILE, &limit)) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	listener = listen_on(&port);
	printf("listening on %d\n", port);
	fflush(stdout);

	ring_init();
	start_accept(listener);
	run(listener);
	io_uring_queue_exit(&ring);
	return 0;
}
