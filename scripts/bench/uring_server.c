/* SPDX-License-Identifier: MIT */
/*
 * scripts/bench/uring_server.c - the work of legacy_server, written directly for io_uring.
 *
 * One thread, one ring, one state machine: the upper limit against which fibers are
 * measured.  Each connection has one request in flight: a recv, then a send.
 * All requests that a batch of completions leads to are submitted by the one
 * io_uring_enter that waits for the next batch.
 *
 *	uring_server [-e] [-p PORT] [-b BODY-BYTES] [-c]
 *
 * -e echoes.  -c uses IORING_SETUP_COOP_TASKRUN; the default is
 * DEFER_TASKRUN where the kernel has it.
 */
#define _GNU_SOURCE

#include <arpa/inet.h>
#include <errno.h>
#include <liburing.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef IORING_SETUP_SINGLE_ISSUER
#define IORING_SETUP_SINGLE_ISSUER (1U << 12)
#endif
#ifndef IORING_SETUP_DEFER_TASKRUN
#define IORING_SETUP_DEFER_TASKRUN (1U << 13)
#endif

#define ENTRIES 4096
#define REQUEST_MAX 8192

/* Owned by the request in flight, freed when there is none. */
struct conn {
	int fd;
	int sending;		/* the request in flight is the send */
	int closing;		/* close when all has been sent */
	size_t have;		/* bytes in `in` */
	size_t out_len, out_done;
	char *out;		/* malloc'ed, or `in` when echoing */
	size_t out_room;
	char in[REQUEST_MAX + 1];
};

static struct io_uring ring;
static struct conn *free_conns;
static volatile sig_atomic_t stop;
static int raw_echo;
static char *body;
static size_t body_size = 13;
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
	io_uring_prep_recv(sqe, c->fd, c->in + c->have, REQUEST_MAX - c->have, 0);
	io_uring_sqe_set_data(sqe, c);
}

static void start_send(struct conn *c)
{
	struct io_uring_sqe *sqe = get_sqe();

	c->sending = 1;
	io_uring_prep_send(sqe, c->fd, c->out + c->out_done,
			   c->out_len - c->out_done, MSG_WAITALL | MSG_NOSIGNAL);
	io_uring_sqe_set_data(sqe, c);
}

static void conn_free(struct conn *c)
{
	close(c->fd);
	/* Keep the buffer, and its size, for the next connection. */
	c->fd = -1;
	*(struct conn **)c->in = free_conns;
	free_conns = c;
}

static void conn_new(int fd)
{
	struct conn *c = free_conns;
	int one = 1;

	if (c) {
		free_conns = *(struct conn **)c->in;
	} else {
		c = malloc(sizeof(*c));
		if (!c)
			die("malloc", ENOMEM);
		c->out = NULL;
		c->out_room = 0;
	}
	c->fd = fd;
	c->closing = 0;
	c->have = c->out_len = c->out_done = 0;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	start_recv(c);
}

static char *reserve(struct conn *c, size_t n)
{
	if (c->out_room - c->out_len < n) {
		c->out_room = 2 * (c->out_len + n);
		c->out = realloc(c->out, c->out_room);
		if (!c->out)
			die("realloc", ENOMEM);
	}
	return c->out + c->out_len;
}

static void respond(struct conn *c, int status, const char *content,
		    size_t size, int head_only, int keep)
{
	const char *reason = status == 200 ? "OK" :
			     status == 404 ? "Not Found" :
			     status == 405 ? "Method Not Allowed" :
					     "Bad Request";

	c->out_len += (size_t)snprintf(reserve(c, 256), 256,
			   "HTTP/1.1 %d %s\r\n"
			   "Content-Type: text/plain\r\n"
			   "Content-Length: %zu\r\n"
			   "%s"
			   "\r\n", status, reason, size,
			   keep ? "" : "Connection: close\r\n");
	if (!head_only) {
		memcpy(reserve(c, size), content, size);
		c->out_len += size;
	}
	if (!keep)
		c->closing = 1;
}

static int header_has(const char *headers, const char *name, const char *token)
{
	size_t n = strlen(name);

	for (const char *line = headers; *line; ) {
		const char *end = strstr(line, "\r\n");

		if (!end)
			break;
		if (!strncasecmp(line, name, n) && line[n] == ':') {
			size_t len = (size_t)(end - line);

			for (size_t i = n + 1; i + strlen(token) <= len; i++)
				if (!strncasecmp(line + i, token, strlen(token)))
					return 1;
		}
		line = end + 2;
	}
	return 0;
}

