/* SPDX-License-Identifier: MIT */
/*
 * scripts/bench/echo_client.c - load for a raw TCP echo server.
 *
 *	echo_client [-c connections] [-d seconds] [-s size] [-h host]
 *		    [-w warmup_seconds] [-t timeout] [-r rate | --hold] port
 *
 * Each connection sends a message, waits for all of it to come back, compares
 * it byte for byte, and sends the next.  A message begins with the number of
 * its connection and a sequence number, so that neither another connection's
 * answer nor an old one passes.
 *
 *  setup    connections are opened a few at a time, each with one exchange, so
 *	     that no server's backlog overflows (a lost SYN costs a second)
 *  load     all at once, until warm-up and duration are over; then answers
 *	     still outstanding are waited for
 *  -r	     so many messages per second, evenly over time and connections, instead
 *	     of the next when the answer is there.  One that is due while the answer
 *	     to the one before is outstanding is sent late, but its latency begins
 *	     when it was due: a server that stalls is not spared the load meanwhile
 *  --hold   instead of load: passes of one exchange on every connection, all
 *	     of them kept open, until the duration is over, at least one
 *
 * Prints one "name value" per line.  requests, seconds and the rates are those
 * after warm-up; requests_total counts every exchange, for whoever divides the
 * server's whole CPU time by it.  Exit status: 0, 1 for errors of any kind,
 * 2 for a bad command line.
 *
 * One thread, one epoll, so that the load fits on one CPU beside the server's.
 */
#include "histogram.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#ifndef IP_BIND_ADDRESS_NO_PORT
#define IP_BIND_ADDRESS_NO_PORT 24
#endif

enum {
	SETUP_AT_ONCE = 4,	/* below the 5 of the meanest listen() */
	PER_SOURCE = 20000,	/* connections from one loopback address */
	EVENTS = 512,
};

struct conn {
	int fd;
	uint32_t id;
	uint32_t seq;
	size_t sent;		/* of the current message */
	size_t got;		/* of its answer */
	uint64_t start;		/* when the message was begun, or due, ns */
	uint64_t due;		/* with -r: when the next one is to be sent, ns */
	bool connected;
	bool busy;		/* a message is under way */
	bool want_out;		/* EPOLLOUT is registered */
	bool dead;
	unsigned char *out;	/* the message, size bytes */
};

static size_t size = 64;
static int epfd;
static struct conn *conns;
static uint32_t nconns = 64;
static uint32_t alive, outstanding;
static uint64_t total, errors;
static uint64_t count_from = UINT64_MAX, count_to;
static double period;		/* with -r: between messages of one connection, ns; else 0 */
static struct histogram latencies;	/* of what counts */
static unsigned char *in;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

__attribute__((format(printf, 2, 3), noreturn))
static void die(int status, const char *fmt, ...)
{
	va_list ap;

	fputs("echo_client: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(status);
}

/* Only the first few are worth reading; all are counted. */
__attribute__((format(printf, 2, 3)))
static void fail(struct conn *c, const char *fmt, ...)
{
	va_list ap;

	if (errors++ < 5) {
		fprintf(stderr, "echo_client: connection %u: ", c->id);
		va_start(ap, fmt);
		vfprintf(stderr, fmt, ap);
		va_end(ap);
		fputc('\n', stderr);
	}
	if (c->busy)
		outstanding--;
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	c->busy = false;
	c->dead = true;
	alive--;
}

static void want(struct conn *c, bool out)
{
	struct epoll_event ev = { .events = EPOLLIN | (out ? EPOLLOUT : 0), .data.ptr = c };

	if (c->want_out == out)
		return;
	c->want_out = out;
	if (epoll_ctl(epfd, EPOLL_CTL_MOD, c->fd, &ev))
		die(1, "epoll_ctl: %s", strerror(errno));
}

static void push(struct conn *c)
{
	while (c->sent < size) {
		ssize_t n = send(c->fd, c->out + c->sent, size - c->sent,
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n < 0) {
			fail(c, "send: %s", strerror(errno));
			return;
		}
		c->sent += (size_t)n;
	}
	want(c, c->sent < size);
}

static void begin(struct conn *c, uint64_t now)
{
	unsigned char head[8];

	c->seq++;
	memcpy(head, &c->id, 4);
	memcpy(head + 4, &c->seq, 4);
	if (size < sizeof(head))
		/* Too short for both: let at least the sequence vary. */
		c->out[0] = (unsigned char)(c->id * 31 + c->seq);
	else
		memcpy(c->out, head, sizeof(head));
	c->sent = c->got = 0;
	c->start = now;
	c->busy = true;
	outstanding++;
	push(c);
}

/* What is due, if anything is. */
static void begin_due(struct conn *c, uint64_t now)
{
	uint64_t due = c->due;

	if (c->busy || c->dead || c->fd < 0 || due > now || due >= count_to)
		return;
	c->due += (uint64_t)period;
	begin(c, due);
}

/* Returns true when the answer is complete. */
static bool pull(struct conn *c, uint64_t *ret_now)
{
	while (c->got < size) {
		ssize_t n = recv(c->fd, in, size - c->got, MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return false;
		if (n < 0) {
			fail(c, "recv: %s", strerror(errno));
			return false;
		}
		if (n == 0) {
			fail(c, "closed by the server after %zu of %zu bytes", c->got, size);
			return false;
		}
		if (memcmp(in, c->out + c->got, (size_t)n)) {
			fail(c, "message %u came back changed", c->seq);
			return false;
		}
		if (c->got + (size_t)n > c->sent) {
			fail(c, "answered before it was asked");
			return false;
		}
		c->got += (size_t)n;
	}
	*ret_now = now_ns();
	c->busy = false;
	outstanding--;
	total++;
	if (c->start >= count_from && *ret_now <= count_to)
		histogram_add(&latencies, (*ret_now - c->start) / 1000);
	return true;
}

static void open_conn(struct conn *c, const struct addrinfo *ai)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLOUT, .data.ptr = c };
	int one = 1;

	c->fd = socket(ai->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (c->fd < 0)
		die(1, "socket %u: %s", c->id, strerror(errno));
	setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	/* One source address has about 28,000 ports; loopback has many addresses. */
	if (c->id >= PER_SOURCE && ai->ai_family == AF_INET &&
	    ntohl(((struct sockaddr_in *)ai->ai_addr)->sin_addr.s_addr) >> 24 == 127) {
		struct sockaddr_in from = { .sin_family = AF_INET };

		from.sin_addr.s_addr = htonl(0x7f000001u + c->id / PER_SOURCE);
		setsockopt(c->fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof(one));
		if (bind(c->fd, (struct sockaddr *)&from, sizeof(from)))
			die(1, "bind: %s", strerror(errno));
	}
	alive++;
	c->want_out = true;
	if (connect(c->fd, ai->ai_addr, ai->ai_addrlen) && errno != EINPROGRESS) {
		fail(c, "connect: %s", strerror(errno));
		return;
	}
	if (epoll_ctl(epfd, EPOLL_CTL_ADD, c->fd, &ev))
		die(1, "epoll_ctl: %s", strerror(errno));
}

/* connect has ended one way or the other. */
static void connected(struct conn *c, uint64_t now)
{
	socklen_t len = sizeof(int);
	int err = 0;

	getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &err, &len);
	if (err) {
		fail(c, "connect: %s", strerror(err));
		return;
	}
	c->connected = true;
	begin(c, now);
}

/*
 * Wait for events and move every connection on.  again: a connection whose
 * answer is complete sends its next message, until stop_at.  Returns the
 * number of answers that were completed, or -1 if nothing happened by deadline.
 */