static void answer(struct conn *c, const char *request)
{
	char method[16], path[1024];
	int minor, head, keep, used = 0;
	const char *line_end = strstr(request, "\r\n");

	if (sscanf(request, "%15[A-Z] %1023s HTTP/1.%d%n", method, path,
		   &minor, &used) != 3 || request + used != line_end) {
		respond(c, 400, "bad request\n", 12, 0, 0);
		return;
	}
	keep = minor >= 1 ? !header_has(line_end + 2, "Connection", "close") :
			    header_has(line_end + 2, "Connection", "keep-alive");
	head = !strcmp(method, "HEAD");
	if (!head && strcmp(method, "GET"))
		respond(c, 405, "method not allowed\n", 19, 0, 0);
	else if (!strcmp(path, "/"))
		respond(c, 200, body, body_size, head, keep);
	else
		respond(c, 404, "not found\n", 10, head, keep);
}

/* Answers all complete requests in c->in with one send. */
static void on_request_bytes(struct conn *c)
{
	char *end, *at = c->in;

	c->in[c->have] = 0;
	c->out_len = c->out_done = 0;
	while (!c->closing && (end = strstr(at, "\r\n\r\n"))) {
		char first = end[2];

		end[2] = 0;
		answer(c, at);
		end[2] = first;
		at = end + 4;
	}
	c->have -= (size_t)(at - c->in);
	memmove(c->in, at, c->have);
	c->in[c->have] = 0;
	if (!c->closing && (c->have == REQUEST_MAX ||
			    memchr(c->in, 0, c->have)))
		respond(c, 400, "bad request\n", 12, 0, 0);
	if (c->out_len)
		start_send(c);
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
		return;
	}
	if (res <= 0) {
		conn_free(c);
		return;
	}
	if (!c->sending) {
		if (raw_echo) {
			struct io_uring_sqe *sqe = get_sqe();

			c->sending = 1;
			c->have = (size_t)res;
			c->out_done = 0;
			io_uring_prep_send(sqe, c->fd, c->in, c->have,
					   MSG_WAITALL | MSG_NOSIGNAL);
			io_uring_sqe_set_data(sqe, c);
		} else {
			c->have += (size_t)res;
			on_request_bytes(c);
		}
		return;
	}
	if (raw_echo) {
		/* MSG_WAITALL: short only when the connection broke. */
		if ((size_t)res < c->have) {
			conn_free(c);
			return;
		}
		c->have = 0;
		start_recv(c);
		return;
	}
	c->out_done += (size_t)res;
	if (c->out_done < c->out_len)
		start_send(c);
	else if (c->closing)
		conn_free(c);
	else
		start_recv(c);
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

static void ring_init(int cooperative)
{
	static const unsigned kinds[] = {
		IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
		IORING_SETUP_COOP_TASKRUN,
		0,
	};
	int r = -EINVAL;

	for (unsigned i = cooperative ? 1 : 0; i < 3 && r == -EINVAL; i++) {
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

static void usage(void)
{
	fputs("usage: uring_server [-e] [-p PORT] [-b BODY-BYTES] [-c]\n", stderr);
	exit(2);
}

static long number(const char *text, long low, long high)
{
	char *end;
	long n = strtol(text, &end, 10);

	if (end == text || *end || n < low || n > high)
		usage();
	return n;
}

int main(int argc, char **argv)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t address_len = sizeof(address);
	struct sigaction action = { .sa_handler = on_stop };
	struct rlimit limit;
	int port = 0, cooperative = 0, listener, one = 1, opt;

	while ((opt = getopt(argc, argv, "ep:b:c")) != -1) {
		switch (opt) {
		case 'e':
			raw_echo = 1;
			break;
		case 'p':
			port = (int)number(optarg, 0, 65535);
			break;
		case 'b':
			body_size = (size_t)number(optarg, 0, 1 << 30);
			break;
		case 'c':
			cooperative = 1;
			break;
		default:
			usage();
		}
	}
	if (optind != argc)
		usage();

	body = malloc(body_size + 1);
	if (!body)
		die("malloc", ENOMEM);
	for (size_t i = 0; i < body_size; i++)
		body[i] = "Hello, world\n"[i % 13];

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

	ring_init(cooperative);
	start_accept(listener);
	run(listener);
	io_uring_queue_exit(&ring);
	return 0;
}