static int turn(bool again, uint64_t stop_at, uint64_t deadline)
{
	struct epoll_event ev[EVENTS];
	uint64_t now = now_ns();
	int answers = 0;
	uint64_t left = deadline > now ? deadline - now : 0;
	struct timespec limit = { (time_t)(left / 1000000000u), (long)(left % 1000000000u) };
	int n = epoll_pwait2(epfd, ev, EVENTS, &limit, NULL);

	if (n < 0 && errno != EINTR)
		die(1, "epoll_wait: %s", strerror(errno));
	if (n <= 0)
		return now_ns() >= deadline ? -1 : 0;
	for (int i = 0; i < n; i++) {
		struct conn *c = ev[i].data.ptr;

		if (c->dead)
			continue;
		if (!c->connected) {
			connected(c, now_ns());
			continue;
		}
		if (ev[i].events & EPOLLOUT) {
			push(c);
			if (c->dead)
				continue;
		}
		if (!(ev[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
			continue;
		if (!c->busy) {
			fail(c, "data or end of file that nobody asked for");
			continue;
		}
		if (!pull(c, &now))
			continue;
		answers++;
		if (again && period)
			begin_due(c, now);
		else if (again && now < stop_at)
			begin(c, now);
	}
	return answers;
}

/* Nothing came for too long: whoever waits for an answer has failed. */
static void give_up(double timeout)
{
	for (uint32_t i = 0; i < nconns; i++) {
		struct conn *c = &conns[i];

		if (c->fd >= 0 && (c->busy || !c->connected))
			fail(c, "no answer for %g seconds", timeout);
	}
}

static void drain(double timeout)
{
	uint64_t patience = (uint64_t)(timeout * 1e9);
	uint64_t quiet_since = now_ns();

	while (outstanding) {
		int n = turn(false, 0, quiet_since + patience);

		if (n < 0)
			give_up(timeout);
		else if (n > 0)
			quiet_since = now_ns();
	}
}

static void setup(const struct addrinfo *ai, double timeout)
{
	uint64_t patience = (uint64_t)(timeout * 1e9);
	uint64_t quiet_since = now_ns();
	uint32_t opened = 0;

	while (total + errors < nconns) {
		int n;

		while (opened < nconns && opened - (total + errors) < SETUP_AT_ONCE)
			open_conn(&conns[opened++], ai);
		n = turn(false, 0, quiet_since + patience);
		if (n < 0)
			give_up(timeout);
		else if (n > 0)
			quiet_since = now_ns();
		/* A server that is not there will not come while we try. */
		if (errors && !alive && opened >= SETUP_AT_ONCE)
			break;
	}
}

static void hold(double duration, double timeout)
{
	uint64_t end = now_ns() + (uint64_t)(duration * 1e9);
	uint64_t answered;

	do {
		uint64_t before = total;
		uint64_t now = now_ns();

		for (uint32_t i = 0; i < nconns; i++) {
			if (!conns[i].dead && conns[i].fd >= 0)
				begin(&conns[i], now);
		}
		drain(timeout);
		answered = total - before;
	} while (now_ns() < end && !errors);
	printf("answered %llu\n", (unsigned long long)answered);
}

/* Until it is over, or no connection is left. */
static void load_closed(double timeout)
{
	uint64_t quiet_since = now_ns();
	uint64_t patience = (uint64_t)(timeout * 1e9);

	for (uint32_t i = 0; i < nconns; i++) {
		if (!conns[i].dead && conns[i].fd >= 0)
			begin(&conns[i], now_ns());
	}
	while (outstanding) {
		int n = turn(true, count_to, quiet_since + patience);

		if (n < 0)
			give_up(timeout);
		else if (n > 0)
			quiet_since = now_ns();
		if (now_ns() >= count_to)
			break;
	}
}

/* The same by the clock: connections are due one after the other. */
static void load_paced(uint64_t begun, double timeout)
{
	double gap = period / nconns;
	uint64_t patience = (uint64_t)(timeout * 1e9);
	uint64_t quiet_since = begun, now;
	uint64_t k = 0;

	for (uint32_t i = 0; i < nconns; i++)
		conns[i].due = begun + (uint64_t)(gap * i);
	while (alive && (now = now_ns()) < count_to) {
		uint64_t next, give_up_at = quiet_since + patience;

		for (; (next = begun + (uint64_t)(gap * (double)k)) <= now; k++)
			begin_due(&conns[k % nconns], now);
		if (turn(true, count_to, next < give_up_at ? next : give_up_at) > 0 || !outstanding)
			quiet_since = now_ns();
		else if (now_ns() >= give_up_at)
			give_up(timeout);
	}
}

static void load(double warmup, double duration, double timeout)
{
	uint64_t begun = now_ns();
	double seconds;

	count_from = begun + (uint64_t)(warmup * 1e9);
	count_to = count_from + (uint64_t)(duration * 1e9);
	if (period)
		load_paced(begun, timeout);
	else
		load_closed(timeout);
	seconds = (double)((now_ns() < count_to ? now_ns() : count_to) - begun) / 1e9 - warmup;
	drain(timeout);
	printf("requests %llu\n", (unsigned long long)latencies.count);
	printf("seconds %.3f\n", seconds);
	printf("requests_per_second %.1f\n", seconds > 0 ? (double)latencies.count / seconds : 0);
	printf("latency_p50_us %.1f\n", histogram_percentile(&latencies, 0.50));
	printf("latency_p99_us %.1f\n", histogram_percentile(&latencies, 0.99));
}

static void raise_files(uint32_t wanted)
{
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl))
		return;
	if (rl.rlim_max < wanted) {
		struct rlimit more = { wanted, wanted };

		if (!setrlimit(RLIMIT_NOFILE, &more))
			return;
		die(1, "%u connections need %u descriptors, the limit is %llu (ulimit -n)",
		    nconns, wanted, (unsigned long long)rl.rlim_max);
	}
	if (rl.rlim_cur < wanted) {
		rl.rlim_cur = wanted;
		setrlimit(RLIMIT_NOFILE, &rl);
	}
}

static double number(const char *text, const char *what, double min, double max)
{
	char *end;
	double v = strtod(text, &end);

	if (end == text || *end || !(v >= min && v <= max))
		die(2, "%s: %s must be a number from %g to %g", text, what, min, max);
	return v;
}

static const char usage[] =
	"usage: echo_client [-c connections] [-d seconds] [-s size] [-h host]\n"
	"                   [-w warmup_seconds] [-t timeout_seconds] [-r rate | --hold] port\n";

int main(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "hold", no_argument, NULL, 'H' },
		{ "help", no_argument, NULL, '?' },
		{ NULL, 0, NULL, 0 },
	};
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *ai;
	double duration = -1, warmup = 0, timeout = 10, rate = 0;
	char *host = "127.0.0.1";
	char port[8];
	bool holding = false;
	int opt, err;

	while ((opt = getopt_long(argc, argv, "c:d:s:h:w:t:r:", longs, NULL)) != -1) {
		switch (opt) {
		case 'c':
			nconns = (uint32_t)number(optarg, "-c", 1, 1000000);
			break;
		case 'd':
			duration = number(optarg, "-d", 0, 86400);
			break;
		case 's':
			size = (size_t)number(optarg, "-s", 1, 1 << 26);
			break;
		case 'h':
			host = optarg;
			break;
		case 'w':
			warmup = number(optarg, "-w", 0, 86400);
			break;
		case 't':
			timeout = number(optarg, "-t", 0.1, 86400);
			break;
		case 'r':
			rate = number(optarg, "-r", 1, 1e8);
			break;
		case 'H':
			holding = true;
			break;
		default:
			fputs(usage, stderr);
			return 2;
		}
	}
	if (optind != argc - 1 || (rate && holding)) {
		fputs(usage, stderr);
		return 2;
	}
	period = rate ? 1e9 * nconns / rate : 0;
	if (duration < 0)
		duration = holding ? 0 : 5;
	snprintf(port, sizeof(port), "%d", (int)number(argv[optind], "port", 1, 65535));

	/* [::1], as in a URL */
	if (host[0] == '[' && host[strlen(host) - 1] == ']') {
		host = strdup(host + 1);
		if (!host)
			die(1, "out of memory");
		host[strlen(host) - 1] = '\0';
	}
	err = getaddrinfo(host, port, &hints, &ai);
	if (err)
		die(1, "%s: %s", host, gai_strerror(err));
	raise_files(nconns + 16);

	epfd = epoll_create1(EPOLL_CLOEXEC);
	conns = calloc(nconns, sizeof(*conns));
	in = malloc(size);
	if (epfd < 0 || !conns || !in)
		die(1, "out of memory");
	for (uint32_t i = 0; i < nconns; i++) {
		uint32_t x = i * 2654435761u + 1;

		conns[i].fd = -1;
		conns[i].id = i;
		conns[i].out = malloc(size);
		if (!conns[i].out)
			die(1, "out of memory");
		for (size_t k = 0; k < size; k++) {
			x = x * 1664525u + 1013904223u;
			conns[i].out[k] = (unsigned char)(x >> 24);
		}
	}

	setup(ai, timeout);
	printf("open %u\n", alive);
	fflush(stdout);
	if (alive) {
		if (holding)
			hold(duration, timeout);
		else
			load(warmup, duration, timeout);
	}
	printf("requests_total %llu\n", (unsigned long long)total);
	printf("errors %llu\n", (unsigned long long)errors);
	freeaddrinfo(ai);
	return errors || !total ? 1 : 0;
}
